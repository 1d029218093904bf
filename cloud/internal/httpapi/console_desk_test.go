package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

type deskItem struct {
	Kind, OrderID, Detail                         string
	Branch, ReservationID, RefundID, DifferenceID *string
	Amount                                        int
	ByHand                                        *int
}

// desk returns the money desk as an administrator sees it, by kind.
func desk(t *testing.T, c *servicetest.Client) map[string]deskItem {
	t.Helper()
	var got struct{ Items []deskItem }
	c.Get("/v2/admin/money-desk").OK(t).Into(t, &got)
	items := map[string]deskItem{}
	for _, i := range got.Items {
		if _, twice := items[i.Kind]; twice {
			t.Errorf("two items of the kind %s", i.Kind)
		}
		items[i.Kind] = i
	}
	return items
}

// TestMoneyDesk puts one item of each kind on the money desk and ends each of them there.
func TestMoneyDesk(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager, hq := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "hq", "hq-demo")
	if items := desk(t, hq); len(items) != 0 {
		t.Fatalf("nothing waits, and the desk has %v", items)
	}
	id, amount := paidDeposit(t, s)
	account := map[string]string{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "다른사람"}
	manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", account).OK(t)
	item := desk(t, manager)["name-mismatch"]
	if item.ReservationID == nil || *item.ReservationID != id || item.RefundID == nil || item.Amount != amount || *item.Branch != "gangnam" {
		t.Errorf("a refund that waits for a second administrator: %+v", item)
	}
	order := only(t, s, `select order_id from reservation where id = $1::bigint`, id)
	for i, kind := range []string{"refund-refused", "reversal", "entered-after-refund", "status"} {
		if _, err := s.DB.Pool.Exec(t.Context(), `insert into reconciliation_difference (order_id, kind, detail) values ($1, $2, $3)`, order, kind, fmt.Sprint("detail ", i)); err != nil {
			t.Fatal(err)
		}
	}
	orphan(t, s, "order-of-nobody", sandbox.MethodCard)
	hq.Post("/v2/admin/reconciliation", nil).OK(t)

	items := desk(t, hq)
	for _, kind := range []string{"name-mismatch", "refused", "reversal", "entered-after-refund", "orphan", "difference"} {
		if _, ok := items[kind]; !ok {
			t.Errorf("the desk lacks %s: %v", kind, items)
		}
	}
	if _, ok := desk(t, manager)["orphan"]; ok {
		t.Error("a manager sees the money of no branch")
	}
	refund := "/v2/admin/differences/" + *items["orphan"].DifferenceID + "/refund"
	if answer := manager.Post(refund, nil); answer.HTTP != 403 {
		t.Errorf("a manager refunds an orphan: %d", answer.HTTP)
	}
	hq.Post(refund, nil).OK(t)
	if p := s.Sandbox.Payments("order-of-nobody"); len(p) != 1 || p[0].Status != sandbox.StatusCanceled || p[0].BalanceAmount != 0 {
		t.Errorf("the orphan at the provider: %+v", p)
	}
	if answer := hq.Post(refund, nil); answer.HTTP != 404 {
		t.Errorf("refunded twice: %d", answer.HTTP)
	}
	// Before the refund, whose result ends differences of its order itself.
	for _, kind := range []string{"refused", "reversal", "entered-after-refund", "difference"} {
		hq.Post("/v2/admin/differences/"+*items[kind].DifferenceID+"/resolution", map[string]string{"resolution": "확인함"}).OK(t)
	}
	hq.Post("/v2/admin/reservations/"+id+"/refund/approval", nil).OK(t)
	manager.Post("/v2/admin/reservations/"+id+"/check", nil).OK(t)
	if left := desk(t, hq); len(left) > 1 || len(left) == 1 && left["pending"].RefundID == nil {
		t.Errorf("left on the desk: %v", left)
	}
}

// TestMoneyDeskUnclear: a refund without an answer for 15 minutes is on the desk. A look-up ends it once the provider answers.
func TestMoneyDeskUnclear(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	id, _ := paidDeposit(t, s)
	for _, target := range []sandbox.FaultTarget{sandbox.TargetCancel, sandbox.TargetGet} {
		if err := s.Sandbox.SetFault(sandbox.Fault{Target: target, Kind: sandbox.FaultError, Status: 503, Times: -1}); err != nil {
			t.Fatal(err)
		}
	}
	account := map[string]string{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "홍길동"}
	if answer := manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", account); answer.HTTP != 503 {
		t.Fatalf("without an answer of the provider: %d %s", answer.HTTP, answer.Raw)
	}
	if items := desk(t, manager); len(items) != 0 {
		t.Errorf("at once: %v", items)
	}
	s.Clock.Advance(16 * time.Minute)
	if item := desk(t, manager)["unclear"]; item.RefundID == nil || *item.ReservationID != id {
		t.Errorf("after 16 minutes: %+v", item)
	}
	if answer := manager.Post("/v2/admin/reservations/"+id+"/check", nil); answer.HTTP != 503 {
		t.Errorf("looked up without an answer: %d %s", answer.HTTP, answer.Raw)
	}
	s.Sandbox.ClearFaults()
	manager.Post("/v2/admin/reservations/"+id+"/check", nil).OK(t)
	if item, ok := desk(t, manager)["unclear"]; ok {
		t.Errorf("after the answer: %+v", item)
	}
}

