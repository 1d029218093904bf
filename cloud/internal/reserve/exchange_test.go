package reserve_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

func (g guest) exchange(room int, start, end time.Time) map[string]any {
	return map[string]any{"room": room, "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(end)}
}

func (g guest) exchangePath() string { return fmt.Sprintf("/v2/my-reservations/%d/exchange", g.id) }

func (s *shop) loggedIn(t *testing.T, method string) guest {
	t.Helper()
	g := s.guest(t, method)
	if err := g.Login(s.ctx, g.wish.Mobile); err != nil {
		t.Fatal(err)
	}
	return g
}

// payHeld registers and pays the hold of a buyer's cookie.
func (s *shop) payHeld(t *testing.T, g guest, amount int) held {
	t.Helper()
	reply := s.answer(t, g.Buyer, "/payment", map[string]any{"amount": amount, "name": "홍길동", "mobileNum": g.wish.Mobile}, 200, "")
	order := held{Amount: amount, OrderID: decode[struct{ OrderID string }](t, reply.Data).OrderID}
	s.pay(t, g.Buyer, order, sandbox.MethodCard)
	return order
}

type exchanged struct {
	Moved  bool
	Amount int
}

// TestExchange: at the same price a stay is moved at once, at another price the new one is paid and the old one refunded.
func TestExchange(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	start := g.wish.Start.Add(24 * time.Hour)
	body := g.exchange(g.wish.Room, start, start.Add(time.Hour))
	body["room"] = strconv.Itoa(g.wish.Room) // as in the list of the guest
	same := s.answer(t, g.Buyer, g.exchangePath(), body, 200, "")
	if decode[exchanged](t, same.Data) != (exchanged{Moved: true}) {
		t.Fatalf("same price: %s", same.Data)
	}
	g.wantEnd(t, s, start.Add(time.Hour))

	other := g.wish.Room%6 + 1
	dearer := s.answer(t, g.Buyer, g.exchangePath(), g.exchange(other, start, start.Add(time.Hour)), 200, "")
	if decode[exchanged](t, dearer.Data) != (exchanged{Amount: moneytest.Prices[other]}) {
		t.Fatalf("another price: %s", dearer.Data)
	}
	g.wantEnd(t, s, start.Add(time.Hour)) // the old stay is as before
	order := s.payHeld(t, g, moneytest.Prices[other])
	s.wantState(t, order.OrderID, "DONE")
	s.await(t, g.order.OrderID, "CANCELED")
	s.answer(t, g.Buyer, "/v2/keys/"+g.key+"/end", nil, 400, "ResourceNotExistException") // the old key is revoked
}

// TestExchangeRepeated: the same request once more, as after a lost answer, sends the guest no second message, nor does a change by staff to
// the room and time that the stay has.
func TestExchangeRepeated(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	start := g.wish.Start.Add(24 * time.Hour)
	for range 2 {
		same := s.answer(t, g.Buyer, g.exchangePath(), g.exchange(g.wish.Room, start, start.Add(time.Hour)), 200, "")
		if !decode[exchanged](t, same.Data).Moved {
			t.Fatalf("same price: %s", same.Data)
		}
	}
	for _, reason := range []string{"first", "again"} {
		move := reserve.MoveRequest{ID: booking.ReservationID(g.id), Room: g.wish.Room, Times: local(start, start.Add(time.Hour)), By: hq, Reason: reason}
		if err := s.Replica(t).Move(s.ctx, move); err != nil {
			t.Fatal(err)
		}
	}
	g.wantEnd(t, s, start.Add(time.Hour))
	if n := s.count(t, `select count(*) from message where reservation_id = $1 and template = 'reservation-moved'`, g.id); n != 1 {
		t.Errorf("got %d messages about one move", n)
	}
}

// TestExchangeAfterAnother: a guest who holds a longer stay at another price and then takes the same price is not kept from it by
// the own hold, which is released.
func TestExchangeAfterAnother(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	start := g.wish.Start.Add(24 * time.Hour)
	s.answer(t, g.Buyer, g.exchangePath(), g.exchange(g.wish.Room, start, start.Add(2*time.Hour)), 200, "")
	same := s.answer(t, g.Buyer, g.exchangePath(), g.exchange(g.wish.Room, start, start.Add(time.Hour)), 200, "")
	if !decode[exchanged](t, same.Data).Moved {
		t.Errorf("same price: %s", same.Data)
	}
	g.wantEnd(t, s, start.Add(time.Hour))
	if n := s.count(t, `select count(*) from reservation where state = 'HOLD'`); n != 0 {
		t.Errorf("%d holds", n)
	}
}

// TestExchangeRejected: nothing changes for another guest, after the deadline, for a taken time, or without an account for a
// deposit.
func TestExchangeRejected(t *testing.T) {
	t.Parallel()
	s := open(t)
	g, other, deposited := s.loggedIn(t, sandbox.MethodCard), s.loggedIn(t, sandbox.MethodCard), s.loggedIn(t, sandbox.MethodVirtualAccount)
	start := g.wish.Start.Add(48 * time.Hour)
	try := func(name string, b guest, path string, body map[string]any, status int, errorType string) {
		t.Helper()
		reply, err := b.Post(s.ctx, path, body)
		if err != nil || reply.HTTP != status || reply.ErrorType != errorType {
			t.Errorf("%s: %d %s, want %d %s (%v)", name, reply.HTTP, reply.Raw, status, errorType, err)
		}
	}
	fine := g.exchange(g.wish.Room, start, start.Add(time.Hour))
	try("another guest", other, g.exchangePath(), fine, 403, "AuthorizationException")
	try("unknown", g, "/v2/my-reservations/999999/exchange", fine, 404, "ResourceNotFoundException")
	try("taken", g, g.exchangePath(), g.exchange(other.wish.Room, other.wish.Start, other.wish.Start.Add(time.Hour)), 409, "ResourceAlreadyExistException")
	try("its own time at another price", g, g.exchangePath(), g.exchange(g.wish.Room, g.wish.Start, g.wish.Start.Add(2*time.Hour)), 409, "ResourceAlreadyExistException")
	try("over five hours", g, g.exchangePath(), g.exchange(1, start, start.Add(6*time.Hour)), 400, "IllegalArguemntError")
	try("no such room", g, g.exchangePath(), g.exchange(99, start, start.Add(time.Hour)), 404, "ResourceNotFoundException")
	try("the past", g, g.exchangePath(), g.exchange(1, start.Add(-72*time.Hour), start.Add(-71*time.Hour)), 400, "IllegalArguemntError")
	try("beyond the horizon", g, g.exchangePath(), g.exchange(1, start.Add(9000*time.Hour), start.Add(9001*time.Hour)), 400, "IllegalArguemntError")
	dear := deposited.exchange(deposited.wish.Room, start, start.Add(2*time.Hour))
	try("no account", deposited, deposited.exchangePath(), dear, 400, "IllegalArguemntError")
	s.Clock.Advance(g.wish.Start.Add(-30*time.Minute).Sub(s.Clock.Now()) + time.Second)
	try("too late", g, g.exchangePath(), fine, 400, "IllegalArguemntError")
	for _, b := range []guest{g, other, deposited} {
		s.wantState(t, b.order.OrderID, "DONE")
	}
	if n := s.count(t, `select count(*) from reservation where state = 'HOLD'`); n != 0 {
		t.Errorf("%d holds", n)
	}
}

// TestExchangeDeposited: the refund of a deposit goes to the account that the exchange named.
func TestExchangeDeposited(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodVirtualAccount)
	start := g.wish.Start.Add(24 * time.Hour)
	reply := s.answer(t, g.Buyer, g.exchangePath(), refundAccount(g.exchange(g.wish.Room, start, start.Add(2*time.Hour))), 200, "")
	order := s.payHeld(t, g, decode[exchanged](t, reply.Data).Amount)
	s.wantState(t, order.OrderID, "DONE")
	s.await(t, g.order.OrderID, "CANCELED")
	if n := s.count(t, `select count(*) from reservation where replaced_account is not null`); n != 0 {
		t.Error("the account is kept after the refund")
	}
}

