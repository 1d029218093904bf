package reserve_test

import (
	"context"
	"errors"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestReconcile creates five differences among correct purchases of every kind: exactly these are found. Those that a
// look-up can settle are settled; the others stay listed.
func TestReconcile(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	for _, method := range []string{sandbox.MethodCard, sandbox.MethodEasyPay, sandbox.MethodMobilePhone} {
		s.bought(t, method)
		b, _, id := s.paid(t, method)
		s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	}
	s.bought(t, sandbox.MethodVirtualAccount)
	_, reversed, _ := s.paid(t, sandbox.MethodVirtualAccount)
	if delivery, err := s.Sandbox.Reverse(reversed.OrderID); err != nil {
		t.Fatal(err)
	} else if _, err := delivery.First(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.deposit(t, reversed.OrderID)
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 0 || report.Compared < 7 {
		t.Fatalf("a healthy shop: %+v", report)
	}

	planted := map[string]string{}
	// Charged with our keys, for an order that the database does not have.
	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: "ord-planted", Amount: 5000, Method: sandbox.MethodCard})
	if err != nil {
		t.Fatal(err)
	}
	charge := toss.ConfirmRequest{PaymentKey: key, OrderID: "ord-planted", Amount: 5000}
	if _, err := replica.Payments.Confirm(s.ctx, widget, "planted", charge); err != nil {
		t.Fatal(err)
	}
	planted["ord-planted"] = "orphan"
	// Cancelled in the provider's dashboard, which sends no callback.
	_, byHand, byHandID := s.paid(t, sandbox.MethodCard)
	if _, err := replica.Payments.Cancel(s.ctx, widget, "by-hand", byHand.PaymentKey, toss.CancelRequest{Reason: "수기 취소"}); err != nil {
		t.Fatal(err)
	}
	planted[byHand.OrderID] = "balance"
	// Cancelled in the database, but not refunded.
	_, kept, keptID := s.paid(t, sandbox.MethodCard)
	s.exec(t, `update reservation set state = 'CANCELED', doorlock_key = null, canceled_at = now() where id = $1`, keptID)
	planted[kept.OrderID] = "balance"
	// The amounts in the database and at the provider differ.
	_, tampered, tamperedID := s.paid(t, sandbox.MethodCard)
	s.exec(t, `update reservation set amount = amount - 1000 where id = $1`, tamperedID)
	planted[tampered.OrderID] = "balance"
	// A confirmed reservation without money at the provider.
	_, invented, inventedID := s.paid(t, sandbox.MethodVirtualAccount)
	if err := moneytest.Settled(s.ctx, s.DB.Pool); err != nil { // a look-up of its callback would find the cancellation
		t.Fatal(err)
	}
	s.exec(t, `update reservation set order_id = 'ord-invented' where id = $1`, inventedID)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1}) // the callback about it is lost
	if _, err := replica.Payments.Cancel(s.ctx, widget, "invented", invented.PaymentKey, toss.CancelRequest{Reason: "수기 취소", RefundAccount: &guestAccount}); err != nil {
		t.Fatal(err)
	}
	planted["ord-invented"] = "missing"

	report := s.reconcile(t, replica)
	for _, d := range report.Discrepancies {
		if planted[d.OrderID] != d.Kind {
			t.Errorf("order %s: %s (%s), planted %q", d.OrderID, d.Kind, d.Detail, planted[d.OrderID])
		}
		delete(planted, d.OrderID)
	}
	if len(planted) > 0 {
		t.Errorf("not found: %v", planted)
	}
	s.wantState(t, byHand.OrderID, "CANCELED")
	s.awaitRefund(t, keptID, "COMPLETED")
	open := s.count(t, `select count(*) from reconciliation_difference where resolved_at is null and kind in ('orphan', 'missing', 'balance')`)
	if open != 3 {
		t.Errorf("%d differences are left to a person, want 3", open)
	}
	if _, id := s.state(t, byHand.OrderID); id != byHandID {
		t.Error("another reservation has the order")
	}

	// Correct the differences that cannot be settled automatically, so that the audit passes and the list closes.
	if _, err := replica.Payments.Cancel(s.ctx, widget, "planted-back", key, toss.CancelRequest{Reason: "정정"}); err != nil {
		t.Fatal(err)
	}
	s.exec(t, `update reservation set amount = amount + 1000 where id = $1`, tamperedID)
	s.exec(t, `update reservation set order_id = $2 where id = $1`, inventedID, invented.OrderID)
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 1 || report.Discrepancies[0].Resolution != "settled" {
		t.Errorf("after the corrections: %+v", report)
	}
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 0 {
		t.Errorf("and then: %+v", report)
	}
}

func (s *shop) reconcile(t *testing.T, replica *reserve.Service) reserve.Report {
	t.Helper()
	if err := moneytest.Settled(s.ctx, s.DB.Pool); err != nil {
		t.Fatal(err)
	}
	report, err := replica.Reconcile(s.ctx, reserve.Full, reserve.ReconcileSpan)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestProviderConfirmsAnotherAmount: if the provider confirms an amount that was not requested, it is refunded and no key is
// created.
func TestProviderConfirmsAnotherAmount(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	replica := s.Replica(t)
	replica.Payments = shortChange{replica.Payments}
	_, err := replica.Confirm(s.ctx, reserve.ConfirmRequest(order))
	if err == nil {
		t.Fatal("confirmed")
	}
	id := s.await(t, order.OrderID, "CANCELED")
	s.awaitRefund(t, id, "COMPLETED")
	if n := s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and kind = 'amount'`, order.OrderID); n != 1 {
		t.Errorf("%d discrepancies, want 1", n)
	}
	if reply := s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException"); reply.ErrorCode != "REFUNDED_PAYMENT" {
		t.Errorf("code %q, want REFUNDED_PAYMENT", reply.ErrorCode)
	}
}

// shortChange is a provider that answers a confirmation with another total.
type shortChange struct{ reserve.Payments }

func (c shortChange) Confirm(ctx context.Context, keys toss.KeySet, key string, r toss.ConfirmRequest) (toss.Payment, error) {
	payment, err := c.Payments.Confirm(ctx, keys, key, r)
	payment.TotalAmount -= 1000
	return payment, err
}

// failingLookUp is a provider that fails to look up one order.
type failingLookUp struct {
	reserve.Payments
	order string
}

func (f failingLookUp) PaymentByOrder(ctx context.Context, keys toss.KeySet, orderID string) (toss.Payment, error) {
	if orderID == f.order {
		return toss.Payment{}, errors.New("connection reset")
	}
	return f.Payments.PaymentByOrder(ctx, keys, orderID)
}

func (f failingLookUp) Payment(ctx context.Context, keys toss.KeySet, paymentKey string) (toss.Payment, error) {
	p, err := f.Payments.Payment(ctx, keys, paymentKey)
	if p.OrderID == f.order {
		return toss.Payment{}, errors.New("connection reset")
	}
	return p, err
}
