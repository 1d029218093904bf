package sandbox_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

func account(more ...any) map[string]any {
	body := map[string]any{
		"amount": 18000, "orderId": order, "orderName": "2번 룸 60분", "customerName": "홍길동", "bank": "88",
		"dueDate": "2026-11-21T15:10:00",
	}
	for i := 0; i < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	return body
}

func (w *world) issue(body map[string]any) reply {
	w.t.Helper()
	return w.do("POST", "/v1/virtual-accounts", encode(body), "Authorization", apiAuth)
}

func (w *world) orderStatus() string {
	w.t.Helper()
	return w.must("GET", "/sandbox/payments?orderId="+order, "").body["payments"].([]any)[0].(map[string]any)["status"].(string)
}

func TestIssueAccount(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	r := w.issue(account())
	va, _ := r.body["virtualAccount"].(map[string]any)
	if r.status != 200 || r.text("status") != "WAITING_FOR_DEPOSIT" || r.text("method") != "가상계좌" || r.text("secret") == "" {
		t.Fatalf("issue: %d %s", r.status, r.raw)
	}
	number, _ := va["accountNumber"].(string)
	if va["bankCode"] != "88" || va["dueDate"] != "2026-11-21T15:10:00+09:00" || va["customerName"] != "홍길동" ||
		va["expired"] != false || va["refundStatus"] != "NONE" || !strings.HasPrefix(number, "X") || len(number) > 20 {
		t.Errorf("virtualAccount: %v", va)
	}
	w.wantSums(0, 0)
	wantStatus(t, w.issue(account()), 400, "DUPLICATED_ORDER_ID")
}