// TestExchangeExtended: an extended stay is exchanged as a whole.
func TestExchangeExtended(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	extended := g.hold(t, s, g.end().Add(time.Hour))
	s.pay(t, g.Buyer, extended, sandbox.MethodCard)
	start := g.wish.Start.Add(24 * time.Hour)
	two := g.exchange(g.wish.Room, start, start.Add(2*time.Hour)) // as much as an hour and its extension by an hour
	if same := s.answer(t, g.Buyer, g.exchangePath(), two, 200, ""); !decode[exchanged](t, same.Data).Moved {
		t.Fatalf("same price: %s", same.Data)
	}
	g.wantEnd(t, s, start.Add(2*time.Hour))
	reply := s.answer(t, g.Buyer, g.exchangePath(), g.exchange(g.wish.Room, start.Add(24*time.Hour), start.Add(25*time.Hour)), 200, "")
	order := s.payHeld(t, g, decode[exchanged](t, reply.Data).Amount)
	s.wantState(t, order.OrderID, "DONE")
	s.await(t, g.order.OrderID, "CANCELED")
	s.await(t, extended.OrderID, "CANCELED")
}

// TestExchangeOfBegunStay: an exchange whose payment is known only after the old stay has begun is refunded, and the guest
// keeps the old stay.
func TestExchangeOfBegunStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	start := g.wish.Start.Add(24 * time.Hour)
	reply := s.answer(t, g.Buyer, g.exchangePath(), g.exchange(g.wish.Room, start, start.Add(2*time.Hour)), 200, "")
	amount := decode[exchanged](t, reply.Data).Amount
	registered := s.answer(t, g.Buyer, "/payment", map[string]any{"amount": amount, "name": "홍길동", "mobileNum": g.wish.Mobile}, 200, "")
	order := decode[struct{ OrderID string }](t, registered.Data).OrderID
	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order, Amount: amount, Method: sandbox.MethodCard})
	if err != nil {
		t.Fatal(err)
	}
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit, Times: 1})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Times: -1, Status: 500})
	s.answer(t, g.Buyer, "/payment/confirm", moneytest.Confirm{PaymentKey: key, OrderID: order, Amount: amount}, 503, "PaymentPendingException")
	s.Clock.Advance(g.wish.Start.Sub(s.Clock.Now()))
	s.Sandbox.ClearFaults()
	s.await(t, order, "CANCELED")
	s.wantState(t, g.order.OrderID, "DONE")
}

