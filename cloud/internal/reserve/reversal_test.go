package reserve_test

import (
	"errors"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestReversalDuringRefund: the bank reverses a deposit while its refund waits for the provider. Nothing is left to return, so
// the account is closed and the refund ends with 0 won. (Seed 1277 of moneysim.)
func TestReversalDuringRefund(t *testing.T) {
	t.Parallel()
	begin := map[string]func(t *testing.T, s *shop) (order string, id int64){
		"stay": func(t *testing.T, s *shop) (string, int64) {
			b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			s.withoutRefunds(t)
			s.cancelLater(t, b, id)
			return order.OrderID, id
		},
		"part that the refund policy returns": func(t *testing.T, s *shop) (string, int64) {
			s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore": 10000, "percent": 100}, {"untilMinutesBefore": 10, "percent": 50}]`)
			b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			s.withoutRefunds(t)
			s.cancelLater(t, b, id)
			return order.OrderID, id
		},
		"extension": func(t *testing.T, s *shop) (string, int64) {
			g := s.loggedIn(t, sandbox.MethodCard)
			order := g.hold(t, s, g.end().Add(10*time.Minute))
			s.pay(t, g.Buyer, order, sandbox.MethodVirtualAccount)
			s.deposit(t, order.OrderID)
			id := s.wantState(t, order.OrderID, "DONE")
			s.withoutRefunds(t)
			s.cancelLater(t, g.Buyer, g.id)
			return order.OrderID, id
		},
		"late deposit": func(t *testing.T, s *shop) (string, int64) {
			order, id := s.lateDeposit(t)
			s.withoutRefunds(t)
			_ = s.Replica(t).RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &guestAccount, By: hq}) // pending
			return order, id
		},
	}
	for name, begin := range begin {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			order, id := begin(t, s)
			s.reverse(t, order)
			s.Sandbox.ClearFaults()
			replica := s.Replica(t)
			s.eventually(t, "the refund has not ended", func() bool {
				_ = replica.Settle(s.ctx, booking.ReservationID(id)) // the outcome is in the database
				return s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'REQUESTED'`, id) == 0
			})
			s.await(t, order, "CANCELED")
			if won := s.count(t, `select coalesce(sum(amount), 0) from refund where reservation_id = $1 and state <> 'REFUSED'`, id); won != 0 {
				t.Errorf("refunds of %d won of a deposit that the bank has reversed", won)
			}
			if won := s.count(t, `select coalesce(max(retained), 0) from payment where reservation_id = $1`, id); won != 0 {
				t.Errorf("%d won are left with the shop, which has received nothing", won)
			}
			if n := s.count(t, `select count(*) from message where reservation_id = $1 and template = 'refund-completed'`, id); n != 0 {
				t.Error("a message about a refund that was not made")
			}
		})
	}
}

// withoutRefunds has the provider answer each refund with "later".
func (s *shop) withoutRefunds(t *testing.T) {
	t.Helper()
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 429, Code: "TOO_MANY_REQUESTS", Times: -1})
}

// cancelLater cancels a reservation whose refund the provider does not make yet.
func (s *shop) cancelLater(t *testing.T, b *moneytest.Buyer, id int64) {
	t.Helper()
	s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 503, "PaymentPendingException")
}

// TestReversalBeforeRefund: the bank reverses a late deposit while its refund waits for the guest's account, or for the approval of an
// account. The link becomes void, and the account is closed. A deposit that arrives before that is not sent to the account without
// its approval.
func TestReversalBeforeRefund(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		t.Run(map[bool]string{false: "without an account", true: "account waits for approval"}[named], func(t *testing.T) {
			t.Parallel()
			s := open(t)
			order, id := s.lateDeposit(t)
			token, replica := s.refundToken(t, id), s.Replica(t)
			if named {
				s.nameStranger(t, id)
			}
			s.withoutRefunds(t)
			s.reverse(t, order)
			if err := replica.EnterRefundAccount(s.ctx, token, guestAccount); !errors.Is(err, reserve.ErrNoRefundLink) {
				t.Errorf("the link of a refund that is not due: got %v, want ErrNoRefundLink", err)
			}
			s.deposit(t, order) // once more
			s.Sandbox.ClearFaults()
			s.eventually(t, "an account is not asked for again", func() bool {
				_ = replica.Settle(s.ctx, booking.ReservationID(id)) // the outcome is in the database
				return s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'FAILED' and amount > 0`, id) == 1
			})
			s.reverse(t, order)
			s.awaitRefund(t, id, "COMPLETED")
			if won := s.count(t, `select sum(amount) from refund where reservation_id = $1`, id); won != 0 {
				t.Errorf("refunds of %d won of a deposit that the bank has reversed", won)
			}
			if n := s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and resolved_at is null`, order); n != 0 {
				t.Errorf("%d discrepancies are still open", n)
			}
		})
	}
}

// TestAccountStaysOpenAfterReversal: the bank reverses a deposit during the refund of a part by the refund policy, and the provider
// does not close the account. The reservation waits for its deposit again, so its attempt is open again, and no share is left with
// the shop.
func TestAccountStaysOpenAfterReversal(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore": 10, "percent": 50}]`)
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	const open = `select count(*) from payment where reservation_id = $1 and closed_at is null`
	if s.count(t, open, id) > 0 {
		t.Error("the attempt is open after the deposit")
	}
	s.withoutRefunds(t)
	s.cancelLater(t, b, id)
	if won := s.count(t, `select retained from payment where reservation_id = $1`, id); won != order.Amount/2 {
		t.Fatalf("the policy leaves %d won with the shop, want %d", won, order.Amount/2)
	}
	s.reverse(t, order.OrderID)
	s.Sandbox.ClearFaults()
	// More than once: a request of the service may still name the amount, which the provider rejects after a reversal.
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 400, Code: "REFUND_REJECTED", Times: -1})
	_ = s.Replica(t).Settle(s.ctx, booking.ReservationID(id)) // the outcome is in the database
	s.await(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	if won := s.count(t, `select coalesce(retained, 0) from payment where reservation_id = $1`, id); won != 0 {
		t.Errorf("%d won are left with the shop, which holds nothing", won)
	}
	if s.count(t, open, id) == 0 {
		t.Error("the attempt is closed although the account is open")
	}
}
