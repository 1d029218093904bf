package toss_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// These tests run the client against the sandbox, which was written independently from
// the provider's documentation.

const order = "ord-20261121-7f3a"

type world struct {
	*sandbox.Sandbox
	*toss.Client
	webhooks <-chan []byte
	clock    *clock
}

// clock is a clock that the test advances.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newWorld(t *testing.T) world {
	t.Helper()
	webhooks := make(chan []byte, 16)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		webhooks <- b
	}))
	t.Cleanup(service.Close)
	c := &clock{now: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)}
	box, err := sandbox.New(sandbox.Options{WebhookURL: service.URL, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	srv := httptest.NewServer(box)
	t.Cleanup(srv.Close)
	client, err := toss.New(toss.Config{BaseURL: srv.URL, WidgetSecretKey: sandbox.DemoWidgetSecretKey, APISecretKey: sandbox.DemoAPISecretKey})
	if err != nil {
		t.Fatal(err)
	}
	return world{box, client, webhooks, c}
}

func (w world) authenticate(t *testing.T, method string) toss.ConfirmRequest {
	t.Helper()
	key, err := w.Authenticate(sandbox.Checkout{OrderID: order, OrderName: "2번 룸 60분", Amount: 18000, Method: method, CustomerName: "홍길동"})
	if err != nil {
		t.Fatal(err)
	}
	return toss.ConfirmRequest{PaymentKey: key, OrderID: order, Amount: 18000}
}

func (w world) event(t *testing.T) toss.Event {
	t.Helper()
	select {
	case body := <-w.webhooks:
		e, err := toss.ParseEvent(body)
		if err != nil {
			t.Fatal(err)
		}
		return e
	case <-time.After(time.Minute):
		t.Fatal("no webhook came")
		return toss.Event{}
	}
}

func TestSandboxCard(t *testing.T) {
	t.Parallel()
	for _, method := range []string{toss.MethodCard, toss.MethodEasyPay, toss.MethodMobilePhone} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t), context.Background()
			request := w.authenticate(t, method)
			if p, err := w.PaymentByOrder(ctx, toss.Widget, order); err != nil || p.Status != toss.StatusInProgress {
				t.Fatalf("before: %+v, %v", p, err)
			}
			for range 2 { // repeating the key returns the same response and charges nothing
				p, err := w.Confirm(ctx, toss.Widget, "confirm-1", request)
				if err != nil || p.Status != toss.StatusDone || p.Method != method || p.TotalAmount != 18000 || p.ApprovedAt.IsZero() || p.OrderID != order {
					t.Fatalf("confirm: %+v, %v", p, err)
				}
			}
			if _, err := w.Confirm(ctx, toss.Widget, "confirm-2", request); toss.ClassOf(err) != toss.AlreadyProcessed {
				t.Errorf("confirm again with another key: %v is %v", err, toss.ClassOf(err))
			}
			part := 8000
			p, err := w.Cancel(ctx, toss.Widget, "cancel-1", request.PaymentKey, toss.CancelRequest{Reason: "일부", Amount: &part})
			if err != nil || p.FullyCanceled() || p.BalanceAmount != 10000 {
				t.Fatalf("cancel in part: %+v, %v", p, err)
			}
			p, err = w.Cancel(ctx, toss.Widget, "cancel-2", request.PaymentKey, toss.CancelRequest{Reason: "나머지"})
			if err != nil || !p.FullyCanceled() || p.CanceledAmount() != 18000 || len(p.Cancels) != 2 {
				t.Fatalf("cancel the rest: %+v, %v", p, err)
			}
			if _, err := w.Cancel(ctx, toss.Widget, "cancel-3", request.PaymentKey, toss.CancelRequest{Reason: "또"}); toss.ClassOf(err) != toss.Refused {
				t.Errorf("cancel nothing: %v is %v", err, toss.ClassOf(err))
			}
			if l := w.Ledger(); l.Charged != 18000 || l.Refunded != 18000 {
				t.Errorf("charged %d, refunded %d", l.Charged, l.Refunded)
			}
		})
	}
}

