package reserve_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestCancelTogether cancels two hundred reservations, each concurrently by the customer, an administrator and the sweep.
func TestCancelTogether(t *testing.T) {
	t.Parallel()
	s := open(t, servicetest.ManyConnections)
	replica := s.Replica(t)
	admin := s.buyer()
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	const reservations, atOnce = 200, 10
	var bought atomic.Int64
	errs := together(atOnce, func(int) error {
		for bought.Add(1) <= reservations {
			if err := s.cancelThrice(admin, replica); err != nil {
				return err
			}
		}
		return nil
	})
	if errs != nil {
		t.Fatal(errs)
	}
	ledger := s.Sandbox.Ledger()
	if ledger.Charged == 0 || ledger.Charged != ledger.Refunded {
		t.Errorf("charged %d won, refunded %d", ledger.Charged, ledger.Refunded)
	}
	if n := s.count(t, `select count(*) from refund where state = 'COMPLETED'`); n != reservations {
		t.Errorf("%d refunds", n)
	}
}

// cancelThrice buys an hour and cancels it three times concurrently.
func (s *shop) cancelThrice(admin *moneytest.Buyer, replica *reserve.Service) error {
	b, w := s.buyer(), s.wish(sandbox.MethodCard)
	order, err := b.Buy(s.ctx, w)
	if err != nil {
		return err
	}
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		return err
	}
	var id int64
	if err := s.DB.Pool.QueryRow(s.ctx, `select id from reservation where order_id = $1`, order.OrderID).Scan(&id); err != nil {
		return err
	}
	err = together(3, func(i int) error {
		switch i {
		case 0:
			reply, err := b.Post(s.ctx, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"})
			return errors.Join(err, reply.OK())
		case 1:
			reply, err := admin.Do(s.ctx, http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", id), nil)
			if strings.Contains(reply.Raw, "bookingStatus 값이 올바르지 않습니다.") {
				return nil // already cancelled
			}
			return errors.Join(err, reply.OK())
		}
		err := replica.Settle(s.ctx, booking.ReservationID(id))
		if errors.Is(err, reserve.ErrPaymentPending) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	refunds := 0
	for _, p := range s.Sandbox.Payments(order.OrderID) {
		refunds += len(p.Cancels)
	}
	if refunds != 1 {
		return fmt.Errorf("order %s was refunded %d times", order.OrderID, refunds)
	}
	return nil
}

// paid returns a confirmed purchase whose buyer is logged in. The service looks it up again only when there is a reason to.
func (s *shop) paid(t *testing.T, method string) (*moneytest.Buyer, moneytest.Confirm, int64) {
	t.Helper()
	b, order, w := s.bought(t, method)
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	if method == sandbox.MethodVirtualAccount {
		s.deposit(t, order.OrderID)
	}
	return b, order, s.wantState(t, order.OrderID, "DONE")
}

// swept waits until the sweep that has begun is over. It may have read the callback of a deposit before that was applied, and would
// look up what a test does at the provider next.
func (s *shop) swept(t *testing.T) {
	t.Helper()
	const sweeps = `select count(*) from work_success where work = $1 and at > $2`
	successes, err := postgres.LastSuccesses(s.ctx, s.DB.Pool)
	if err != nil {
		t.Fatal(err)
	}
	last := successes[postgres.WorkSweep]
	s.eventually(t, "a sweep ends", func() bool { return s.count(t, sweeps, postgres.WorkSweep, last) == 1 })
}

// deposit pays into an order's account and waits until the callback is answered.
func (s *shop) deposit(t *testing.T, order string) {
	t.Helper()
	s.delivered(t, s.Sandbox.Deposit, order)
}

// reverse lets the bank take a deposit back.
func (s *shop) reverse(t *testing.T, order string) {
	t.Helper()
	s.delivered(t, s.Sandbox.Reverse, order)
}

// delivered changes a payment at the provider and waits until its callback was taken, also by a sweep in progress.
func (s *shop) delivered(t *testing.T, change func(orderID string) (*sandbox.Delivery, error), order string) {
	t.Helper()
	delivery, err := change(order)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := delivery.First(s.ctx); err != nil || reply.Status != 200 {
		t.Fatalf("callback: %+v, %v", reply, err)
	}
	s.swept(t)
}

// TestRefusedRefundRestoresKey: if the provider rejects a refund, the reservation is confirmed again, with its old key.
func TestRefusedRefundRestoresKey(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodCard)
	before := s.key(t, id)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "NOT_CANCELABLE_PAYMENT"})
	cancel := map[string]any{"id": id, "cancelReason": "변심"}
	reply := s.answer(t, b, "/payment/cancel", cancel, 400, "PaymentFailedException")
	if reply.ErrorCode != "NOT_CANCELABLE_PAYMENT" {
		t.Errorf("code %q", reply.ErrorCode)
	}
	s.wantState(t, order.OrderID, "DONE")
	if after := s.key(t, id); after != before || before == "" {
		t.Errorf("key %s, was %s", after, before)
	}
	s.answer(t, b, "/payment/cancel", cancel, 200, "")
	s.wantState(t, order.OrderID, "CANCELED")
}

