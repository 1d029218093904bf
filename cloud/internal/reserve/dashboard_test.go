package reserve_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// dashboard cancels an order in the provider's dashboard; 0 won: completely.
func (s *shop) dashboard(t *testing.T, order moneytest.Confirm, won int, to *toss.RefundAccount) {
	t.Helper()
	request := toss.CancelRequest{Reason: "고객 요청", RefundAccount: to}
	if won > 0 {
		request.Amount = &won
	}
	if _, err := s.Replica(t).Payments.Cancel(s.ctx, widget, "dashboard-"+order.OrderID, order.PaymentKey, request); err != nil {
		t.Fatal(err)
	}
}

// TestDashboardOvertakesTheAnswer: a payment is captured, its response is lost, and the provider's dashboard cancels it before
// the service knows. The guest receives the outcome once, and both movements are in the books.
func TestDashboardOvertakesTheAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		won             int // returned; 0: everything
		state, template string
	}{
		"completely": {0, "HOLD", "payment-returned"},
		"in part":    {5000, "DONE", "reservation-confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			b, order, w := s.order(t, sandbox.MethodCard)
			s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit})
			s.unreachable(t)
			s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
			s.dashboard(t, order, c.won, nil)
			s.Sandbox.ClearFaults()
			s.awaitMessages(t, w.Mobile, c.template)
			id := s.wantState(t, order.OrderID, c.state)
			returned := c.won
			if returned == 0 {
				returned = order.Amount
			}
			if n := s.count(t, `select coalesce(sum(won), 0) from money_entry where reservation_id = $1 and kind = 'paid'`, id); n != order.Amount {
				t.Errorf("%d won booked as paid, want %d", n, order.Amount)
			}
			if n := s.count(t, `select coalesce(-sum(won), 0) from money_entry where reservation_id = $1 and kind = 'refunded'`, id); n != returned {
				t.Errorf("%d won booked as refunded, want %d", n, returned)
			}
		})
	}
}

// TestDashboardReturnsADepositBeforeTheAnswerIsKnown: the response with a virtual account is lost, the guest pays, the dashboard returns the
// deposit before the service knows of it, and the bank rejects the transfer. The refund is listed, and an administrator completes it.
func TestDashboardReturnsADepositBeforeTheAnswerIsKnown(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.order(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit})
	s.unreachable(t)
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	if _, err := s.Sandbox.Deposit(order.OrderID); err != nil {
		t.Fatal(err)
	}
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError})
	s.dashboard(t, order, 0, &guestAccount)
	s.eventually(t, "the bank has rejected the transfer", func() bool { return s.Sandbox.Bounced(order.OrderID) == order.Amount })
	s.Sandbox.ClearFaults()
	id := s.await(t, order.OrderID, "CANCELED")
	s.awaitRefund(t, id, "FAILED")
	s.awaitMessages(t, w.Mobile, "reservation-canceled", "refund-account")
	if err := s.Replica(t).RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &guestAccount, By: hq}); err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "COMPLETED")
	s.nothingHeld(t)
}

// TestReversalDuringCancellationIsBooked: the bank reverses a deposit, and the guest cancels before the service knows. The
// reversal is in the books although the reservation was not confirmed any more when it became known.
func TestReversalDuringCancellationIsBooked(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
	if _, err := s.Sandbox.Reverse(order.OrderID); err != nil {
		t.Fatal(err)
	}
	// Refused, or accepted if the service has looked the payment up meanwhile.
	if _, err := b.Post(s.ctx, "/payment/cancel", refundAccount(map[string]any{"id": id, "cancelReason": "변심"})); err != nil {
		t.Fatal(err)
	}
	s.await(t, order.OrderID, "CANCELED")
	if n := s.count(t, `select count(*) from money_entry where reservation_id = $1 and kind = 'reversed'`, id); n != 1 {
		t.Errorf("%d reversals booked, want 1", n)
	}
}

// TestFailedTransferOfTheDashboard: the bank rejects the transfer of a deposit that the provider's dashboard canceled. The
// refund is listed, and an administrator repeats it.
func TestFailedTransferOfTheDashboard(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError})
	s.dashboard(t, order, 0, &guestAccount)
	s.awaitRefund(t, id, "FAILED")
	s.wantState(t, order.OrderID, "CANCELED")
	if n := s.open(t, order.OrderID, "refund"); n != 1 {
		t.Errorf("%d discrepancies, want 1", n)
	}
	request := reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &guestAccount, By: hq}
	if err := s.Replica(t).RetryRefund(s.ctx, request); err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "COMPLETED")
	s.nothingHeld(t)
}

// TestWhyAfterTheDashboard: a card payment that the provider's dashboard canceled has no refund of ours, but its money is back.
func TestWhyAfterTheDashboard(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.guest(t, sandbox.MethodCard)
	s.dashboard(t, g.order, 0, nil)
	s.reconcile(t, s.Replica(t))
	s.wantState(t, g.order.OrderID, "CANCELED")
	reply, err := g.Do(s.ctx, http.MethodGet, "/v2/keys/"+g.key+"/why?branch=gangnam&door=room", nil)
	if err != nil || decode[struct{ Code string }](t, reply.Data).Code != "refunded" {
		t.Errorf("why: %s, %v, want refunded", reply.Raw, err)
	}
}

// TestDashboardCancellationDuringAnOutage: the comparison reaches back to the last complete one, so a cancellation in the
// dashboard is found although the provider was unreachable for longer than a light comparison covers.
func TestDashboardCancellationDuringAnOutage(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.bought(t, sandbox.MethodCard)
	replica := s.Replica(t)
	for range 2 { // a full and a light comparison
		if _, err := replica.ReconcileDue(s.ctx, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(3 * time.Minute)
	}
	s.dashboard(t, order, 0, nil)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 503, Times: -1})
	s.Clock.Advance(time.Hour)
	if _, err := replica.ReconcileDue(s.ctx, 24*time.Hour); err == nil {
		t.Error("a comparison during the outage has no error")
	}
	s.Sandbox.ClearFaults()
	s.Clock.Advance(3 * time.Minute)
	if _, err := replica.ReconcileDue(s.ctx, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	s.wantState(t, order.OrderID, "CANCELED")
}

// E5: messages have a queue of their own, so no other job keeps one waiting, such as checks of payments while the provider
// hangs.
func TestMessagesHaveAQueueOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.bought(t, sandbox.MethodCard)
	const jobs = `select count(*) from river_job where kind = $1 and queue = 'messages'`
	if s.count(t, jobs, queue.SendMessage{}.Kind()) == 0 {
		t.Error("the message of a purchase is not in the queue of messages")
	}
	if n := s.count(t, `select count(*) from river_job where (kind = $1) <> (queue = 'messages')`, queue.SendMessage{}.Kind()); n > 0 {
		t.Errorf("%d jobs share a queue with messages, or messages with them", n)
	}
}