// TestEndStay: a guest ends a stay at the next mark; its room is free after the margin, and its key opens until then.
func TestEndStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.guest(t, sandbox.MethodCard)
	end := func(status int) (freed string) {
		t.Helper()
		reply, err := g.Post(s.ctx, "/v2/keys/"+g.key+"/end", nil)
		if err != nil || reply.HTTP != status {
			t.Fatalf("%d %s, want %d (%v)", reply.HTTP, reply.Raw, status, err)
		}
		if status != 200 {
			return ""
		}
		answer := decode[struct {
			FreedFromDateTime string
			Refund            *int
		}](t, reply.Data)
		if answer.Refund == nil || *answer.Refund != 0 {
			t.Fatalf("refund: %s", reply.Raw)
		}
		return answer.FreedFromDateTime
	}
	end(400) // it has not begun
	extended := g.hold(t, s, g.end().Add(time.Hour))
	s.pay(t, g.Buyer, extended, sandbox.MethodCard)
	unpaid := g.hold(t, s, g.end().Add(70*time.Minute))
	s.Clock.Advance(g.wish.Start.Sub(s.Clock.Now()) + 25*time.Minute)
	want := g.wish.Start.Add(30 * time.Minute)
	for range 2 { // the second one changes nothing
		if freed := end(200); freed != moneytest.Wire(want) {
			t.Fatalf("freed from %s, want %s", freed, moneytest.Wire(want))
		}
	}
	companion := s.answer(t, g.Buyer, "/v2/keys/"+g.key+"/companions", map[string]string{"label": "친구"}, 200, "")
	shared := decode[struct{ Key string }](t, companion.Data)
	s.answer(t, g.Buyer, "/v2/keys/"+shared.Key+"/end", nil, 403, "AuthorizationException")
	if state, _ := s.state(t, unpaid.OrderID); state != "RELEASED" && state != "EXPIRED" { // the sweep may have been first
		t.Errorf("the unpaid extension is %s", state)
	}
	g.wantEnd(t, s, want)
	if err := s.buyer().Hold(s.ctx, moneytest.Wish{Room: g.wish.Room, Start: want}); err == nil {
		t.Error("the margin was sold")
	}
	if err := s.buyer().Hold(s.ctx, moneytest.Wish{Room: g.wish.Room, Start: want.Add(10 * time.Minute)}); err != nil {
		t.Error(err)
	}
	s.wantState(t, g.order.OrderID, "DONE") // what was paid stands
	s.wantState(t, extended.OrderID, "DONE")
	s.Clock.Advance(5 * time.Minute)
	if freed := end(200); freed != moneytest.Wire(want) { // repeated after the mark
		t.Errorf("freed from %s, want %s", freed, moneytest.Wire(want))
	}
	s.exec(t, `update reservation_move set reason = $1`, "정정")
	end(410) // another end
	reply, err := g.Do(s.ctx, http.MethodGet, "/v2/keys/"+g.key+"/why?branch=gangnam&door=room", nil)
	if err != nil || decode[struct{ Code string }](t, reply.Data).Code != "too-late" { // the stay did not move
		t.Errorf("why after the end: %s, %v, want too-late", reply.Raw, err)
	}
}
