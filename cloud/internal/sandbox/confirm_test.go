package sandbox_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

func TestConfirm(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]struct{ status, object string }{
		sandbox.MethodCard:           {"DONE", "card"},
		sandbox.MethodEasyPay:        {"DONE", "easyPay"},
		sandbox.MethodMobilePhone:    {"DONE", "mobilePhone"},
		sandbox.MethodVirtualAccount: {"WAITING_FOR_DEPOSIT", "virtualAccount"},
	} {
		t.Run(want.object, func(t *testing.T) {
			t.Parallel()
			w := open(t, sandbox.Options{})
			key := w.authenticated(method)
			r := w.confirm(key)
			if r.status != http.StatusOK || r.text("status") != want.status || r.text("method") != method {
				t.Fatalf("confirm: %d %s", r.status, r.raw)
			}
			if r.text("paymentKey") != key || r.text("orderId") != order || r.number("totalAmount") != 18000 || r.number("balanceAmount") != 18000 {
				t.Errorf("another payment: %s", r.raw)
			}
			if _, ok := r.body[want.object].(map[string]any); !ok {
				t.Errorf("%s is not filled in: %s", want.object, r.raw)
			}
			paid := want.status == "DONE"
			if got := r.body["approvedAt"] != nil; got != paid {
				t.Errorf("approvedAt is set: %v, want %v", got, paid)
			}
			charged := 0
			if paid {
				charged = 18000
			}
			w.wantSums(charged, 0)
			for _, path := range []string{"/v1/payments/" + key, "/v1/payments/orders/" + order} {
				if again := w.do("GET", path, "", "Authorization", widgetAuth); string(again.raw) != string(r.raw) {
					t.Errorf("GET %s differs from the answer to confirm:\n%s\n%s", path, again.raw, r.raw)
				}
			}
			wantStatus(t, w.confirm(key), 400, "ALREADY_PROCESSED_PAYMENT")
			w.wantSums(charged, 0)
		})
	}
}

func TestConfirmRefuses(t *testing.T) {
	t.Parallel()
	with := func(name string, value any) func(map[string]any) {
		return func(body map[string]any) { body[name] = value }
	}
	for name, test := range map[string]struct {
		change func(map[string]any)
		status int
		code   string
	}{
		"other amount":    {with("amount", 17000), 400, "INVALID_REQUEST"},
		"amount as text":  {with("amount", "18000"), 400, "INVALID_REQUEST"},
		"no amount":       {func(b map[string]any) { delete(b, "amount") }, 400, "INVALID_REQUEST"},
		"negative amount": {with("amount", -1), 400, "INVALID_REQUEST"},
		"other order":     {with("orderId", "order-0002"), 404, "NOT_FOUND_PAYMENT_SESSION"},
		"short order":     {with("orderId", "ab"), 400, "INVALID_REQUEST"},
		"unknown key":     {with("paymentKey", "tgyeo-nothing"), 404, "NOT_FOUND_PAYMENT_SESSION"},
		"long key":        {with("paymentKey", strings.Repeat("k", 201)), 400, "INVALID_REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, sandbox.Options{})
			key := w.authenticated(sandbox.MethodCard)
			body := map[string]any{"paymentKey": key, "orderId": order, "amount": 18000}
			test.change(body)
			r := w.confirmWith(body)
			wantStatus(t, r, test.status, test.code)
			if r.text("message") == "" {
				t.Error("no message")
			}
			w.wantSums(0, 0)
			if r := w.confirm(key); r.status != 200 {
				t.Errorf("the right request afterwards: %d %s", r.status, r.raw)
			}
		})
	}
}

