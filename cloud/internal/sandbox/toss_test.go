package sandbox_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.paid(sandbox.MethodCard)
	for name, test := range map[string]struct {
		auth   string
		status int
		code   string
	}{
		"none":       {"", 401, "UNAUTHORIZED_KEY"},
		"wrong key":  {basic("test_gsk_other"), 401, "UNAUTHORIZED_KEY"},
		"client key": {basic(sandbox.DemoWidgetClientKey), 400, "INVALID_API_KEY"},
		"no colon":   {"Basic dGVzdF9nc2tfeWVvbGRhX2RlbW8=", 403, "INCORRECT_BASIC_AUTH_FORMAT"},
		"other set":  {apiAuth, 400, "INVALID_API_KEY"},
	} {
		wantStatus(t, w.do("GET", "/v1/payments/"+key, "", "Authorization", test.auth), test.status, test.code)
		wantStatus(t, w.do("POST", "/v1/payments/"+key+"/cancel", encode(reason()), "Authorization", test.auth), test.status, test.code)
		if t.Failed() {
			t.Fatalf("with %s", name)
		}
	}
	w.wantSums(18000, 0)
	wantStatus(t, w.confirm(w.authenticated(sandbox.MethodCard), "Authorization", apiAuth), 400, "INVALID_API_KEY")
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	first := w.confirm(key, "Idempotency-Key", "k1")
	if first.status != 200 {
		t.Fatalf("confirm: %d %s", first.status, first.raw)
	}
	// The body is not part of the identity: a request for another order receives the first response.
	for _, body := range []map[string]any{
		{"paymentKey": key, "orderId": order, "amount": 18000},
		{"paymentKey": "other", "orderId": "order-0002", "amount": 1},
	} {
		if again := w.confirmWith(body, "Idempotency-Key", "k1"); again.status != 200 || string(again.raw) != string(first.raw) {
			t.Errorf("repeated: %d %s", again.status, again.raw)
		}
	}
	w.wantSums(18000, 0)
	wantStatus(t, w.confirm(key, "Idempotency-Key", "k2"), 400, "ALREADY_PROCESSED_PAYMENT")

	// The same key at another URL or with another API key is a different request.
	if r := w.cancel(key, reason("cancelAmount", 1000), "Idempotency-Key", "k1"); r.status != 200 {
		t.Errorf("same key, other URL: %d %s", r.status, r.raw)
	}
	wantStatus(t, w.confirm(key, "Idempotency-Key", "k1", "Authorization", apiAuth), 400, "INVALID_API_KEY")

	for range 2 {
		w.cancel(key, reason("cancelAmount", 2000), "Idempotency-Key", "c1")
	}
	w.wantSums(18000, 3000)
}

func TestIdempotencyReplaysRefusals(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	wrong := map[string]any{"paymentKey": key, "orderId": order, "amount": 1}
	wantStatus(t, w.confirmWith(wrong, "Idempotency-Key", "k1"), 400, "INVALID_REQUEST")
	wantStatus(t, w.confirm(key, "Idempotency-Key", "k1"), 400, "INVALID_REQUEST")
	w.clock.add(15*24*time.Hour - time.Second)
	wantStatus(t, w.confirm(key, "Idempotency-Key", "k1"), 400, "INVALID_REQUEST")
	w.clock.add(time.Second)
	wantStatus(t, w.confirm(key, "Idempotency-Key", "k1"), 404, "NOT_FOUND_PAYMENT_SESSION")
}

// If the provider could not handle a request, a retry with the same idempotency key is executed.
func TestIdempotencyForgetsTrouble(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	for _, status := range []int{500, 503, 429} {
		w.fault(map[string]any{"target": "confirm", "kind": "error", "status": status})
		if r := w.confirm(key, "Idempotency-Key", "k1"); r.status != status {
			t.Errorf("with a fault: %d %s", r.status, r.raw)
		}
	}
	if r := w.confirm(key, "Idempotency-Key", "k1"); r.status != 200 {
		t.Errorf("afterwards: %d %s", r.status, r.raw)
	}
	w.wantSums(18000, 0)
}