func TestIssueAccountRefuses(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	for name, test := range map[string]struct {
		body map[string]any
		code string
	}{
		"unknown bank":      {account("bank", "99"), "INVALID_BANK"},
		"refund-only bank":  {account("bank", "90"), "INVALID_BANK"},
		"no name":           {account("customerName", ""), "INVALID_REQUEST"},
		"long order name":   {account("orderName", strings.Repeat("가", 101)), "INVALID_REQUEST"},
		"order with =":      {account("orderId", "order=0001"), "INVALID_REQUEST"},
		"both dues":         {account("validHours", 1), "INVALID_REQUEST"},
		"due in the past":   {account("dueDate", "2026-11-21T15:00:00"), "INVALID_REQUEST"},
		"due too late":      {account("dueDate", "2026-12-21T15:00:01"), "INVALID_REQUEST"},
		"due with offset":   {account("dueDate", "2026-11-21T15:10:00+09:00"), "INVALID_REQUEST"},
		"hours too many":    {account("dueDate", "", "validHours", 721), "INVALID_REQUEST"},
		"amount too little": {account("amount", 199), "BELOW_MINIMUM_AMOUNT"},
		"mail":              {account("customerEmail", "nobody"), "INVALID_EMAIL"},
	} {
		if r := w.issue(test.body); r.status != 400 || r.text("code") != test.code {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	if r := w.do("POST", "/v1/virtual-accounts", encode(account()), "Authorization", widgetAuth); r.text("code") != "INVALID_API_KEY" {
		t.Errorf("with the widget key: %d %s", r.status, r.raw)
	}
	for _, bank := range []string{"20", "우리", "WOORI"} {
		if r := w.issue(account("bank", bank, "orderId", "order-"+encodeName(bank))); r.status != 200 {
			t.Errorf("bank %s: %d %s", bank, r.status, r.raw)
		}
	}
}

func encodeName(s string) string {
	if s == "우리" {
		return "korean"
	}
	return s
}

func TestDeposit(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	deposit := func() reply { return w.do("POST", "/sandbox/deposits", encode(map[string]any{"orderId": order})) }
	if r := deposit(); r.status != 404 {
		t.Errorf("before there is an account: %d %s", r.status, r.raw)
	}
	w.issue(account())
	if r := deposit(); r.status != 200 || r.text("status") != "DONE" {
		t.Fatalf("deposit: %d %s", r.status, r.raw)
	}
	if got := w.orderStatus(); got != "DONE" {
		t.Errorf("status %s", got)
	}
	w.wantSums(18000, 0)
	if r := deposit(); r.status != 409 {
		t.Errorf("second deposit: %d %s", r.status, r.raw)
	}
	w.wantSums(18000, 0)
}

func TestDepositAfterDue(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.issue(account()).text("paymentKey")
	w.clock.add(10 * time.Minute)
	if r := w.do("POST", "/sandbox/deposits", encode(map[string]any{"orderId": order})); r.status != 409 {
		t.Errorf("deposit: %d %s", r.status, r.raw)
	}
	r := w.do("GET", "/v1/payments/"+key, "", "Authorization", apiAuth)
	va, _ := r.body["virtualAccount"].(map[string]any)
	if r.text("status") != "EXPIRED" || va["expired"] != true {
		t.Errorf("after the due time: %s", r.raw)
	}
	wantStatus(t, w.do("POST", "/v1/payments/"+key+"/cancel", encode(reason()), "Authorization", apiAuth), 403, "NOT_CANCELABLE_PAYMENT")
	wantStatus(t, w.issue(account("dueDate", "", "validHours", 1)), 400, "DUPLICATED_ORDER_ID") // the order already has an account
	w.wantSums(0, 0)
}

func TestReversal(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	reverse := func() reply { return w.do("POST", "/sandbox/reversals", encode(map[string]any{"orderId": order})) }
	w.issue(account())
	if r := reverse(); r.status != 409 {
		t.Errorf("nothing to reverse: %d %s", r.status, r.raw)
	}
	for range 2 { // after a reversal, the account accepts a deposit again
		w.must("POST", "/sandbox/deposits", encode(map[string]any{"orderId": order}))
		w.wantSums(18000, 0)
		if r := reverse(); r.status != 200 || w.orderStatus() != "WAITING_FOR_DEPOSIT" {
			t.Fatalf("reversal: %d %s", r.status, r.raw)
		}
		w.wantSums(0, 0)
	}
	if got := w.Payments(order)[0].ApprovedAt; got != nil {
		t.Errorf("approvedAt %v after the reversal", got)
	}
}

// callback is a request to the shop's webhook.
type callback struct {
	header http.Header
	body   map[string]any
}

// shop starts a server that receives callbacks. It answers with the given statuses in turn, then with 200.
func shop(t *testing.T, statuses ...int) (string, <-chan callback) {
	t.Helper()
	got := make(chan callback, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := decodeBody(r, &body); err != nil {
			t.Errorf("callback: %v", err)
		}
		got <- callback{r.Header, body}
		if len(statuses) > 0 { // sequential deliveries
			w.WriteHeader(statuses[0])
			statuses = statuses[1:]
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func TestDepositCallback(t *testing.T) {
	t.Parallel()
	url, callbacks := shop(t)
	w := open(t, sandbox.Options{WebhookURL: url})
	issued := w.issue(account())
	if r := w.must("POST", "/sandbox/deposits", encode(map[string]any{"orderId": order})); r.body["delivered"] != true {
		t.Errorf("deposit: %s", r.raw)
	}
	c := next(t, callbacks) // the callback was delivered before the response to the deposit
	done := w.do("GET", "/v1/payments/orders/"+order, "", "Authorization", apiAuth)
	want := map[string]any{
		"createdAt": "2026-11-21T15:00:00.000000", "secret": issued.text("secret"), "status": "DONE",
		"transactionKey": done.text("lastTransactionKey"), "orderId": order,
	}
	if encode(c.body) != encode(want) {
		t.Errorf("callback %v, want %v", c.body, want)
	}
	if c.header.Get("Tosspayments-Webhook-Transmission-Id") == "" || c.header.Get("Tosspayments-Webhook-Transmission-Retried-Count") != "0" {
		t.Errorf("headers: %v", c.header)
	}
	w.must("POST", "/sandbox/reversals", encode(map[string]any{"orderId": order}))
	if c := next(t, callbacks); c.body["status"] != "WAITING_FOR_DEPOSIT" {
		t.Errorf("after the reversal: %v", c.body)
	}
	w.do("POST", "/v1/payments/"+issued.text("paymentKey")+"/cancel", encode(reason()), "Authorization", apiAuth)
	if c := next(t, callbacks); c.body["status"] != "CANCELED" {
		t.Errorf("after the cancellation: %v", c.body)
	}
}

// If the answer is not 200, the provider retries the callback with the same transmission id.
func TestCallbackIsRetried(t *testing.T) {
	t.Parallel()
	url, callbacks := shop(t, 503, 302, 204)
	pause := time.Millisecond
	w := open(t, sandbox.Options{WebhookURL: url, CallbackRetries: []time.Duration{pause, pause, pause, time.Hour}})
	w.issue(account())
	if r := w.must("POST", "/sandbox/deposits", encode(map[string]any{"orderId": order})); r.body["delivered"] != false {
		t.Errorf("deposit: %s", r.raw)
	}
	var id string
	for i, count := range []string{"0", "1", "2", "3"} {
		c := next(t, callbacks)
		if i == 0 {
			id = c.header.Get("Tosspayments-Webhook-Transmission-Id")
		}
		if c.header.Get("Tosspayments-Webhook-Transmission-Retried-Count") != count || c.header.Get("Tosspayments-Webhook-Transmission-Id") != id {
			t.Errorf("attempt %d: %v", i, c.header)
		}
	}
}

// If the shop does not answer a callback, neither the deposit nor Close is delayed.
func TestCallbackDoesNotBlock(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	w := open(t, sandbox.Options{WebhookURL: server.URL})
	w.issue(account())
	d, err := w.Deposit(order)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.orderStatus(); got != "DONE" {
		t.Errorf("status %s while the shop does not answer", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := d.First(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the first attempt ended with %v", err)
	}
	w.Close() // does not wait for the shop
}
