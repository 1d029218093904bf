package reserve_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestChangesCostWhatTheirTimeCosts: price rules that begin after a purchase apply to its extension and its exchange, from
// the moment at which these are held; the purchase keeps its price.
func TestChangesCostWhatTheirTimeCosts(t *testing.T) {
	t.Parallel()
	s := open(t)
	admin := s.buyer()
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	g := s.loggedIn(t, sandbox.MethodCard)
	prices := func(min10 int) {
		t.Helper()
		rule := map[string]any{"from": "2020-01-01", "min10": min10, "min30": 3 * min10, "min60": 6 * min10}
		reply, err := admin.Do(s.ctx, http.MethodPut, fmt.Sprintf("/v2/admin/branches/gangnam/rooms/%d/prices", g.wish.Room),
			map[string]any{"rules": []any{rule}})
		if err != nil || reply.HTTP != http.StatusOK {
			t.Fatal(err, reply.Raw)
		}
	}
	prices(9000)
	for i, option := range g.offer(t, s).Options {
		if want := 9000 * (i + 1); option.Amount != want {
			t.Errorf("extension to %s: %d won, want %d", option.EndDateTime, option.Amount, want)
		}
	}
	extension := g.hold(t, s, g.end().Add(20*time.Minute))
	prices(8000)
	if extension.Amount != 18000 {
		t.Errorf("the extension costs %d won, want 18000", extension.Amount)
	}
	s.pay(t, g.Buyer, extension, sandbox.MethodCard)
	s.wantState(t, extension.OrderID, "DONE")

	other := s.loggedIn(t, sandbox.MethodCard)
	start := g.wish.Start.Add(48 * time.Hour)
	reply := s.answer(t, other.Buyer, other.exchangePath(), other.exchange(g.wish.Room, start, start.Add(time.Hour)), 200, "")
	if got := decode[exchanged](t, reply.Data).Amount; got != 48000 {
		t.Fatalf("the exchange costs %d won, want 48000", got)
	}
	prices(7000)
	s.wantState(t, s.payHeld(t, other, 48000).OrderID, "DONE")
	s.await(t, other.order.OrderID, "CANCELED")
	if n := s.count(t, `select amount from reservation where id = $1`, g.id); n != moneytest.Prices[g.wish.Room] {
		t.Errorf("the purchase costs %d won now, want %d", n, moneytest.Prices[g.wish.Room])
	}
}
