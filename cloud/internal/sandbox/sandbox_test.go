package sandbox_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const order = "order-0001"

// start is the initial time of every test's clock.
var start = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC) // 15:00 in Korea

// clock is a clock controlled by the test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a sandbox behind a real socket, with methods that call it as a shop.
type world struct {
	*sandbox.Sandbox
	t     *testing.T
	url   string
	clock *clock
}

func open(t *testing.T, opts sandbox.Options) *world {
	t.Helper()
	c := &clock{now: start}
	opts.Now = c.Now
	ownFile := opts.StateFile == ""
	if ownFile {
		opts.StateFile = filepath.Join(t.TempDir(), "state.json")
	}
	box, err := sandbox.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(box)
	t.Cleanup(func() {
		box.Close() // before server.Close, which waits for held connections
		server.Close()
		http.DefaultClient.CloseIdleConnections()
		if !ownFile {
			return // another sandbox may have continued with the file
		}
		if err := box.CheckSaved(); err != nil {
			t.Errorf("a change is not saved: %v", err)
		}
	})
	return &world{box, t, server.URL, c}
}

// reply is a decoded response.
type reply struct {
	status int
	body   map[string]any
	raw    []byte
}

func (r reply) text(name string) string {
	s, _ := r.body[name].(string)
	return s
}

func (r reply) number(name string) int {
	n, _ := r.body[name].(float64)
	return int(n)
}

func basic(key string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":"))
}

var (
	widgetAuth = basic(sandbox.DemoWidgetSecretKey)
	apiAuth    = basic(sandbox.DemoAPISecretKey)
)

// try sends a request; err is the transport's error.
func (w *world) try(method, path, body string, header ...string) (reply, error) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: res.StatusCode, raw: raw}
	_ = json.Unmarshal(raw, &r.body) // lists are checked in raw
	return r, nil
}

func (w *world) do(method, path, body string, header ...string) reply {
	w.t.Helper()
	r, err := w.try(method, path, body, header...)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// must sends a request under /sandbox that has to succeed.
func (w *world) must(method, path, body string) reply {
	w.t.Helper()
	r := w.do(method, path, body)
	if r.status != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s", method, path, r.status, r.raw)
	}
	return r
}

// authenticated returns a payment of 18,000 won that waits for confirmation.
func (w *world) authenticated(method string) (paymentKey string) {
	w.t.Helper()
	return w.must("POST", "/sandbox/payments", encode(map[string]any{
		"orderId": order, "amount": 18000, "method": method, "customerName": "홍길동", "customerMobilePhone": "01012345678",
	})).text("paymentKey")
}

func (w *world) confirm(key string, header ...string) reply {
	w.t.Helper()
	return w.confirmWith(map[string]any{"paymentKey": key, "orderId": order, "amount": 18000}, header...)
}

func (w *world) confirmWith(body map[string]any, header ...string) reply {
	w.t.Helper()
	return w.do("POST", "/v1/payments/confirm", encode(body), append([]string{"Authorization", widgetAuth}, header...)...)
}

// paid returns a confirmed payment of 18,000 won: DONE, or WAITING_FOR_DEPOSIT for a virtual account.
func (w *world) paid(method string) (paymentKey string) {
	w.t.Helper()
	key := w.authenticated(method)
	if r := w.confirm(key); r.status != http.StatusOK {
		w.t.Fatalf("confirm: %d %s", r.status, r.raw)
	}
	return key
}

func (w *world) cancel(key string, body map[string]any, header ...string) reply {
	w.t.Helper()
	return w.do("POST", "/v1/payments/"+key+"/cancel", encode(body), append([]string{"Authorization", widgetAuth}, header...)...)
}

func (w *world) get(key string) reply {
	w.t.Helper()
	return w.do("GET", "/v1/payments/"+key, "", "Authorization", widgetAuth)
}

// wantSums compares the ledger.
func (w *world) wantSums(charged, refunded int) {
	w.t.Helper()
	if l := w.Ledger(); l.Charged != charged || l.Refunded != refunded {
		w.t.Errorf("charged %d, refunded %d; want %d, %d", l.Charged, l.Refunded, charged, refunded)
	}
}

func wantStatus(t *testing.T, r reply, status int, code string) {
	t.Helper()
	if r.status != status || r.text("code") != code {
		t.Errorf("answer %d %q, want %d %q (%s)", r.status, r.text("code"), status, code, r.raw)
	}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// handlerWorld calls a sandbox without a socket, for tests with very many calls.
type handlerWorld struct {
	http.Handler
	clock *clock
}

func (w handlerWorld) post(path string, body any) {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader([]byte(encode(body))))
	r.Header.Set("Authorization", widgetAuth)
	w.ServeHTTP(httptest.NewRecorder(), r)
}

func decodeList[T any](t *testing.T, r reply) []T {
	t.Helper()
	var list []T
	if err := json.Unmarshal(r.raw, &list); err != nil || r.status != http.StatusOK {
		t.Fatalf("%d %s: %v", r.status, r.raw, err)
	}
	return list
}

func decodeBody(r *http.Request, v any) error {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// next receives from c with a time-out.
func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