func TestSandboxVirtualAccount(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), context.Background()
	request := w.authenticate(t, toss.MethodVirtualAccount)
	p, err := w.Confirm(ctx, toss.Widget, "confirm-1", request)
	if err != nil || p.Status != toss.StatusWaitingForDeposit || p.Secret == "" || p.VirtualAccount == nil || p.VirtualAccount.Number == "" || p.VirtualAccount.Bank == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := w.Deposit(order); err != nil {
		t.Fatal(err)
	}
	e := w.event(t)
	if e.Kind != toss.DepositCallback || e.OrderID != order || e.Status != toss.StatusDone || !e.SecretMatches(p.Secret) || e.SecretMatches("ps_other") {
		t.Errorf("callback %+v", e)
	}
	if _, err := w.Cancel(ctx, toss.Widget, "cancel-1", p.PaymentKey, toss.CancelRequest{Reason: "계좌 없이"}); toss.ClassOf(err) != toss.Refused {
		t.Errorf("refund a deposit without an account: %v is %v", err, toss.ClassOf(err))
	}
	for number, account := range []toss.RefundAccount{{"zz", "1002123456", "홍길동"}, {"20", "abc", "홍길동"}} {
		if _, err := w.Cancel(ctx, toss.Widget, "cancel-x"+string(rune('a'+number)), p.PaymentKey, toss.CancelRequest{Reason: "잘못", RefundAccount: &account}); toss.ClassOf(err) != toss.RefundAccountInvalid {
			t.Errorf("%+v: %v is %v", account, err, toss.ClassOf(err))
		}
	}
	p, err = w.Cancel(ctx, toss.Widget, "cancel-2", p.PaymentKey, toss.CancelRequest{Reason: "취소", RefundAccount: &toss.RefundAccount{Bank: "20", Number: "1002-123-456", Holder: "홍길동"}})
	if err != nil || !p.FullyCanceled() || p.VirtualAccount.RefundStatus != "PENDING" {
		t.Errorf("%+v, %v", p, err)
	}
	w.clock.advance(time.Minute)
	if p, err = w.Client.Payment(ctx, toss.Widget, p.PaymentKey); err != nil || p.VirtualAccount.RefundStatus != "COMPLETED" {
		t.Errorf("%+v, %v", p, err)
	}
	list, err := w.Transactions(ctx, toss.Widget, w.clock.Now().Add(-time.Hour), w.clock.Now().Add(time.Hour))
	if err != nil || len(list) != 2 || list[0].OrderID != order || list[0].Amount != 18000 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestSandboxIssueAndClose(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), context.Background()
	due := w.clock.Now().Add(10 * time.Minute)
	request := toss.VirtualAccountRequest{Amount: 18000, OrderID: order, OrderName: "2번 룸 60분", CustomerName: "홍길동",
		Mobile: "01012345678", Bank: "20", DueDate: due}
	p, err := w.IssueVirtualAccount(ctx, toss.API, "issue-1", request)
	if err != nil || p.Status != toss.StatusWaitingForDeposit || !p.VirtualAccount.DueDate.Equal(due) || p.Secret == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := w.IssueVirtualAccount(ctx, toss.API, "issue-2", request); toss.ClassOf(err) != toss.AlreadyProcessed {
		t.Errorf("issue again: %v is %v", err, toss.ClassOf(err))
	}
	if _, err := w.Client.Payment(ctx, toss.Widget, p.PaymentKey); toss.ClassOf(err) != toss.Misconfigured {
		t.Errorf("read with the other key set: %v is %v", err, toss.ClassOf(err))
	}
	p, err = w.Cancel(ctx, toss.API, "cancel-1", p.PaymentKey, toss.CancelRequest{Reason: "입금 기한 초과"})
	if err != nil || !p.FullyCanceled() {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := w.Cancel(ctx, toss.API, "cancel-2", p.PaymentKey, toss.CancelRequest{Reason: "또"}); toss.ClassOf(err) != toss.AlreadyCanceled {
		t.Errorf("%v is %v", err, toss.ClassOf(err))
	}
}

