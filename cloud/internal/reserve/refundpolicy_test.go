package reserve_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// policyCase is a cancellation by the guest.
type policyCase struct {
	policy  string        // JSON; null: the default
	before  time.Duration // from the cancellation to the start
	method  string
	earlier []int // won of parts returned before
	percent int   // -1: too late to cancel
}

// policyCases combines all tiers, the moments around their deadlines, payment methods and earlier parts. The shares are
// written out, so that the test does not repeat the arithmetic of the rule.
func policyCases() (cases []policyCase) {
	type moment struct {
		before  time.Duration
		percent int
	}
	const inTime, late = 0, -time.Second
	at := func(minutes int, tolerance time.Duration, percent int) moment {
		return moment{time.Duration(minutes)*time.Minute + tolerance, percent}
	}
	policies := []struct {
		policy  string
		moments []moment
	}{
		{`null`, []moment{at(240, inTime, 100), at(30, inTime, 100), at(30, late, -1)}},
		{`[{"untilMinutesBefore":30,"percent":100}]`, []moment{at(30, inTime, 100), at(30, late, -1)}},
		{
			`[{"untilMinutesBefore":180,"percent":100},{"untilMinutesBefore":120,"percent":67},{"untilMinutesBefore":45,"percent":33}]`,
			[]moment{at(180, inTime, 100), at(180, late, 67), at(120, inTime, 67), at(120, late, 33), at(45, inTime, 33), at(45, late, 0), at(30, inTime, 0), at(30, late, -1)},
		},
		{`[{"untilMinutesBefore":60,"percent":70}]`, []moment{at(61, inTime, 70), at(60, inTime, 70), at(60, late, 0)}},
		{`[{"untilMinutesBefore":90,"percent":0}]`, []moment{at(90, inTime, 0), at(89, inTime, 0)}},
	}
	for _, earlier := range [][]int{nil, {1}, {700, 333}} {
		for _, method := range []string{sandbox.MethodCard, sandbox.MethodVirtualAccount, sandbox.MethodEasyPay} {
			for _, p := range policies {
				for _, m := range p.moments {
					cases = append(cases, policyCase{p.policy, m.before, method, earlier, m.percent})
				}
			}
		}
	}
	return cases
}

// policyStride takes every n-th combination: 11 shares no factor with the numbers that are combined.
var policyStride = flag.Int("policy-stride", 11, "test every n-th combination of refund policies")

// casesPerShop bounds how long a shop of the test is open.
const casesPerShop = 6

// TestRefundPolicyCombinations: the policy that was fixed at the payment decides what a cancellation by the guest returns.
// Quote, refund, provider, ledger, books and message are equal to the won.
func TestRefundPolicyCombinations(t *testing.T) {
	t.Parallel()
	var chosen []policyCase
	for i, c := range policyCases() {
		if i%*policyStride == 0 {
			chosen = append(chosen, c)
		}
	}
	for cases := range slices.Chunk(chosen, casesPerShop) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for i, c := range cases {
				s.cancelUnder(t, i, c)
			}
			if report := s.reconcile(t, s.Replica(t)); len(report.Discrepancies) != 0 {
				t.Errorf("reconciled: %+v", report)
			}
		})
	}
}

func (s *shop) cancelUnder(t *testing.T, n int, c policyCase) {
	t.Helper()
	name := fmt.Sprintf("case %d: %+v", n, c)
	s.exec(t, `update branch set refund_policy = nullif($1::jsonb, 'null'::jsonb) where code = 'gangnam'`, c.policy)
	start := s.Clock.Now().Truncate(10 * time.Minute).Add(6 * time.Hour)
	wish := moneytest.Wish{Room: n%6 + 1, Start: start, Method: c.method, Mobile: fmt.Sprintf("0103%07d", n)}
	b := s.buyer()
	order, err := b.Order(s.ctx, wish)
	if err != nil {
		t.Fatal(name, err)
	}
	s.answer(t, b, "/payment/confirm", order, 200, "")
	if err := b.Login(s.ctx, wish.Mobile); err != nil {
		t.Fatal(name, err)
	}
	if c.method == sandbox.MethodVirtualAccount {
		s.deposit(t, order.OrderID)
	}
	id := s.wantState(t, order.OrderID, "DONE")
	s.exec(t, `update branch set refund_policy = '[{"untilMinutesBefore":10000,"percent":1}]' where code = $1`, "gangnam")
	replica, left := s.Replica(t), order.Amount
	for _, won := range c.earlier {
		if _, err := replica.RefundPart(s.ctx, part(id, won)); err != nil {
			t.Fatal(name, err)
		}
		s.refundsDone(t, id)
		left -= won
	}
	s.Clock.Stop(start.Add(-c.before))
	path := fmt.Sprintf("/v2/my-reservations/%d/refund", id)
	cancel := refundAccount(map[string]any{"id": id, "cancelReason": "변심"})
	if c.percent < 0 {
		if _, err := replica.RefundQuote(s.ctx, booking.ReservationID(id), quoting); !errors.Is(err, booking.ErrTooLateToCancel) {
			t.Errorf("%s: a late quote: %v", name, err)
		}
		s.answer(t, b, "/payment/cancel", cancel, 400, "IllegalArguemntError")
		s.wantState(t, order.OrderID, "DONE")
		return
	}
	var quote struct{ Amount, Percent int }
	reply, err := b.Do(s.ctx, "GET", path, nil)
	if err != nil || json.Unmarshal(reply.Data, &quote) != nil {
		t.Fatal(name, err, reply.Raw)
	}
	want := left * c.percent / 100
	if quote.Amount != want || quote.Percent != c.percent {
		t.Errorf("%s: a quote of %+v, want %d won", name, quote, want)
	}
	s.answer(t, b, "/payment/cancel", cancel, 200, "")
	s.await(t, order.OrderID, "CANCELED")
	for what, got := range map[string]int{
		"the refund is":      s.count(t, `select coalesce(sum(amount), 0)::int from refund where reservation_id = $1 and not keeps_stay`, id),
		"the ledger has":     s.count(t, `select coalesce(sum(amount), 0)::int from ledger where reservation_id = $1 and kind = 'cancel.done'`, id),
		"the books returned": left - s.count(t, `select coalesce(sum(won), 0)::int from money_entry where reservation_id = $1`, id),
		"the provider holds": left - s.Sandbox.Payments(order.OrderID)[0].BalanceAmount,
	} {
		if got != want {
			t.Errorf("%s: %s %d, want %d", name, what, got, want)
		}
	}
	s.wantMessage(t, id, want)
	if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil && !errors.Is(err, reserve.ErrPaymentPending) {
		t.Error(name, err)
	}
}

// quoting is an administrator who asks for a quote.
var quoting = account.Principal{LoginType: account.LoginAdmin, Role: account.HQ}
