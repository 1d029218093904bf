package reserve_test

import (
	"fmt"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestOrphanThatTheBankReturned: an order that a restoration has lost was paid by deposit and cancelled, and the bank returned its refund.
// The provider's list shows it as refunded. It is listed, and is sent again to another account after the provider has rejected the first one.
func TestOrphanThatTheBankReturned(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	const order, won = "ord-of-the-lost-time", 5000
	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order, Amount: won, Method: sandbox.MethodVirtualAccount})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Payments.Confirm(s.ctx, widget, "lost", toss.ConfirmRequest{PaymentKey: key, OrderID: order, Amount: won}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sandbox.Deposit(order); err != nil {
		t.Fatal(err)
	}
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
	if _, err := replica.Payments.Cancel(s.ctx, widget, "lost-back", key, toss.CancelRequest{Reason: "고객 취소", RefundAccount: &guestAccount}); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the bank returns the refund", func() bool { return s.Sandbox.Bounced(order) == won })
	admin, path := s.listedOrphan(t, replica, order)
	account := map[string]any{"refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}
	s.answer(t, admin, path, map[string]any{}, 400, "IllegalArguemntError")
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 400, Code: "INVALID_REFUND_ACCOUNT_NUMBER", Times: 1})
	s.answer(t, admin, path, account, 400, "PaymentFailedException")
	s.answer(t, admin, path, account, 200, "")
	if bounced := s.Sandbox.Bounced(order); bounced != 0 {
		t.Errorf("%d won are still with the provider", bounced)
	}
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 0 {
		t.Errorf("after the refund: %+v", report)
	}
	if n := s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and resolved_at is null`, order); n != 0 {
		t.Error("the discrepancy is still open")
	}
}

// listedOrphan compares, which must find an order as an orphan only. It returns an administrator and the path of its refund.
func (s *shop) listedOrphan(t *testing.T, replica *reserve.Service, order string) (admin *moneytest.Buyer, path string) {
	t.Helper()
	if d := s.reconcile(t, replica).Discrepancies; len(d) != 1 || d[0].OrderID != order || d[0].Kind != "orphan" {
		t.Fatalf("the comparison finds %+v, want the order %s", d, order)
	}
	admin = s.buyer()
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	id := s.count(t, `select id from reconciliation_difference where order_id = $1 and resolved_at is null`, order)
	return admin, fmt.Sprintf("/v2/admin/differences/%d/refund", id)
}

// TestOrphanBesideANewerPayment: the guest of an order that the database does not have has opened the widget once more, so the look-up by
// the order id returns a payment that holds nothing. The charged one is listed, and refunded.
func TestOrphanBesideANewerPayment(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	const order, won = "ord-of-two-payments", 5000
	key := s.orphan(t, replica, order, won)
	s.another(t, order, won)
	admin, path := s.listedOrphan(t, replica, order)
	s.answer(t, admin, path, map[string]any{}, 200, "")
	s.orphans -= won
	if p, err := s.Sandbox.Payment(key); err != nil || p.BalanceAmount != 0 {
		t.Errorf("the provider still holds %d won (%v)", p.BalanceAmount, err)
	}
}
