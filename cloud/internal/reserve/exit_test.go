package reserve_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// B1: the provider cannot refund a payment. An administrator refunds it outside the provider, and the room becomes free.
func TestSettledOutsideEndsAReservation(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.bought(t, sandbox.MethodCard)
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	id := s.wantState(t, order.OrderID, "DONE")
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "EXCEED_MAX_REFUND_DUE", Times: -1})
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 400, "PaymentFailedException")
	if n := s.open(t, order.OrderID, "refund-refused"); n != 1 {
		t.Errorf("%d discrepancies of the declined refund, want 1", n)
	}
	replica := s.Replica(t)
	request := reserve.OutsideRequest{ID: booking.ReservationID(id), Reason: "통신사 환불 불가", How: "계좌 이체", Reference: "2026-11-22 #4711", By: hq}
	got, err := replica.SettleOutside(s.ctx, request)
	if err != nil || got.Amount != order.Amount || got.Balance != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	s.wantState(t, order.OrderID, "CANCELED")
	if err := s.buyer().Hold(s.ctx, w); err != nil {
		t.Errorf("the room is not free: %v", err)
	}
	if _, err := replica.SettleOutside(s.ctx, request); !errors.Is(err, reserve.ErrNothingToRefund) {
		t.Errorf("settled twice: %v", err)
	}
	if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
		t.Errorf("settling again: %v", err)
	}
	if n := s.open(t, order.OrderID, ""); n != 0 {
		t.Errorf("%d discrepancies are open, want 0", n)
	}
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 0 {
		t.Errorf("reconciled: %+v", report)
	}
}

