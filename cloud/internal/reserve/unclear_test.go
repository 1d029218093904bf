package reserve_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestUnclearPurchaseIsEnded: the provider does not return the outcome of a payment. After 15 minutes an administrator ends
// the purchase: the time is free at once, and the guest is neither told "not charged" nor charged for nothing. Once the
// provider answers, a captured payment is refunded, and the guest receives one message about the outcome.
func TestUnclearPurchaseIsEnded(t *testing.T) {
	t.Parallel()
	for _, captured := range []bool{true, false} {
		t.Run(fmt.Sprint("captured ", captured), func(t *testing.T) {
			t.Parallel()
			s := open(t)
			b, order, w := s.order(t, sandbox.MethodCard)
			if captured {
				s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit})
			} else {
				s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Status: 503, Times: -1})
			}
			s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 503, Times: -1})
			s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
			id := s.wantState(t, order.OrderID, "CONFIRMING")
			replica := s.Replica(t)
			end := func(by account.Principal) error {
				return replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(id), Status: string(booking.StatusPaymentTab), By: by})
			}
			if err := end(hq); !errors.Is(err, reserve.ErrPaymentPending) {
				t.Fatalf("ended at once: %v, want pending", err)
			}
			s.Clock.Advance(16 * time.Minute)
			s.eventually(t, "the unknown outcome is listed", func() bool { return s.open(t, order.OrderID, "stuck") == 1 })
			for _, by := range []account.Principal{
				{LoginType: account.LoginAdmin, AdminLoginID: "desk", Role: account.FrontDesk, Branches: []string{"gangnam"}},
				{LoginType: account.LoginAdmin, AdminLoginID: "other", Role: account.Manager, Branches: []string{"hongdae"}},
			} {
				if err := end(by); !errors.Is(err, account.ErrRoleForbidden) && !errors.Is(err, account.ErrBranchForbidden) {
					t.Errorf("ended by %s: %v, want forbidden", by.AdminLoginID, err)
				}
			}
			if err := end(hq); err != nil {
				t.Fatal(err)
			}
			s.wantState(t, order.OrderID, "RELEASED")
			if n := s.open(t, order.OrderID, "stuck"); n != 0 {
				t.Errorf("%d discrepancies open, want none", n)
			}
			s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
			if _, err := s.buyer().Order(s.ctx, w); err != nil {
				t.Errorf("the time is not free: %v", err)
			}
			s.Sandbox.ClearFaults()
			outcome := "payment-failed"
			if captured {
				outcome = "payment-returned"
			}
			s.Clock.Advance(3 * time.Minute)
			s.awaitMessages(t, w.Mobile, outcome)
			s.nothingHeld(t)
			reply, err := b.Post(s.ctx, "/payment/confirm", order)
			if err != nil {
				t.Fatal(err)
			}
			if reply.HTTP != 400 && reply.HTTP != 401 {
				t.Errorf("after the outcome: %d %s, want a refusal", reply.HTTP, reply.Raw)
			}
		})
	}
}

// TestEndedPurchaseIsNotListed: an administrator ends an unclear purchase while the sweep lists it. The purchase is not listed
// again after its end.
func TestEndedPurchaseIsNotListed(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Status: 503, Times: -1})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 503, Times: -1})
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	id := booking.ReservationID(s.wantState(t, order.OrderID, "CONFIRMING"))
	s.Clock.Advance(16 * time.Minute)
	s.eventually(t, "the unknown outcome is listed", func() bool { return s.open(t, order.OrderID, "stuck") == 1 })
	replica, listed := s.Replica(t), make(chan error, 1)
	err := s.DB.InTx(s.ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, id)
		if err != nil {
			return err
		}
		go func() { listed <- replica.ReportStuck(s.ctx) }()
		s.eventually(t, "the listing waits for the reservation", func() bool {
			return s.count(t, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = $1`, "Lock") > 0
		})
		if err := postgres.AbandonOrder(ctx, tx, r, now); err != nil {
			return err
		}
		if _, err := postgres.SetState(ctx, tx, id, booking.Confirming, booking.Released); err != nil {
			return err
		}
		return postgres.SettleDiscrepancy(ctx, tx, order.OrderID, "stuck", "settled", now)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-listed; err != nil {
		t.Fatal(err)
	}
	if n := s.open(t, order.OrderID, "stuck"); n != 0 {
		t.Errorf("%d discrepancies are open after the end, want none", n)
	}
	s.Sandbox.ClearFaults()
}

// TestUnclearPurchaseAgainstItsAnswer: administrators end a purchase while the provider answers again. It is ended and refunded
// once, or confirmed; the audit at the end of the test compares the books.
func TestUnclearPurchaseAgainstItsAnswer(t *testing.T) {
	t.Parallel()
	s := open(t)
	replicas := []*reserve.Service{s.Replica(t), s.Replica(t), s.Replica(t)}
	type purchase struct {
		order moneytest.Confirm
		wish  moneytest.Wish
		id    int64
	}
	var purchases []purchase
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit, Times: 6})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 503, Times: -1})
	for range 6 {
		b, order, w := s.order(t, sandbox.MethodCard)
		s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
		purchases = append(purchases, purchase{order, w, s.wantState(t, order.OrderID, "CONFIRMING")})
	}
	s.Clock.Advance(16 * time.Minute)
	var ends sync.WaitGroup
	for _, one := range purchases {
		for _, replica := range replicas {
			ends.Go(func() {
				err := replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(one.id), Status: string(booking.StatusPaymentTab), By: hq})
				switch {
				case err == nil, errors.Is(err, reserve.ErrNotFound), errors.Is(err, reserve.ErrStatusMismatch):
				default:
					t.Errorf("order %s: %v", one.order.OrderID, err)
				}
			})
		}
	}
	s.Sandbox.ClearFaults()
	ends.Wait()
	s.Clock.Advance(3 * time.Minute)
	for _, one := range purchases {
		s.eventually(t, "the outcome is known", func() bool {
			state, _ := s.state(t, one.order.OrderID)
			return state == "DONE" || state == "CANCELED"
		})
		outcome := "payment-returned"
		if state, _ := s.state(t, one.order.OrderID); state == "DONE" {
			outcome = "reservation-confirmed"
		}
		s.awaitMessages(t, one.wish.Mobile, outcome)
	}
}
