package reserve_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// exchanging returns a guest with the held exchange of a stay for two hours a day later, and its order.
func (s *shop) exchanging(t *testing.T, g guest, later time.Duration) held {
	t.Helper()
	start := g.wish.Start.Add(later)
	reply := s.answer(t, g.Buyer, g.exchangePath(), refundAccount(g.exchange(g.wish.Room, start, start.Add(2*time.Hour))), 200, "")
	order := held{Amount: decode[exchanged](t, reply.Data).Amount}
	reply = s.answer(t, g.Buyer, "/payment", map[string]any{"amount": order.Amount, "name": "홍길동", "mobileNum": g.wish.Mobile}, 200, "")
	order.OrderID = decode[struct{ OrderID string }](t, reply.Data).OrderID
	return order
}

// notWaiting checks that the account of an order is being closed before its deposit is overdue.
func (s *shop) notWaiting(t *testing.T, order string) {
	t.Helper()
	if state, _ := s.state(t, order); state == "WAITING_FOR_DEPOSIT" {
		t.Errorf("order %s still waits for its deposit", order)
	}
}

// TestDeclinedRefundOfExchangedStay: if the provider declines the refund of an exchanged stay, the stay remains ended and an
// administrator has to return its money. Confirmed again, it would give the guest two stays. The guest's list shows one.
func TestDeclinedRefundOfExchangedStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	order := s.exchanging(t, g, 24*time.Hour)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "EXCEED_MAX_REFUND_DUE", Times: 1, Status: 403})
	s.pay(t, g.Buyer, order, sandbox.MethodCard)
	s.eventually(t, "the refund is declined", func() bool {
		return s.count(t, `select count(*) from refund where reservation_id = $1 and state in ('FAILED', 'REFUSED')`, g.id) == 1
	})
	s.wantState(t, g.order.OrderID, "CANCELING")
	s.wantState(t, order.OrderID, "DONE")
	reply, err := g.Do(s.ctx, http.MethodGet, "/my-reservations", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range decode[[]struct {
		ID     int64
		Status string
	}](t, reply.Data) {
		if want := map[bool]string{true: "CANCELED", false: "DONE"}[r.ID == int64(g.id)]; r.Status != want {
			t.Errorf("reservation %d is listed as %s, want %s", r.ID, r.Status, want)
		}
	}
	if err := s.Replica(t).RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(g.id), By: hq}); err != nil {
		t.Fatal(err)
	}
	s.wantState(t, g.order.OrderID, "CANCELED")
}

// TestExchangeEndsWaitingExchange: another exchange of a stay closes the account of the first one, so only one is confirmed.
func TestExchangeEndsWaitingExchange(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	first := s.exchanging(t, g, 24*time.Hour)
	s.pay(t, g.Buyer, first, sandbox.MethodVirtualAccount)
	s.wantState(t, first.OrderID, "WAITING_FOR_DEPOSIT")
	second := s.exchanging(t, g, 48*time.Hour)
	s.notWaiting(t, first.OrderID)
	s.await(t, first.OrderID, "CANCELED")
	if _, err := s.Sandbox.Deposit(first.OrderID); err == nil {
		t.Error("the account of the first exchange accepts a deposit")
	}
	s.pay(t, g.Buyer, second, sandbox.MethodCard)
	s.wantState(t, second.OrderID, "DONE")
	s.await(t, g.order.OrderID, "CANCELED")
}

// TestSecondExchangeAfterDeposit: the deposit of the first exchange arrives while its account is being closed, so the first one is
// confirmed, and the second one is not charged.
func TestSecondExchangeAfterDeposit(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	first := s.exchanging(t, g, 24*time.Hour)
	s.pay(t, g.Buyer, first, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Times: 2, Status: 500})
	second := s.exchanging(t, g, 48*time.Hour)
	if _, err := s.Sandbox.Deposit(first.OrderID); err != nil {
		t.Fatal(err)
	}
	s.await(t, first.OrderID, "DONE")
	s.await(t, g.order.OrderID, "CANCELED")
	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: second.OrderID, Amount: second.Amount, Method: sandbox.MethodCard})
	if err != nil {
		t.Fatal(err)
	}
	confirm := moneytest.Confirm{PaymentKey: key, OrderID: second.OrderID, Amount: second.Amount}
	s.answer(t, g.Buyer, "/payment/confirm", confirm, 401, "ResourceTimeOutException")
}

// TestExchangeOfReversedDeposit: an exchange that is confirmed while the old stay waits for its deposit again closes its account.
func TestExchangeOfReversedDeposit(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodVirtualAccount)
	order := s.exchanging(t, g, 24*time.Hour)
	if _, err := s.Sandbox.Reverse(g.order.OrderID); err != nil {
		t.Fatal(err)
	}
	s.await(t, g.order.OrderID, "WAITING_FOR_DEPOSIT")
	s.pay(t, g.Buyer, order, sandbox.MethodCard)
	s.notWaiting(t, g.order.OrderID)
	s.await(t, g.order.OrderID, "CANCELED")
	s.wantState(t, order.OrderID, "DONE")
}

// TestStayEndsWithRefundedExtension: the money of a deposit of which parts have returned everything is not recorded as refunded
// once more when its stay ends.
func TestStayEndsWithRefundedExtension(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	extension := g.hold(t, s, g.end().Add(20*time.Minute))
	s.pay(t, g.Buyer, extension, sandbox.MethodVirtualAccount)
	if _, err := s.Sandbox.Deposit(extension.OrderID); err != nil {
		t.Fatal(err)
	}
	id := s.await(t, extension.OrderID, "DONE")
	if _, err := s.Replica(t).RefundPart(s.ctx, part(id, extension.Amount)); err != nil {
		t.Fatal(err)
	}
	s.refundsDone(t, id)
	s.dashboard(t, g.order, 0, nil)
	if err := s.Replica(t).Settle(s.ctx, booking.ReservationID(g.id)); err != nil {
		t.Fatal(err)
	}
	s.wantState(t, extension.OrderID, "CANCELED")
	s.refundsDone(t, id)
	if won := s.count(t, `select sum(amount) from refund where reservation_id = $1`, id); won != extension.Amount {
		t.Errorf("refunds of %d won are recorded, want %d", won, extension.Amount)
	}
}