func TestIdempotencyKeyLength(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	wantStatus(t, w.confirm(key, "Idempotency-Key", strings.Repeat("k", 301)), 400, "INVALID_IDEMPOTENCY_KEY")
	if r := w.confirm(key, "Idempotency-Key", strings.Repeat("k", 300)); r.status != 200 {
		t.Errorf("300 characters: %d %s", r.status, r.raw)
	}
}

// While the first request is in progress, a retry is rejected. Later retries receive the response of the first request.
func TestIdempotencyWhileRunning(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	if err := w.SetFault(sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultSlow, Delay: 300 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var first reply
	wg.Go(func() { first = w.confirm(key, "Idempotency-Key", "k1") })
	for len(w.Faults()) > 0 { // until the first request has reached its fault
		time.Sleep(time.Millisecond)
	}
	wantStatus(t, w.confirm(key, "Idempotency-Key", "k1"), 409, "IDEMPOTENT_REQUEST_PROCESSING")
	wg.Wait()
	if first.status != 200 {
		t.Fatalf("first: %d %s", first.status, first.raw)
	}
	if again := w.confirm(key, "Idempotency-Key", "k1"); string(again.raw) != string(first.raw) {
		t.Errorf("afterwards: %d %s", again.status, again.raw)
	}
	w.wantSums(18000, 0)
}

// If many requests with the same key are concurrent, exactly one is executed.
func TestIdempotencyAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.paid(sandbox.MethodCard)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			r := w.cancel(key, reason("cancelAmount", 1000), "Idempotency-Key", "k1")
			if r.status != 200 && r.status != 409 {
				t.Errorf("%d %s", r.status, r.raw)
			}
		})
	}
	wg.Wait()
	w.wantSums(18000, 1000)
}

func TestTestCode(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	for code, status := range map[string]int{"REJECT_CARD_PAYMENT": 403, "PROVIDER_ERROR": 400, "IDEMPOTENT_REQUEST_PROCESSING": 409} {
		r := w.confirm(key, "TossPayments-Test-Code", code)
		wantStatus(t, r, status, code)
		if r.text("message") == "" {
			t.Errorf("%s: no message", code)
		}
	}
	if r := w.confirm(key); r.status != 200 {
		t.Errorf("afterwards: %d %s", r.status, r.raw)
	}
}

func TestLedgerCalls(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	w.confirm(key, "Idempotency-Key", "k1")
	w.get(key)
	w.do("GET", "/v1/payments/orders/"+order, "", "Authorization", "")
	want := []sandbox.Call{
		{At: start, Method: "POST", Path: "/v1/payments/confirm", IdempotencyKey: "k1", OrderID: order, Status: 200, Keys: "widget"},
		{At: start, Method: "GET", Path: "/v1/payments/" + key, OrderID: order, Status: 200, Keys: "widget"},
		{At: start, Method: "GET", Path: "/v1/payments/orders/" + order, OrderID: order, Status: 401},
	}
	got := w.Ledger().Calls
	if len(got) != len(want) {
		t.Fatalf("calls: %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("call %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	r := w.must("GET", "/sandbox/ledger?limit=1", "")
	if calls, _ := r.body["calls"].([]any); len(calls) != 1 || r.number("charged") != 18000 || r.body["refunded"] != 0.0 {
		t.Errorf("ledger: %s", r.raw)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	wantStatus(t, w.confirmWith(map[string]any{"x": strings.Repeat("x", 64<<10)}), 400, "INVALID_REQUEST")
	if r := w.do("POST", "/sandbox/payments", `"`+strings.Repeat("x", 64<<10)+`"`); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("large body: %d %s", r.status, r.raw)
	}
}