func TestSandboxRefusals(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), context.Background()
	if _, err := w.PaymentByOrder(ctx, toss.Widget, "ord-nobody-knows"); toss.ClassOf(err) != toss.NotFound {
		t.Errorf("unknown order: %v", err)
	}
	request := w.authenticate(t, toss.MethodCard)
	w.clock.advance(11 * time.Minute)
	if _, err := w.Confirm(ctx, toss.Widget, "confirm-1", request); toss.ClassOf(err) != toss.NotFound {
		t.Errorf("session over: %v is %v", err, toss.ClassOf(err))
	}
	srv := httptest.NewServer(w.Sandbox)
	defer srv.Close()
	wrong, err := toss.New(toss.Config{BaseURL: srv.URL, WidgetSecretKey: "test_gsk_wrong", APISecretKey: "test_sk_wrong"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.PaymentByOrder(ctx, toss.Widget, order); toss.ClassOf(err) != toss.Misconfigured {
		t.Errorf("wrong key: %v is %v", err, toss.ClassOf(err))
	}
}

// TestSandboxFaults checks for every fault of the sandbox at a confirmation the error class,
// whether a charge was made, and that repeating the call returns the actual outcome.
func TestSandboxFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault   sandbox.Fault
		class   toss.Class
		charged int
	}{
		"refused":            {sandbox.Fault{Kind: sandbox.FaultError, Code: "REJECT_CARD_COMPANY"}, toss.Refused, 0},
		"temporary":          {sandbox.Fault{Kind: sandbox.FaultError, Code: "PROVIDER_ERROR"}, toss.RetryLater, 0},
		"server error":       {sandbox.Fault{Kind: sandbox.FaultError}, toss.Unknown, 0},
		"never heard of":     {sandbox.Fault{Kind: sandbox.FaultError, Status: 400, Code: "NEW_IN_2027"}, toss.Unknown, 0},
		"too many":           {sandbox.Fault{Kind: sandbox.FaultError, Status: 429, Code: "TOO_MANY_REQUESTS"}, toss.Unknown, 0},
		"silence":            {sandbox.Fault{Kind: sandbox.FaultTimeout}, toss.Unknown, 0},
		"charged, no answer": {sandbox.Fault{Kind: sandbox.FaultDropAfterCommit}, toss.Unknown, 18000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			request := w.authenticate(t, toss.MethodCard)
			tc.fault.Target = sandbox.TargetConfirm
			if err := w.SetFault(tc.fault); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer stop()
			_, err := w.Confirm(ctx, toss.Widget, "confirm-1", request)
			if err == nil || toss.ClassOf(err) != tc.class {
				t.Errorf("%v is %v, want %v", err, toss.ClassOf(err), tc.class)
			}
			if l := w.Ledger(); l.Charged != tc.charged {
				t.Errorf("charged %d, want %d", l.Charged, tc.charged)
			}
			p, err := w.PaymentByOrder(context.Background(), toss.Widget, order)
			if err != nil || (p.Status == toss.StatusDone) != (tc.charged > 0) {
				t.Errorf("asked again: %+v, %v", p, err)
			}
			if tc.charged == 0 {
				return
			}
			// Repeating the key completes a call without a response, and charges nothing more.
			p, err = w.Confirm(context.Background(), toss.Widget, "confirm-1", request)
			if err != nil || p.Status != toss.StatusDone || w.Ledger().Charged != tc.charged {
				t.Errorf("same key: %+v, %v", p, err)
			}
		})
	}
}

func TestSandboxErrorKeepsTheProvidersMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	request := w.authenticate(t, toss.MethodCard)
	if err := w.SetFault(sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Status: 403, Code: "REJECT_CARD_PAYMENT", Message: "한도초과 혹은 잔액부족"}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Confirm(context.Background(), toss.Widget, "confirm-1", request)
	var e *toss.Error
	if !errors.As(err, &e) || e.Code != "REJECT_CARD_PAYMENT" || e.Message != "한도초과 혹은 잔액부족" {
		t.Errorf("%#v", err)
	}
}
