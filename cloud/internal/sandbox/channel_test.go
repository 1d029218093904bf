package sandbox_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

func partnerSignature(secret, timestamp, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "." + body))
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// event is a request that the channel endpoint received.
type event struct {
	header http.Header
	body   string
}

// gateway simulates the service's channel endpoint. It sends the given answers in turn.
func gateway(t *testing.T, answers ...reply) (string, <-chan event) {
	t.Helper()
	got := make(chan event, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("event: %v", err)
		}
		got <- event{r.Header, string(body)}
		answer := reply{status: 200, raw: []byte(`{"status":"ACCEPTED"}`)}
		if len(answers) > 0 { // sequential deliveries
			answer, answers = answers[0], answers[1:]
		}
		w.WriteHeader(answer.status)
		w.Write(answer.raw)
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

const bookingBody = `{"branch":"gangnam","room":2,"startDateTime":"202611221500","endDateTime":"202611221600","name":"홍길동","mobileNum":"01012345678"}`

func TestBookingEvents(t *testing.T) {
	t.Parallel()
	url, events := gateway(t)
	w := open(t, sandbox.Options{PartnerURL: url})
	r := w.must("POST", "/sandbox/channel/bookings", bookingBody)
	id := r.text("id")
	if id == "" || r.text("status") != "ACCEPTED" {
		t.Fatalf("booking: %s", r.raw)
	}
	w.must("PUT", "/sandbox/channel/bookings/"+id, `{"startDateTime":"202611221700","endDateTime":"202611221800"}`)
	w.must("DELETE", "/sandbox/channel/bookings/"+id, "")
	if r := w.do("DELETE", "/sandbox/channel/bookings/"+id, ""); r.status != 404 {
		t.Errorf("cancelled twice: %d %s", r.status, r.raw)
	}
	const rest = `,"listingId":"gangnam-2","price":0,"seq":`
	customer := `{"customer":{"name":"홍길동","phone":"01012345678"},"end":`
	keys := map[string]bool{}
	for _, want := range []string{
		customer + `"2026-11-22T16:00:00+09:00","externalId":"` + id + `"` + rest + `1,"start":"2026-11-22T15:00:00+09:00","type":"booking.created"}`,
		customer + `"2026-11-22T18:00:00+09:00","externalId":"` + id + `"` + rest + `2,"start":"2026-11-22T17:00:00+09:00","type":"booking.updated"}`,
		customer + `"2026-11-22T18:00:00+09:00","externalId":"` + id + `"` + rest + `3,"start":"2026-11-22T17:00:00+09:00","type":"booking.cancelled"}`,
	} {
		e := next(t, events)
		if e.body != want {
			t.Errorf("event %s\n want %s", e.body, want)
		}
		timestamp := e.header.Get("X-Partner-Timestamp")
		if timestamp != strconv.FormatInt(start.Unix(), 10) || e.header.Get("X-Partner-Id") != sandbox.DemoPartnerID ||
			e.header.Get("X-Partner-Signature") != partnerSignature(sandbox.DemoPartnerSecret, timestamp, e.body) {
			t.Errorf("headers: %v", e.header)
		}
		keys[e.header.Get("Idempotency-Key")] = true
	}
	if len(keys) != 3 {
		t.Errorf("idempotency keys: %v", keys)
	}
}

func TestBookingConflict(t *testing.T) {
	t.Parallel()
	url, events := gateway(t, reply{status: 503}, reply{status: 409, raw: []byte(`{"status":"CONFLICT"}`)})
	w := open(t, sandbox.Options{PartnerURL: url, CallbackRetries: []time.Duration{time.Millisecond}})
	if r := w.must("POST", "/sandbox/channel/bookings", bookingBody); r.text("id") == "" {
		t.Fatalf("booking: %s", r.raw)
	}
	first, second := next(t, events), next(t, events)
	if first.header.Get("Idempotency-Key") != second.header.Get("Idempotency-Key") {
		t.Error("the repetition has another idempotency key")
	}
	for range 5000 {
		if w.Bookings()[0].Status == "CONFLICT" {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("booking: %+v", w.Bookings()[0])
}

func TestBookingIsChecked(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	for name, body := range map[string]string{
		"empty":       ``,
		"no branch":   `{"room":2,"startDateTime":"202611221500","endDateTime":"202611221600"}`,
		"room":        `{"branch":"gangnam","room":"two","startDateTime":"202611221500","endDateTime":"202611221600"}`,
		"end first":   `{"branch":"gangnam","room":2,"startDateTime":"202611221600","endDateTime":"202611221500"}`,
		"not a time":  `{"branch":"gangnam","room":2,"startDateTime":"tomorrow","endDateTime":"202611221500"}`,
		"not an hour": `{"branch":"gangnam","room":2,"startDateTime":"202611222500","endDateTime":"202611222600"}`,
	} {
		if r := w.do("POST", "/sandbox/channel/bookings", body); r.status != 400 || r.text("message") == "" {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	if r := w.must("POST", "/sandbox/channel/bookings", `{"branch":"gangnam","room":"2","startDateTime":"2026-11-22T15:00:00+09:00","endDateTime":"2026-11-22T16:00:00+09:00"}`); r.text("id") == "" {
		t.Errorf("room as text, times with offset: %s", r.raw)
	}
}

func (w *world) block(body string, secret string) reply {
	w.t.Helper()
	timestamp := strconv.FormatInt(w.clock.Now().Unix(), 10)
	return w.do("POST", "/partner/v1/blocks", body, "X-Partner-Id", sandbox.DemoPartnerID, "X-Partner-Timestamp", timestamp,
		"X-Partner-Signature", partnerSignature(secret, timestamp, body))
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	const created = `{"type":"block.created","blockId":"b1","listingId":"gangnam-2","start":"2026-11-22T06:00:00Z","end":"2026-11-22T07:00:00Z"}`
	const cancelled = `{"type":"block.cancelled","blockId":"b1"}`
	blocks := func() string { return string(w.must("GET", "/sandbox/channel/blocks", "").raw) }
	if got := blocks(); got != `{"blocks":[]}` {
		t.Errorf("at first: %s", got)
	}
	for range 2 { // delivered twice, stored once
		if r := w.block(created, sandbox.DemoPartnerSecret); r.status != 200 || r.text("blockId") != "b1" {
			t.Fatalf("%d %s", r.status, r.raw)
		}
	}
	const want = `{"blocks":[{"id":"b1","branch":"gangnam","room":2,"start":"2026-11-22T15:00:00+09:00","end":"2026-11-22T16:00:00+09:00"}]}`
	if got := blocks(); got != want {
		t.Errorf("blocks %s, want %s", got, want)
	}
	if r := w.block(cancelled, "other secret"); r.status != 401 || blocks() != want {
		t.Errorf("wrong signature: %d %s", r.status, r.raw)
	}
	w.fault(map[string]any{"target": "channel", "kind": "error", "status": 503})
	if r := w.block(cancelled, sandbox.DemoPartnerSecret); r.status != 503 || blocks() != want {
		t.Errorf("with a fault: %d %s", r.status, r.raw)
	}
	for range 2 {
		if r := w.block(cancelled, sandbox.DemoPartnerSecret); r.status != 200 || blocks() != `{"blocks":[]}` {
			t.Errorf("cancelled: %d %s", r.status, r.raw)
		}
	}
}

func TestBlockIsChecked(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	for body, status := range map[string]int{
		`{`:                                    400,
		`{"type":"block.created"}`:             400,
		`{"type":"block.moved","blockId":"b"}`: 422,
		`{"type":"block.created","blockId":"b","listingId":"gangnam"}`:                                                               422,
		`{"type":"block.created","blockId":"b","listingId":"gangnam-2","start":"2026-11-22T06:00:00Z","end":"2026-11-22T06:00:00Z"}`: 422,
	} {
		if r := w.block(body, sandbox.DemoPartnerSecret); r.status != status {
			t.Errorf("%s: %d %s", body, r.status, r.raw)
		}
	}
	const body = `{"type":"block.cancelled","blockId":"b"}`
	for name, at := range map[string]time.Time{"old": start.Add(-301 * time.Second), "future": start.Add(301 * time.Second)} {
		timestamp := strconv.FormatInt(at.Unix(), 10)
		if r := w.do("POST", "/partner/v1/blocks", body, "X-Partner-Id", sandbox.DemoPartnerID, "X-Partner-Timestamp", timestamp,
			"X-Partner-Signature", partnerSignature(sandbox.DemoPartnerSecret, timestamp, body)); r.status != 401 {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
}