// TestKeyDiesFirst: while the outcome of a refund is unknown, the key is revoked and the slot is not free.
func TestKeyDiesFirst(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sandbox.Fault{
		"answer lost":  {Kind: sandbox.FaultDropAfterCommit},
		"not executed": {Kind: sandbox.FaultError, Status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			b, order, w := s.order(t, sandbox.MethodCard)
			s.answer(t, b, "/payment/confirm", order, 200, "")
			if err := b.Login(s.ctx, w.Mobile); err != nil {
				t.Fatal(err)
			}
			id := s.wantState(t, order.OrderID, "DONE")
			fault.Target = sandbox.TargetCancel
			s.fault(t, fault)
			s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Times: -1})
			s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 503, "PaymentPendingException")
			s.wantState(t, order.OrderID, "CANCELING")
			if s.key(t, id) != "" {
				t.Error("the key lives while money is on its way back")
			}
			if err := s.buyer().Hold(s.ctx, w); err == nil {
				t.Error("the slot was sold before the money was out")
			}
			s.Sandbox.ClearFaults()
			s.await(t, order.OrderID, "CANCELED")
		})
	}
}

// TestFailedRefundIsRetried: if the bank rejects a refund, it is listed, and an administrator sends it once to a corrected
// account.
func TestFailedRefundIsRetried(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError})
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 400, "IllegalArguemntError")
	s.answer(t, b, "/payment/cancel", refundAccount(map[string]any{"id": id, "cancelReason": "변심"}), 200, "")
	s.wantState(t, order.OrderID, "CANCELED")
	s.awaitRefund(t, id, "FAILED")
	if n := s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and kind = 'refund'`, order.OrderID); n != 1 {
		t.Error("no discrepancy reports the failed refund")
	}
	retry := reserve.RetryRefundRequest{
		ID: booking.ReservationID(id), Account: &toss.RefundAccount{Bank: "88", Number: "11012345678", Holder: "홍길동"},
		By: hq,
	}
	if err := s.Replica(t).RetryRefund(s.ctx, retry); err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "COMPLETED")
	if err := s.Replica(t).RetryRefund(s.ctx, retry); !errors.Is(err, reserve.ErrNotFound) {
		t.Errorf("retried a refund that is complete: %v", err)
	}
	if l := s.Sandbox.Ledger(); l.Charged != l.Refunded {
		t.Errorf("charged %d, refunded %d", l.Charged, l.Refunded)
	}
}

// TestCallbacksDoNotDelayTransfer: look-ups that callbacks cause do not postpone the next look-up of a refund at the bank.
func TestCallbacksDoNotDelayTransfer(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultSlow})
	s.answer(t, b, "/payment/cancel", refundAccount(map[string]any{"id": id, "cancelReason": "변심"}), 200, "")
	s.wantState(t, order.OrderID, "CANCELED")
	for range 3 {
		if err := s.Replica(t).Settle(s.ctx, booking.ReservationID(id)); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.count(t, `
		select count(*) from payment p join refund f using (reservation_id)
		where reservation_id = $1 and f.state = 'PENDING' and p.check_at > now() + interval '50 seconds'`, id); n != 0 {
		t.Error("the next look-up is nearly a minute away or more")
	}
}

// awaitRefund waits until the latest refund of a reservation is in a state.
func (s *shop) awaitRefund(t *testing.T, id int64, want string) {
	t.Helper()
	s.eventually(t, "refund "+want, func() bool {
		return s.count(t, `select count(*) from refund where reservation_id = $1 and state = $2`, id, want) == 1
	})
}

// TestSecondCancellationNamesNoOtherAccount: two administrators cancel a stay while the provider does not answer, and name different accounts. The
// money goes to the first account, so the record shows that one, and the refund waits for no approval of the other.
func TestSecondCancellationNamesNoOtherAccount(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500, Times: -1})
	other := toss.RefundAccount{Bank: "88", Number: "110999888777", Holder: "다른 사람"}
	replica := s.Replica(t)
	for _, request := range []reserve.AdminCancelRequest{{By: hq, Account: &guestAccount}, {By: gangnamManager, Account: &other}} {
		request.ID, request.Status = booking.ReservationID(id), "paid"
		if err := replica.AdminCancel(s.ctx, request); !errors.Is(err, reserve.ErrPaymentPending) {
			t.Fatalf("by %s: %v, want ErrPaymentPending", request.By.AdminLoginID, err)
		}
	}
	if n := s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'REQUESTED' and account_by is null and account_summary like '%6789%'`, id); n != 1 {
		t.Errorf("%d refunds to the first account are requested, want 1", n)
	}
	if n := s.count(t, `select count(*) from audit where action = 'reservation.cancel' and target = ($1::bigint)::text and detail ->> 'bank' = '88'`, id); n != 0 {
		t.Error("the audit log names the second account, which receives nothing")
	}
	s.Sandbox.ClearFaults()
	s.await(t, order.OrderID, "CANCELED")
	s.refundsDone(t, id)
}