// TestListsNameTheSumByHand: the bank rejects a part of a payment. A refund by hand ends the stay and returns everything, so the lists name
// that sum and not the part.
func TestListsNameTheSumByHand(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	id, amount := paidDeposit(t, s)
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1}); err != nil {
		t.Fatal(err)
	}
	refunds := "/v2/admin/reservations/" + id + "/refunds"
	hq.Post(refunds, map[string]any{"amount": 1000, "reason": "소음", "refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}).OK(t)
	until(t, "the bank has rejected the part", func() bool {
		hq.Post("/v2/admin/reservations/"+id+"/check", nil).OK(t)
		return desk(t, hq)["failed"].RefundID != nil
	})
	item := desk(t, hq)["failed"]
	var money struct {
		Refunds []struct{ Amount, ByHand int }
	}
	hq.Get("/v2/admin/branches/gangnam/money?yearMonth="+s.Clock.Now().In(booking.DefaultBranch().Zone).Format("2006-01")).OK(t).Into(t, &money)
	if item.Amount != 1000 || item.ByHand == nil || *item.ByHand != amount || len(money.Refunds) != 1 || money.Refunds[0].ByHand != amount {
		t.Errorf("the desk has %+v, the list %+v; want %d won by hand", item, money.Refunds, amount)
	}
	var recorded struct{ Amount int }
	hq.Post(refunds, map[string]any{"settledOutside": map[string]string{"how": "계좌 이체", "reference": "1"}}).OK(t).Into(t, &recorded)
	if recorded.Amount != amount {
		t.Errorf("%d won are recorded, want %d", recorded.Amount, amount)
	}
}

// TestRefundOfAnOrphanedDeposit: a refund that the provider has rejected is sent again, to the same account or to another one.
func TestRefundOfAnOrphanedDeposit(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const order = "deposit-of-nobody"
	orphan(t, s, order, sandbox.MethodVirtualAccount)
	if _, err := s.Sandbox.Deposit(order); err != nil {
		t.Fatal(err)
	}
	hq.Post("/v2/admin/reconciliation", nil).OK(t)
	refund := "/v2/admin/differences/" + *desk(t, hq)["orphan"].DifferenceID + "/refund"
	refuses(t, "without an account", hq.Post(refund, nil), "refundBankCode")
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "REFUND_REJECTED"}); err != nil {
		t.Fatal(err)
	}
	account := map[string]string{"refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}
	hq.Post(refund, account).Fails(t, 400, "PaymentFailedException", "")
	hq.Post(refund, account).OK(t)
	if p := s.Sandbox.Payments(order)[0]; p.Status != sandbox.StatusCanceled || p.BalanceAmount != 0 || len(p.Cancels) != 1 {
		t.Errorf("the orphan at the provider: %+v", p)
	}
}

// orphan charges a payment with the service's keys for an order that the service does not have.
func orphan(t *testing.T, s *servicetest.Stack, order, method string) {
	t.Helper()
	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order, Amount: 5000, Method: method})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replica(t).Payments.Confirm(t.Context(), toss.Widget, order, toss.ConfirmRequest{PaymentKey: key, OrderID: order, Amount: 5000}); err != nil {
		t.Fatal(err)
	}
}

// TestCashReceiptOnTheDesk: a cash receipt that the provider refuses is on the desk, and an administrator ends it there.
func TestCashReceiptOnTheDesk(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	id, _ := paidDeposit(t, s)
	path := "/v2/admin/reservations/" + id + "/cash-receipt"
	if answer := manager.Post(path, map[string]any{}); answer.HTTP != 400 {
		t.Errorf("a receipt without a request is tried again: %d", answer.HTTP)
	}
	refuses(t, "a wrong number", manager.Post(path, map[string]any{"cashReceipt": map[string]string{"type": "business", "number": "1234567890"}}), "cashReceipt.number")
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetCashReceipts, Kind: sandbox.FaultError, Code: "INVALID_REQUEST"}); err != nil {
		t.Fatal(err)
	}
	manager.Post(path, map[string]any{"cashReceipt": map[string]string{"type": "personal", "number": "010-1234-5678"}}).OK(t)
	eventually(t, "the receipt is on the desk", func() bool {
		item := desk(t, manager)["cash-receipt"]
		return item.ReservationID != nil && *item.ReservationID == id
	})
	manager.Post(path, map[string]any{"settledOutside": map[string]string{"how": "홈택스", "reference": "123456789"}}).OK(t)
	if items := desk(t, manager); len(items) != 0 {
		t.Errorf("the desk has %v", items)
	}
	var record struct {
		CashReceipt struct{ Status, Number string }
	}
	manager.Get("/v2/admin/reservations/"+id).OK(t).Into(t, &record)
	if record.CashReceipt.Status != "outside" || record.CashReceipt.Number != "010****678" {
		t.Errorf("%+v", record)
	}
}
