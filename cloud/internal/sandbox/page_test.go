package sandbox_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// browse is a client that returns redirects instead of following them.
var browse = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// press submits the form of the payment window and returns the address of the redirect.
func (w *world) press(p sandbox.Payment, fields url.Values) *url.URL {
	w.t.Helper()
	fields.Set("paymentKey", p.PaymentKey)
	fields.Set("successUrl", "http://shop.test/success?branch=gangnam")
	fields.Set("failUrl", "http://shop.test/fail")
	res, err := browse.PostForm(w.url+"/sandbox/widget", fields)
	if err != nil {
		w.t.Fatal(err)
	}
	res.Body.Close()
	to, err := res.Location()
	if err != nil || res.StatusCode != http.StatusSeeOther {
		w.t.Fatalf("status %d, %v", res.StatusCode, err)
	}
	return to
}

func TestWidget(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fields url.Values
		path   string
		query  map[string]string
		status sandbox.Status
	}{
		"pay": {url.Values{"action": {"pay"}, "method": {"가상계좌"}, "bank": {"88"}}, "/success",
			map[string]string{"paymentType": "NORMAL", "orderId": order, "amount": "18000", "branch": "gangnam"}, "IN_PROGRESS"},
		"fail": {url.Values{"action": {"fail"}}, "/fail",
			map[string]string{"code": "REJECT_CARD_COMPANY", "message": "결제 승인이 거절되었습니다.", "orderId": order}, "READY"},
		"cancel": {url.Values{"action": {"cancel"}}, "/fail",
			map[string]string{"code": "PAY_PROCESS_CANCELED", "message": "사용자에 의해 결제가 취소되었습니다.", "orderId": order}, "READY"},
		"no method": {url.Values{"action": {"pay"}}, "/fail", map[string]string{"code": "PAY_PROCESS_ABORTED", "orderId": order}, "READY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, sandbox.Options{})
			page := w.do("GET", "/sandbox/widget?"+url.Values{
				"orderId": {order}, "amount": {"18000"}, "orderName": {"<b>2번 룸"}, "customerName": {"홍길동"},
				"successUrl": {"http://shop.test/success"}, "failUrl": {"http://shop.test/fail"},
			}.Encode(), "")
			if page.status != 200 || !strings.Contains(string(page.raw), "18,000원") || !strings.Contains(string(page.raw), "&lt;b&gt;2번 룸") {
				t.Fatalf("%d %s", page.status, page.raw)
			}
			opened := w.Payments(order)
			if len(opened) != 1 || opened[0].Status != sandbox.StatusReady {
				t.Fatalf("opened: %+v", opened)
			}
			to := w.press(opened[0], test.fields)
			if to.Host != "shop.test" || to.Path != test.path {
				t.Errorf("sent to %s", to)
			}
			for key, want := range test.query {
				if got := to.Query().Get(key); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			if got := to.Query().Get("paymentKey"); test.path == "/success" && got != opened[0].PaymentKey {
				t.Errorf("paymentKey %q", got)
			}
			if got := w.Payments(order)[0].Status; got != test.status {
				t.Errorf("status %s, want %s", got, test.status)
			}
		})
	}
}

// TestStageOriginMayFrame checks that the pages name exactly the origin of the option, and none without it.
func TestStageOriginMayFrame(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]string{"": "frame-ancestors 'none'", "http://127.0.0.1:8070": "frame-ancestors http://127.0.0.1:8070"} {
		w := open(t, sandbox.Options{StageOrigin: origin})
		window := url.Values{"orderId": {order}, "amount": {"18000"}, "successUrl": {"http://shop.test/s"}, "failUrl": {"http://shop.test/f"}}
		for _, path := range []string{"/", "/sandbox/widget?" + window.Encode()} {
			res, err := browse.Get(w.url + path)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			got := regexp.MustCompile(`frame-ancestors[^;]*`).FindAllString(res.Header.Get("Content-Security-Policy"), -1)
			if res.StatusCode != http.StatusOK || !slices.Equal(got, []string{want}) || res.Header.Get("X-Frame-Options") != "" {
				t.Errorf("%s with the option %q: %d, %q, want %q", path, origin, res.StatusCode, got, want)
			}
		}
	}
}