// open counts the unresolved discrepancies of an order; kind may be empty.
func (s *shop) open(t *testing.T, order, kind string) int {
	t.Helper()
	return s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and ($2 = '' or kind = $2) and resolved_at is null`, order, kind)
}

// B2: the provider answers a refund with an unlisted 4xx and still holds the money. After three attempts this counts as a
// refusal, and the reservation is confirmed again.
func TestUnlistedRefusalOfARefundIsDecided(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.bought(t, sandbox.MethodCard)
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	id := s.wantState(t, order.OrderID, "DONE")
	key := s.key(t, id)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 400, Code: "NEVER_HEARD_OF", Times: -1})
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 503, "PaymentPendingException")
	s.await(t, order.OrderID, "DONE")
	if got := s.key(t, id); got != key {
		t.Errorf("key %q, want %q", got, key)
	}
}

// B4: a refund that the bank does not transfer within three business days is listed, and an administrator can end it.
func TestPendingRefundHasADeadline(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultTimeout})
	s.answer(t, b, "/payment/cancel", refundAccount(map[string]any{"id": id, "cancelReason": "변심"}), 200, "")
	s.awaitRefund(t, id, "PENDING")
	request := reserve.OutsideRequest{ID: booking.ReservationID(id), Reason: "은행 지연", How: "계좌 이체", Reference: "1", By: hq}
	if _, err := s.Replica(t).SettleOutside(s.ctx, request); !errors.Is(err, reserve.ErrPaymentPending) {
		t.Errorf("settled outside while the bank has time: %v", err)
	}
	s.Clock.Advance(booking.BusinessDaysAfter(s.Clock.Now(), 3).Sub(s.Clock.Now()) + time.Minute)
	s.eventually(t, "the refund is listed", func() bool { return s.open(t, order.OrderID, "refund-overdue") == 1 })
	if _, err := s.Replica(t).SettleOutside(s.ctx, request); err != nil {
		t.Error(err)
	}
}

// B5: a discrepancy that an administrator resolved stays resolved unless a new difference is found.
func TestResolvedStaysResolved(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	key := s.orphan(t, replica, "ord-orphan", 5000)
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 1 {
		t.Fatalf("%+v", report)
	}
	s.exec(t, `update reconciliation_difference set resolved_at = now(), resolution = 'known', resolved_by = 'admin:hq' where order_id = $1`, "ord-orphan")
	s.reconcile(t, replica)
	if n := s.open(t, "ord-orphan", "orphan"); n != 0 {
		t.Error("the comparison opened what an administrator resolved")
	}
	amount := 2000
	if _, err := replica.Payments.Cancel(s.ctx, widget, "part", key, toss.CancelRequest{Reason: "일부", Amount: &amount}); err != nil {
		t.Fatal(err)
	}
	s.orphans -= amount
	s.reconcile(t, replica)
	if n := s.open(t, "ord-orphan", "orphan"); n != 1 {
		t.Error("a discrepancy that has changed is not open again")
	}
}

// orphan charges a payment for an order that the database does not have.
func (s *shop) orphan(t *testing.T, replica *reserve.Service, order string, won int) (paymentKey string) {
	t.Helper()
	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order, OrderName: "강남 1번", Amount: won, Method: sandbox.MethodCard})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Payments.Confirm(s.ctx, widget, order, toss.ConfirmRequest{PaymentKey: key, OrderID: order, Amount: won}); err != nil {
		t.Fatal(err)
	}
	s.orphans += won
	return key
}

// B6: a refund to an account that is not the guest's waits for a second administrator, and the account is recorded.
func TestForeignRefundAccountNeedsApproval(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	manager := account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "manager", Role: account.Manager, Branches: []string{"gangnam"}}
	replica := s.Replica(t)
	err := replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{
		ID: booking.ReservationID(id), Status: "paid", By: manager, Account: &toss.RefundAccount{Bank: "20", Number: "1002999999999", Holder: "매니저본인"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.wantState(t, order.OrderID, "CANCELING")
	s.awaitRefund(t, id, "FAILED")
	if n := s.count(t, `select count(*) from refund where reservation_id = $1 and account_summary like '%****9999 매***인' and account_by = 'admin:manager'`, id); n != 1 {
		t.Error("the masked account is not on record")
	}
	if n := s.count(t, `select count(*) from audit where action = 'reservation.cancel' and detail ->> 'account' = '...9999'`); n != 1 {
		t.Error("the account is not in the audit log")
	}
	if err := replica.ApproveRefund(s.ctx, booking.ReservationID(id), manager); !errors.Is(err, reserve.ErrSameAdministrator) {
		t.Errorf("approved by the same administrator: %v", err)
	}
	if err := replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), By: hq}); !errors.Is(err, reserve.ErrSameAdministrator) {
		t.Errorf("retried without approval: %v", err)
	}
	if err := replica.ApproveRefund(s.ctx, booking.ReservationID(id), hq); err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "COMPLETED")
	s.wantState(t, order.OrderID, "CANCELED")
}

// C1: if the look-up of one order fails, the other orders are still listed.
func TestReconcileSurvivesEachFailedLookUp(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	const orphans = 5
	for i := range orphans {
		s.orphan(t, replica, fmt.Sprint("ord-orphan-", i), 5000)
	}
	for failing := range orphans {
		s.exec(t, `delete from reconciliation_difference`)
		flaky := s.Replica(t)
		flaky.Payments = failingLookUp{flaky.Payments, fmt.Sprint("ord-orphan-", failing)}
		report, err := flaky.Reconcile(s.ctx, reserve.Full, reserve.ReconcileSpan)
		if err == nil || len(report.Failed) != 1 || len(report.Discrepancies) != orphans-1 {
			t.Errorf("look-up %d fails: %d listed, %d failed, %v", failing, len(report.Discrepancies), len(report.Failed), err)
		}
	}
	if n := s.count(t, `select count(*) from reconciliation_run where completed_at is not null and cardinality(failed) > 0`); n != 0 {
		t.Errorf("%d incomplete comparisons count as complete", n)
	}
}

// C3: the light comparison finds a cancellation in the provider's dashboard within minutes.
func TestDashboardCancellationIsNoticed(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.bought(t, sandbox.MethodCard)
	s.wantState(t, order.OrderID, "DONE")
	replica := s.Replica(t)
	compare := func() {
		t.Helper()
		if _, err := replica.ReconcileDue(s.ctx, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a full and a light comparison
		compare()
		s.Clock.Advance(3 * time.Minute)
	}
	s.exec(t, `delete from river_job where kind = $1`, "settle") // as if the watchdog had already run, before the cancellation
	s.dashboard(t, order, 0, nil)
	s.Clock.Advance(3 * time.Minute)
	compare()
	s.awaitAtOnce(t, order.OrderID, "CANCELED")
}

// D1, D3: closing an account without a deposit is not a refund, and the message does not mention one.
func TestUnpaidAccountIsNoRefund(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.bought(t, sandbox.MethodVirtualAccount)
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	id := s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	if n := s.count(t, `select coalesce(sum(amount), 0) from refund where reservation_id = $1`, id); n != 0 {
		t.Errorf("refunds of %d won, want 0", n)
	}
	if n := s.count(t, `select count(*) from money_entry where reservation_id = $1`, id); n != 0 {
		t.Errorf("%d entries, want none", n)
	}
	s.awaitMessages(t, w.Mobile, "virtual-account-issued", "reservation-ended")

	_, overdue, w := s.bought(t, sandbox.MethodVirtualAccount)
	s.Clock.Advance(11 * time.Minute)
	s.await(t, overdue.OrderID, "CANCELED")
	s.awaitMessages(t, w.Mobile, "virtual-account-issued", "deposit-overdue")
}

// D2: a partial cancellation in the dashboard is recorded as a refund, and a later cancellation refunds the rest and states its amount.
func TestPartialCancellationIsBooked(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.bought(t, sandbox.MethodCard)
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	id := s.wantState(t, order.OrderID, "DONE")
	replica, part := s.Replica(t), 5000
	if _, err := replica.Payments.Cancel(s.ctx, widget, "part", order.PaymentKey, toss.CancelRequest{Reason: "일부", Amount: &part}); err != nil {
		t.Fatal(err)
	}
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 1 || report.Discrepancies[0].Resolution != "settled" {
		t.Errorf("after the partial cancellation: %+v", report)
	}
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 0 {
		t.Errorf("and then: %+v", report)
	}
	s.wantState(t, order.OrderID, "DONE")
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	if n := s.count(t, `select amount from refund where reservation_id = $1 and requested_by = 'customer'`, id); n != order.Amount-part {
		t.Errorf("refund of %d won, want %d", n, order.Amount-part)
	}
	if n := s.count(t, `select amount from refund where reservation_id = $1 and keeps_stay and state = 'COMPLETED'`, id); n != part {
		t.Errorf("a refund of %d won in the dashboard is recorded, want %d", n, part)
	}
	if n := s.count(t, `select -sum(won) from money_entry where reservation_id = $1 and kind = 'refunded'`, id); n != order.Amount {
		t.Errorf("entries of %d won refunded, want %d", n, order.Amount)
	}
	s.awaitMessages(t, w.Mobile, "reservation-confirmed", "reservation-canceled")
	last := s.Sandbox.Messages(w.Mobile)
	if got := last[len(last)-1].Variables["amount"]; got != "25,000" {
		t.Errorf("the message names %s won, want 25,000", got)
	}
	if _, err := s.DB.Pool.Exec(s.ctx, `update money_entry set won = 0`); err == nil {
		t.Error("an entry can be changed")
	}
}

// E3: unsigned callbacks cause at most one look-up per order in two seconds, and are stored once.
func TestUnsignedCallbacksAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.bought(t, sandbox.MethodCard)
	before := s.lookUps(order.OrderID)
	for i := range 50 {
		body := map[string]any{"eventType": "PAYMENT_STATUS_CHANGED", "createdAt": fmt.Sprint(i), "data": map[string]any{"orderId": order.OrderID, "status": "DONE"}}
		s.answer(t, s.buyer(), "/virtualaccount/webhook", body, 200, "")
	}
	// The sweep adds one look-up per run for unapplied callbacks.
	if rows := s.count(t, `select count(*) from webhook_event where order_id = $1`, order.OrderID); rows > 25 {
		t.Errorf("%d rows for 50 callbacks", rows)
	}
	if asked := s.lookUps(order.OrderID) - before; asked > 25 {
		t.Errorf("the provider was asked %d times", asked)
	}
}

// lookUps counts the look-ups of an order at the provider.
func (s *shop) lookUps(order string) int {
	return len(slices.DeleteFunc(s.Sandbox.Ledger().Calls, func(c sandbox.Call) bool { return c.OrderID != order || c.Method != http.MethodGet }))
}

// E4: the provider rejects our secret key. The guest receives "pending" and not the provider's text, a discrepancy is
// listed, and the order is charged after the key is corrected.
func TestRejectedSecretKey(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Status: 401, Code: "UNAUTHORIZED_KEY"})
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	if n := s.open(t, order.OrderID, "provider-key"); n != 1 {
		t.Errorf("%d discrepancies, want 1", n)
	}
	s.await(t, order.OrderID, "DONE")
}
