package toss_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

func receiptOf(order string) toss.CashReceiptRequest {
	return toss.CashReceiptRequest{OrderID: order, OrderName: "2번 룸", Type: toss.PersonalReceipt, Number: "01012345678", Amount: 18000}
}

// A cash receipt is issued once per idempotency key, found in the list of its day, and cancelled as a whole.
func TestCashReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	issued, err := w.IssueCashReceipt(t.Context(), toss.Widget, "issue-1", receiptOf("receipt-1"))
	if err != nil || issued.Key == "" || issued.Status != toss.ReceiptInProgress || issued.Canceled || issued.Amount != 18000 {
		t.Fatalf("%+v: %v", issued, err)
	}
	if again, err := w.IssueCashReceipt(t.Context(), toss.Widget, "issue-1", receiptOf("receipt-1")); err != nil || again != issued {
		t.Errorf("repeated: %+v: %v", again, err)
	}
	if list, err := w.Client.CashReceipts(t.Context(), toss.API, w.clock.Now()); err != nil || len(list) != 0 {
		t.Errorf("the other key set sees %v: %v", list, err)
	}
	w.clock.advance(time.Minute)
	list, err := w.Client.CashReceipts(t.Context(), toss.Widget, w.clock.Now())
	if err != nil || len(list) != 1 || list[0].Key != issued.Key || list[0].Status != toss.ReceiptCompleted {
		t.Errorf("%+v: %v", list, err)
	}
	canceled, err := w.CancelCashReceipt(t.Context(), toss.Widget, "cancel-1", issued.Key)
	if err != nil || !canceled.Canceled || canceled.Amount != 18000 || canceled.OrderID != "receipt-1" {
		t.Errorf("%+v: %v", canceled, err)
	}
	if _, err := w.CancelCashReceipt(t.Context(), toss.Widget, "cancel-2", issued.Key); err == nil {
		t.Error("a receipt is cancelled twice")
	}
	if list, err = w.Client.CashReceipts(t.Context(), toss.Widget, w.clock.Now()); err != nil || len(list) != 2 || !list[1].Canceled {
		t.Errorf("%+v: %v", list, err)
	}
}

// The list has as many pages as it needs.
func TestCashReceiptsOfADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 250 {
		if _, err := w.IssueCashReceipt(t.Context(), toss.Widget, fmt.Sprint("issue-", i), receiptOf(fmt.Sprint("receipt-", i))); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := w.Client.CashReceipts(t.Context(), toss.Widget, w.clock.Now()); err != nil || len(list) != 250 || list[249].OrderID != "receipt-249" {
		t.Errorf("%d receipts: %v", len(list), err)
	}
	if list, err := w.Client.CashReceipts(t.Context(), toss.Widget, w.clock.Now().AddDate(0, 0, 1)); err != nil || len(list) != 0 {
		t.Errorf("%d receipts of the next day: %v", len(list), err)
	}
}

// A malformed number is refused; nothing that identifies the guest is in the error.
func TestCashReceiptRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wrong := receiptOf("receipt-1")
	wrong.Number = "9912345678"
	_, err := w.IssueCashReceipt(t.Context(), toss.Widget, "issue-1", wrong)
	if err == nil || strings.Contains(err.Error(), wrong.Number) || toss.ClassOf(err) != toss.Misconfigured {
		t.Errorf("%v", err)
	}
	wrong.Number = "010-1234"
	if _, err := w.IssueCashReceipt(t.Context(), toss.Widget, "issue-2", wrong); err == nil || strings.Contains(err.Error(), wrong.Number) {
		t.Errorf("%v", err)
	}
	if n := len(w.Sandbox.CashReceipts()); n != 0 {
		t.Errorf("%d receipts", n)
	}
}

// The outcome of a call without an answer is found in the list; the tax office's refusal too.
func TestCashReceiptFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, f := range []sandbox.Fault{{Target: sandbox.TargetCashReceipts, Kind: sandbox.FaultDropAfterCommit}, {Target: sandbox.TargetTaxOffice, Kind: sandbox.FaultError}} {
		if err := w.SetFault(f); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := w.IssueCashReceipt(ctx, toss.Widget, "issue-1", receiptOf("receipt-1")); toss.ClassOf(err) != toss.Unknown {
		t.Fatalf("%v", err)
	}
	w.clock.advance(time.Minute)
	list, err := w.Client.CashReceipts(ctx, toss.Widget, w.clock.Now())
	if err != nil || len(list) != 1 || list[0].Status != toss.ReceiptFailed || list[0].Failure == nil {
		t.Errorf("%+v: %v", list, err)
	}
}
