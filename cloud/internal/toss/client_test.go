package toss

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const order = "ord-20261121-7f3a"

// sent is a request as the provider received it.
type sent struct {
	method, uri, auth, key, contentType string
	body                                string
}

// provider starts a server with handler, and returns a client for it and the recorded requests.
func provider(t *testing.T, handler http.HandlerFunc) (*Client, func() []sent) {
	t.Helper()
	var mu sync.Mutex
	var seen []sent
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen = append(seen, sent{r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"), r.Header.Get("Content-Type"), string(b)})
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(b))
		handler(w, r)
	}))
	t.Cleanup(srv.Close)
	c, err := New(Config{BaseURL: srv.URL, WidgetSecretKey: "test_gsk_example", APISecretKey: "test_sk_example"})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() []sent {
		mu.Lock()
		defer mu.Unlock()
		return append([]sent(nil), seen...)
	}
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/payment/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func answer(status int, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json;charset=UTF-8")
		w.Header().Set("x-tosspayments-trace-id", "trace-1")
		w.WriteHeader(status)
		w.Write(body)
	}
}

func refuse(status int, code, message string) http.HandlerFunc {
	b, _ := json.Marshal(map[string]any{"code": code, "message": message, "data": nil})
	return answer(status, b)
}

func TestRequests(t *testing.T) {
	t.Parallel()
	won := func(n int) *int { return &n }
	due := time.Date(2026, 11, 21, 6, 10, 9, 0, time.UTC)
	ctx := context.Background()
	const (
		widgetAuth = "Basic dGVzdF9nc2tfZXhhbXBsZTo="
		apiAuth    = "Basic dGVzdF9za19leGFtcGxlOg==" // test vector of the provider's authentication scheme
	)
	for _, tc := range []struct {
		name string
		call func(*Client) (Payment, error)
		want sent
	}{
		{"confirm", func(c *Client) (Payment, error) {
			return c.Confirm(ctx, Widget, "confirm-1", ConfirmRequest{"tpk_0001", order, 18000})
		}, sent{"POST", "/v1/payments/confirm", widgetAuth, "confirm-1", "application/json",
			`{"paymentKey":"tpk_0001","orderId":"ord-20261121-7f3a","amount":18000}`}},
		{"read", func(c *Client) (Payment, error) { return c.Payment(ctx, API, "tpk_0001") },
			sent{"GET", "/v1/payments/tpk_0001", apiAuth, "", "", ""}},
		{"read by order", func(c *Client) (Payment, error) { return c.PaymentByOrder(ctx, Widget, order) },
			sent{"GET", "/v1/payments/orders/" + order, widgetAuth, "", "", ""}},
		{"cancel all", func(c *Client) (Payment, error) {
			return c.Cancel(ctx, Widget, "cancel-1", "tpk_0001", CancelRequest{Reason: "고객 요청"})
		}, sent{"POST", "/v1/payments/tpk_0001/cancel", widgetAuth, "cancel-1", "application/json", `{"cancelReason":"고객 요청"}`}},
		{"cancel a deposit in part", func(c *Client) (Payment, error) {
			return c.Cancel(ctx, API, "cancel-2", "tpk_0001", CancelRequest{"고객 요청", won(5000), &RefundAccount{"20", "1002-123 456", "홍길동"}})
		}, sent{"POST", "/v1/payments/tpk_0001/cancel", apiAuth, "cancel-2", "application/json",
			`{"cancelReason":"고객 요청","cancelAmount":5000,"refundReceiveAccount":{"bank":"20","accountNumber":"1002123456","holderName":"홍길동"}}`}},
		{"issue", func(c *Client) (Payment, error) {
			return c.IssueVirtualAccount(ctx, API, "issue-1", VirtualAccountRequest{Amount: 18000, OrderID: order, OrderName: "2번 룸",
				CustomerName: "홍길동", Email: "a@example.com", Mobile: "01012345678", Bank: "20", DueDate: due})
		}, sent{"POST", "/v1/virtual-accounts", apiAuth, "issue-1", "application/json",
			`{"amount":18000,"orderId":"ord-20261121-7f3a","orderName":"2번 룸","customerName":"홍길동","customerEmail":"a@example.com","customerMobilePhone":"01012345678","bank":"20","dueDate":"2026-11-21T15:10:09"}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, seen := provider(t, answer(200, file(t, "card")))
			p, err := tc.call(c)
			if err != nil {
				t.Fatal(err)
			}
			if p.OrderID != order || p.Status != StatusDone {
				t.Errorf("got %+v", p)
			}
			if got := seen(); len(got) != 1 || got[0] != tc.want {
				t.Errorf("sent %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// TestUnknownOutcomes: every error without a readable, listed code is Unknown.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"html":               answer(200, []byte("<html>maintenance</html>")),
		"half a payment":     answer(200, file(t, "card")[:200]),
		"empty":              answer(200, nil),
		"not a payment":      answer(200, []byte(`{"ok":true}`)),
		"accepted, not done": answer(202, file(t, "card")),
		"endless":            answer(200, bytes.Repeat([]byte(" "), maxBody+1)),
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"500":                refuse(500, "FAILED_INTERNAL_SYSTEM_PROCESSING", "내부 오류"),
		"502 html":           answer(502, []byte("<html>")),
		"409":                refuse(409, "IDEMPOTENT_REQUEST_PROCESSING", "처리 중"),
		"429":                answer(429, nil),
		"404 without a code": answer(404, []byte("404 page not found")),
		"unknown code":       refuse(400, "SOMETHING_NEW", "새로운 오류"),
		"reset":              func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"reset in the middle": func(w http.ResponseWriter, _ *http.Request) {
			w.Write(file(t, "card")[:100])
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := provider(t, handler)
			p, err := c.Confirm(context.Background(), Widget, "confirm-1", ConfirmRequest{"tpk_0001", order, 18000})
			if err == nil || ClassOf(err) != Unknown {
				t.Errorf("%+v, %v (%v), want an unknown outcome", p, err, ClassOf(err))
			}
			if p.Status != "" {
				t.Errorf("an unknown outcome came with a payment: %+v", p)
			}
			for _, s := range seen() {
				if s.uri != "/v1/payments/confirm" {
					t.Errorf("continued to %s", s.uri)
				}
			}
		})
	}
}

func TestTimeoutIsUnknown(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	c, _ := provider(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	_, err := c.Confirm(ctx, Widget, "confirm-1", ConfirmRequest{"tpk_0001", order, 18000})
	if ClassOf(err) != Unknown || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v (%v), want an unknown outcome by deadline", err, ClassOf(err))
	}
}

func TestUnreachableIsUnknown(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(nil)
	c, err := New(Config{BaseURL: srv.URL, WidgetSecretKey: "w", APISecretKey: "a"})
	if err != nil {
		t.Fatal(err)
	}
	srv.Close()
	_, err = c.Payment(context.Background(), Widget, "tpk_secretish")
	if err == nil || ClassOf(err) != Unknown {
		t.Errorf("%v is %v", err, ClassOf(err))
	}
	if strings.Contains(err.Error(), "tpk_secretish") {
		t.Errorf("the error names the payment key: %v", err)
	}
}

func TestRefusalCarriesTheProvidersWords(t *testing.T) {
	t.Parallel()
	c, _ := provider(t, refuse(403, "REJECT_CARD_COMPANY", "결제 승인이 거절되었습니다"))
	_, err := c.Confirm(context.Background(), Widget, "confirm-1", ConfirmRequest{"tpk_0001", order, 18000})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%T %v", err, err)
	}
	if e.Class() != Refused || e.HTTPStatus != 403 || e.Code != "REJECT_CARD_COMPANY" || e.Message != "결제 승인이 거절되었습니다" || e.TraceID != "trace-1" {
		t.Errorf("%+v", e)
	}
}

func TestNothingWrongIsSent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	long := strings.Repeat("가", 201)
	zero := 0
	for name, tc := range map[string]struct {
		call func(*Client) (Payment, error)
		want Class
	}{
		"payment key climbs": {func(c *Client) (Payment, error) { return c.Payment(ctx, Widget, "..") }, NotFound},
		"payment key with a slash": {func(c *Client) (Payment, error) {
			return c.Cancel(ctx, Widget, "k", "a/../b", CancelRequest{Reason: "r"})
		}, NotFound},
		"payment key too long": {func(c *Client) (Payment, error) {
			return c.Confirm(ctx, Widget, "k", ConfirmRequest{strings.Repeat("a", 201), order, 1})
		}, NotFound},
		"no order":   {func(c *Client) (Payment, error) { return c.PaymentByOrder(ctx, Widget, "") }, NotFound},
		"no key set": {func(c *Client) (Payment, error) { return c.Payment(ctx, "", "tpk") }, Misconfigured},
		"no key":     {func(c *Client) (Payment, error) { return c.Confirm(ctx, Widget, "", ConfirmRequest{"tpk", order, 1}) }, Misconfigured},
		"key too long": {func(c *Client) (Payment, error) {
			return c.Confirm(ctx, Widget, strings.Repeat("k", 301), ConfirmRequest{"tpk", order, 1})
		}, Misconfigured},
		"key with a line break": {func(c *Client) (Payment, error) {
			return c.Confirm(ctx, Widget, "a\r\nX: y", ConfirmRequest{"tpk", order, 1})
		}, Misconfigured},
		"no reason": {func(c *Client) (Payment, error) { return c.Cancel(ctx, Widget, "k", "tpk", CancelRequest{}) }, Refused},
		"reason too long": {func(c *Client) (Payment, error) {
			return c.Cancel(ctx, Widget, "k", "tpk", CancelRequest{Reason: long})
		}, Refused},
		"nothing to cancel": {func(c *Client) (Payment, error) {
			return c.Cancel(ctx, Widget, "k", "tpk", CancelRequest{Reason: "r", Amount: &zero})
		}, Refused},
		"account with letters": {func(c *Client) (Payment, error) {
			return c.Cancel(ctx, Widget, "k", "tpk", CancelRequest{Reason: "r", RefundAccount: &RefundAccount{"20", "12ab", "홍길동"}})
		}, RefundAccountInvalid},
		"account without holder": {func(c *Client) (Payment, error) {
			return c.Cancel(ctx, Widget, "k", "tpk", CancelRequest{Reason: "r", RefundAccount: &RefundAccount{"20", "12", " "}})
		}, RefundAccountInvalid},
		"account without due date": {func(c *Client) (Payment, error) {
			return c.IssueVirtualAccount(ctx, API, "k", VirtualAccountRequest{Amount: 1, OrderID: order, OrderName: "o", CustomerName: "c"})
		}, Misconfigured},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := provider(t, answer(200, file(t, "card")))
			_, err := tc.call(c)
			if err == nil || ClassOf(err) != tc.want {
				t.Errorf("%v is %v, want %v", err, ClassOf(err), tc.want)
			}
			if got := seen(); len(got) != 0 {
				t.Errorf("sent %+v", got)
			}
		})
	}
}

func TestDueDateTooNearFallsBackToOneHour(t *testing.T) {
	t.Parallel()
	c, seen := provider(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if bytes.Contains(b, []byte("dueDate")) {
			refuse(400, "INVALID_REQUEST", "입금 기한이 너무 짧습니다")(w, r)
			return
		}
		answer(200, file(t, "virtual-account"))(w, r)
	})
	p, err := c.IssueVirtualAccount(context.Background(), API, "issue-1", VirtualAccountRequest{Amount: 18000, OrderID: order,
		OrderName: "2번 룸", CustomerName: "홍길동", Bank: "20", DueDate: time.Now().Add(10 * time.Minute)})
	if err != nil || p.Status != StatusWaitingForDeposit {
		t.Fatalf("%+v, %v", p, err)
	}
	got := seen()
	if len(got) != 2 || got[0].key == got[1].key || !strings.Contains(got[1].body, `"validHours":1`) {
		t.Errorf("sent %+v", got)
	}
}

func TestTransactionsPages(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 13, 15, 0, 0, 0, time.UTC)
	c, seen := provider(t, func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Query().Get("startingAfter"), "TX"))
		page := []map[string]any{}
		for i := after + 1; i <= min(after+2, 5); i++ { // a provider with a lower page limit than requested
			page = append(page, map[string]any{"transactionKey": fmt.Sprint("TX", i), "orderId": order, "amount": 1000 * i,
				"status": "DONE", "transactionAt": "2026-11-21T15:00:09+09:00"})
		}
		b, _ := json.Marshal(page)
		answer(200, b)(w, r)
	})
	list, err := c.Transactions(context.Background(), Widget, from, from.AddDate(0, 0, 7))
	if err != nil {
		t.Fatal(err)
	}
	var sum int
	for _, tx := range list {
		sum += tx.Amount
	}
	if sum != 15000 {
		t.Errorf("summed up %d won, want 15000", sum)
	}
	if got := seen(); len(got) != 4 || got[0].uri != "/v1/transactions?endDate=2026-11-21T00%3A00%3A00&limit=500&startDate=2026-11-14T00%3A00%3A00" {
		t.Errorf("asked %+v", got)
	}
}

func TestTransactionsAreWholeOrAnError(t *testing.T) {
	t.Parallel()
	page := []byte(`[{"transactionKey":"TX1","orderId":"o","amount":1}]`)
	for name, handler := range map[string]http.HandlerFunc{
		"same page again and again": answer(200, page),
		"fails later": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("startingAfter") {
				refuse(500, "COMMON_ERROR", "")(w, r)
				return
			}
			answer(200, page)(w, r)
		},
		"nameless transaction": answer(200, []byte(`[{"amount":1}]`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := provider(t, handler)
			if list, err := c.Transactions(context.Background(), API, time.Now(), time.Now()); err == nil || list != nil {
				t.Errorf("%v, %v", list, err)
			}
		})
	}
}

func TestSecretsStayOutOfLogsAndErrors(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(refuse(401, "UNAUTHORIZED_KEY", "인증되지 않은 키"))
	defer srv.Close()
	var log bytes.Buffer
	c, err := New(Config{BaseURL: srv.URL, WidgetSecretKey: "test_gsk_verysecret", APISecretKey: "test_sk_verysecret",
		Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Cancel(context.Background(), Widget, "cancel-1", "tpk_0001", CancelRequest{"사유", nil, &RefundAccount{"20", "110555666777", "홍길동"}})
	if ClassOf(err) != Misconfigured {
		t.Errorf("%v is %v", err, ClassOf(err))
	}
	for _, secret := range []string{"verysecret", "dGVzdF9", "tpk_0001", "110555666777", "홍길동"} {
		if strings.Contains(log.String(), secret) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in %s or %v", secret, log.String(), err)
		}
	}
	if !strings.Contains(log.String(), `"code":"UNAUTHORIZED_KEY"`) || !strings.Contains(log.String(), `"level":"ERROR"`) {
		t.Errorf("logged %s", log.String())
	}
}

func TestNewRefusesBadSettings(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"plain http":     {BaseURL: "http://api.example.com", WidgetSecretKey: "w", APISecretKey: "a"},
		"no scheme":      {BaseURL: "api.example.com", WidgetSecretKey: "w", APISecretKey: "a"},
		"other scheme":   {BaseURL: "ftp://127.0.0.1", WidgetSecretKey: "w", APISecretKey: "a"},
		"no widget key":  {APISecretKey: "a"},
		"no api key":     {WidgetSecretKey: "w"},
		"key with colon": {WidgetSecretKey: "w:", APISecretKey: "a"},
		"key with break": {WidgetSecretKey: "w\n", APISecretKey: "a"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, base := range []string{"", "https://api.example.com/prefix/", "http://127.0.0.1:8090", "http://localhost:1", "http://[::1]:1"} {
		if _, err := New(Config{BaseURL: base, WidgetSecretKey: "w", APISecretKey: "a"}); err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
}