func TestWidgetRefuses(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	good := url.Values{"orderId": {order}, "amount": {"18000"}, "successUrl": {"http://shop.test/s"}, "failUrl": {"http://shop.test/f"}}
	for name, value := range map[string]string{"orderId": "x", "amount": "free", "successUrl": "javascript:alert(1)", "failUrl": "/f"} {
		bad := url.Values{}
		for k, v := range good {
			bad[k] = v
		}
		bad.Set(name, value)
		if r := w.do("GET", "/sandbox/widget?"+bad.Encode(), ""); r.status != 400 {
			t.Errorf("%s=%s: %d", name, value, r.status)
		}
	}
	w.paid(sandbox.MethodCard)
	res, err := browse.Get(w.url + "/sandbox/widget?" + good.Encode())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if to, err := res.Location(); err != nil || to.Query().Get("code") != "DUPLICATED_ORDER_ID" {
		t.Errorf("an order that is paid: %v %v", to, err)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	for path, want := range map[string]string{
		"/": "열다", "/page/index.js": "refresh", "/page/style.css": ".card", "/v2/standard": "TossPayments.ANONYMOUS",
	} {
		r := w.do("GET", path, "")
		if r.status != 200 || !strings.Contains(string(r.raw), want) {
			t.Errorf("%s: %d %.80s", path, r.status, r.raw)
		}
		for _, foreign := range []string{"https://cdn", "http://cdn", "//unpkg", "googleapis"} {
			if strings.Contains(string(r.raw), foreign) {
				t.Errorf("%s refers to %s", path, foreign)
			}
		}
	}
	if r := w.do("GET", "/nothing", ""); r.status != 404 {
		t.Errorf("unknown path: %d", r.status)
	}
}

// A page of another origin in the same browser cannot move money.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	w.issue(account())
	r := w.do("POST", "/sandbox/deposits", encode(map[string]any{"orderId": order}), "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test")
	if r.status != http.StatusForbidden || w.orderStatus() != "WAITING_FOR_DEPOSIT" {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

func TestStateFile(t *testing.T) {
	t.Parallel()
	url, callbacks := shop(t, 503)
	file := filepath.Join(t.TempDir(), "state.json")
	first := open(t, sandbox.Options{StateFile: file, WebhookURL: url, CallbackRetries: []time.Duration{time.Hour}})
	key := first.authenticated(sandbox.MethodCard)
	answer := first.confirm(key, "Idempotency-Key", "k1")
	first.issue(account("orderId", "order-0002"))
	if _, err := first.Deposit("order-0002"); err != nil {
		t.Fatal(err)
	}
	id := next(t, callbacks).header.Get("Tosspayments-Webhook-Transmission-Id")
	first.Close()

	second := open(t, sandbox.Options{StateFile: file, WebhookURL: url})
	second.wantSums(36000, 0)
	if again := second.confirm(key, "Idempotency-Key", "k1"); encode(again.body) != encode(answer.body) {
		t.Errorf("the idempotency key is forgotten: %d %s", again.status, again.raw)
	}
	if got := second.get(key); encode(got.body) != encode(answer.body) {
		t.Errorf("the payment changed over the restart:\n%s\n%s", answer.raw, got.raw)
	}
	c := next(t, callbacks) // a retry of the callback that the first run did not deliver
	if c.header.Get("Tosspayments-Webhook-Transmission-Id") != id || c.body["orderId"] != "order-0002" {
		t.Errorf("callback after the restart: %v %v", c.header, c.body)
	}
}

func TestStateFileIsBroken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.New(sandbox.Options{StateFile: file}); err == nil {
		t.Error("a broken state file was taken")
	}
}