func TestSessionExpires(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	early, late := w.authenticated(sandbox.MethodCard), w.authenticated(sandbox.MethodCard)
	w.clock.add(10*time.Minute - time.Nanosecond)
	if got := w.get(late).text("status"); got != "IN_PROGRESS" {
		t.Errorf("just before ten minutes: %s", got)
	}
	if r := w.confirm(early); r.status != 200 {
		t.Fatalf("just before ten minutes: %d %s", r.status, r.raw)
	}
	w.clock.add(time.Nanosecond)
	if got := w.get(late).text("status"); got != "EXPIRED" {
		t.Errorf("after ten minutes: %s", got)
	}
	wantStatus(t, w.confirm(late), 404, "NOT_FOUND_PAYMENT_SESSION")
	w.wantSums(18000, 0)
}

func TestReadyExpires(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	p, err := w.Open(sandbox.Checkout{OrderID: order, Amount: 18000})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, w.confirm(p.PaymentKey), 404, "NOT_FOUND_PAYMENT_SESSION")
	if again, err := w.Open(sandbox.Checkout{OrderID: order, Amount: 18000}); err != nil || again.PaymentKey != p.PaymentKey {
		t.Errorf("a reload opened payment %q (%v), want %q", again.PaymentKey, err, p.PaymentKey)
	}
	w.clock.add(30 * time.Minute)
	if got := w.get(p.PaymentKey).text("status"); got != "EXPIRED" {
		t.Errorf("after thirty minutes: %s", got)
	}
	if err := w.AuthenticatePayment(p.PaymentKey, sandbox.MethodCard, ""); err == nil {
		t.Error("an expired payment was authenticated")
	}
}

// If two windows confirm the same order, the money is captured once.
func TestOrderIsPaidOnce(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	first, second := w.authenticated(sandbox.MethodCard), w.authenticated(sandbox.MethodEasyPay)
	if r := w.confirm(first); r.status != 200 {
		t.Fatalf("first: %d %s", r.status, r.raw)
	}
	wantStatus(t, w.confirm(second), 400, "DUPLICATED_ORDER_ID")
	w.wantSums(18000, 0)
	if got := w.do("GET", "/v1/payments/orders/"+order, "", "Authorization", widgetAuth).text("paymentKey"); got != second {
		t.Errorf("the order shows payment %q, want the newest", got)
	}
	if _, err := w.Open(sandbox.Checkout{OrderID: order, Amount: 18000}); err == nil {
		t.Error("the widget opened for an order that is paid")
	}
}

func TestDecline(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	w.must("POST", "/sandbox/payments/"+key+"/decline", "")
	wantStatus(t, w.confirm(key), 403, "REJECT_CARD_PAYMENT")
	r := w.get(key)
	failure, _ := r.body["failure"].(map[string]any)
	if r.text("status") != "ABORTED" || failure["code"] != "REJECT_CARD_PAYMENT" {
		t.Errorf("after the refusal: %s", r.raw)
	}
	wantStatus(t, w.confirm(key), 404, "NOT_FOUND_PAYMENT_SESSION")
	w.wantSums(0, 0)

	// The buyer retries with the same order.
	if r := w.confirm(w.authenticated(sandbox.MethodCard)); r.status != 200 {
		t.Errorf("second try: %d %s", r.status, r.raw)
	}
}

func TestBelowMinimum(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	for method, amount := range map[string]int{sandbox.MethodCard: 99, sandbox.MethodVirtualAccount: 199} {
		key, err := w.Authenticate(sandbox.Checkout{OrderID: order, Amount: amount, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, w.confirmWith(map[string]any{"paymentKey": key, "orderId": order, "amount": amount}), 400, "BELOW_MINIMUM_AMOUNT")
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	wantStatus(t, w.get("nothing"), 404, "NOT_FOUND_PAYMENT")
	wantStatus(t, w.do("GET", "/v1/payments/orders/nothing", "", "Authorization", widgetAuth), 404, "NOT_FOUND_PAYMENT")
	wantStatus(t, w.cancel("nothing", map[string]any{"cancelReason": "변심"}), 404, "NOT_FOUND_PAYMENT")
	wantStatus(t, w.do("GET", "/v1/nothing", "", "Authorization", widgetAuth), 404, "NOT_FOUND")
}
