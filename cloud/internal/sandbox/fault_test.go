package sandbox_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

func (w *world) fault(fields map[string]any) {
	w.t.Helper()
	w.must("POST", "/sandbox/faults", encode(fields))
}

func TestFaultError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault   map[string]any
		status  int
		code    string
		message string
	}{
		"code":         {map[string]any{"code": "REJECT_CARD_PAYMENT"}, 403, "REJECT_CARD_PAYMENT", "한도초과 혹은 잔액부족으로 결제에 실패했습니다."},
		"nothing said": {map[string]any{}, 500, "FAILED_INTERNAL_SYSTEM_PROCESSING", ""},
		"status only":  {map[string]any{"status": 503}, 503, "FAILED_INTERNAL_SYSTEM_PROCESSING", ""},
		"all said":     {map[string]any{"status": 418, "code": "TEAPOT", "message": "차"}, 418, "TEAPOT", "차"},
		"unknown code": {map[string]any{"code": "NEW_CODE"}, 500, "NEW_CODE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, sandbox.Options{})
			key := w.authenticated(sandbox.MethodCard)
			test.fault["target"], test.fault["kind"], test.fault["times"] = "confirm", "error", 2
			w.fault(test.fault)
			for range 2 {
				r := w.confirm(key)
				wantStatus(t, r, test.status, test.code)
				if test.message != "" && r.text("message") != test.message {
					t.Errorf("message %q", r.text("message"))
				}
			}
			w.wantSums(0, 0)
			if r := w.confirm(key); r.status != 200 {
				t.Errorf("afterwards: %d %s", r.status, r.raw)
			}
		})
	}
}

// If the response is lost after the money was booked, a retry with the same key and a lookup return the payment.
func TestFaultDropAfterCommit(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	w.fault(map[string]any{"target": "confirm", "kind": "drop-after-commit", "times": 1})
	body := encode(map[string]any{"paymentKey": key, "orderId": order, "amount": 18000})
	header := []string{"Authorization", widgetAuth, "Idempotency-Key", "k1"}
	if r, err := w.try("POST", "/v1/payments/confirm", body, header...); err == nil {
		t.Fatalf("answered: %d %s", r.status, r.raw)
	}
	w.wantSums(18000, 0)
	if got := w.get(key).text("status"); got != "DONE" {
		t.Errorf("status %s", got)
	}
	if r := w.do("POST", "/v1/payments/confirm", body, header...); r.status != 200 || r.text("status") != "DONE" {
		t.Errorf("same key again: %d %s", r.status, r.raw)
	}
	w.wantSums(18000, 0)
	if calls := w.Ledger().Calls; calls[0].Status != 0 || calls[0].OrderID != order {
		t.Errorf("the dropped call in the ledger: %+v", calls[0])
	}
}

// leave sends a confirmation that meets the only fault, and disconnects then.
func (w *world) leave(key string, header ...string) {
	w.t.Helper()
	ctx, disconnect := context.WithCancel(w.t.Context())
	defer disconnect()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/payments/confirm",
		strings.NewReader(encode(map[string]any{"paymentKey": key, "orderId": order, "amount": 18000})))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", widgetAuth)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	ended := make(chan error, 1)
	go func() {
		answer, err := http.DefaultClient.Do(req)
		if err == nil {
			answer.Body.Close()
		}
		ended <- err
	}()
	w.until("the call meets the fault", func() bool { return len(w.Faults()) == 0 })
	disconnect()
	if err := <-ended; err == nil {
		w.t.Fatal("the call was answered before the client gave up")
	}
}

// until waits until a condition of the sandbox is true. There is no event to wait for.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for limit := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			w.t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestFaultTimeout(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	w.fault(map[string]any{"target": "confirm", "kind": "timeout", "times": 1})
	w.leave(key, "Idempotency-Key", "k1")
	w.wantSums(0, 0)
	w.until("the timed-out request is forgotten, once the provider has detected the disconnection", func() bool {
		r := w.confirm(key, "Idempotency-Key", "k1")
		if r.status != 200 {
			wantStatus(t, r, 409, "IDEMPOTENT_REQUEST_PROCESSING")
		}
		return r.status == 200
	})
	w.wantSums(18000, 0)
}

// If the client disconnects from a slow provider, the money is booked anyway.
func TestFaultSlowBooksLate(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	w.fault(map[string]any{"target": "confirm", "kind": "slow", "times": 1, "delayMs": 3000})
	w.leave(key)
	if got := w.get(key).text("status"); got != "IN_PROGRESS" {
		t.Fatalf("status %s right after the client has disconnected", got)
	}
	w.until("the money is booked", func() bool { return w.get(key).text("status") == "DONE" })
	w.wantSums(18000, 0)
}

func TestFaultTargets(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.paid(sandbox.MethodCard)
	calls := map[string]func() reply{
		"confirm":          func() reply { return w.confirm(key) },
		"get":              func() reply { return w.get(key) },
		"cancel":           func() reply { return w.cancel(key, reason()) },
		"virtual-accounts": func() reply { return w.do("POST", "/v1/virtual-accounts", "{}", "Authorization", apiAuth) },
	}
	for target := range calls {
		w.fault(map[string]any{"target": target, "kind": "error", "code": "PROVIDER_ERROR"})
		for name, call := range calls {
			if got := call().text("code") == "PROVIDER_ERROR"; got != (name == target) {
				t.Errorf("fault of %s met by %s: %v", target, name, got)
			}
		}
		w.must("DELETE", "/sandbox/faults", "")
	}
}

func TestFaultTimes(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	w.fault(map[string]any{"target": "get", "kind": "error", "times": -1, "code": "COMMON_ERROR"})
	for range 5 {
		wantStatus(t, w.get("x"), 500, "COMMON_ERROR")
	}
	w.must("DELETE", "/sandbox/faults", "")
	wantStatus(t, w.get("x"), 404, "NOT_FOUND_PAYMENT")
	w.fault(map[string]any{"target": "get", "kind": "error", "code": "COMMON_ERROR"}) // without "times" the fault applies once
	wantStatus(t, w.get("x"), 500, "COMMON_ERROR")
	wantStatus(t, w.get("x"), 404, "NOT_FOUND_PAYMENT")
}

func TestFaultIsChecked(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	for name, fault := range map[string]map[string]any{
		"target": {"target": "everything", "kind": "error"},
		"kind":   {"target": "get", "kind": "explode"},
		"status": {"target": "get", "kind": "error", "status": 200},
		"delay":  {"target": "get", "kind": "slow", "delayMs": 999_999},
		"refund": {"target": "refund", "kind": "drop-after-commit"},
	} {
		if r := w.do("POST", "/sandbox/faults", encode(fault)); r.status != 400 {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	if faults := w.Faults(); len(faults) != 0 {
		t.Errorf("kept: %+v", faults)
	}
}
