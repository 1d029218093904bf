package channel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

const testSecret = "partner-secret-for-tests"

func gateway(t *testing.T, url string, clock time.Time, secrets ...string) *Gateway {
	t.Helper()
	g, err := NewGateway(GatewayConfig{URL: url, ID: "onda", Secrets: secrets, Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGatewayVector(t *testing.T) {
	t.Parallel()
	body := []byte(`{"type":"booking.created"}`)
	const want = "v1=9b1e02c98cbd07bae4d04fd5916c7e8fee32c150ba6e5f00512298aaeffd03a0"
	if got := signature(testSecret, "1700000000", body); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	g := gateway(t, "https://partner.example", time.Unix(1700000000, 0), testSecret)
	h := http.Header{}
	g.sign(h, body)
	if h.Get("X-Partner-Signature") != want || h.Get("X-Partner-Timestamp") != "1700000000" || h.Get("X-Partner-Id") != "onda" {
		t.Errorf("signed %v", h)
	}
}

func TestGatewayVerify(t *testing.T) {
	t.Parallel()
	signedAt := time.Unix(1700000000, 0)
	body := []byte(`{"type":"booking.created"}`)
	h := http.Header{}
	gateway(t, "https://partner.example", signedAt, testSecret).sign(h, body)
	for name, tc := range map[string]struct {
		clock   time.Time
		secrets []string
		body    string
		change  func(http.Header)
		ok      bool
	}{
		"good":                  {signedAt, []string{testSecret}, string(body), nil, true},
		"after a rotation":      {signedAt, []string{"a-new-secret-for-tests", testSecret}, string(body), nil, true},
		"after its end":         {signedAt, []string{"a-new-secret-for-tests"}, string(body), nil, false},
		"old":                   {signedAt.Add(gatewaySkew), []string{testSecret}, string(body), nil, true},
		"too old":               {signedAt.Add(gatewaySkew + time.Second), []string{testSecret}, string(body), nil, false},
		"of the future":         {signedAt.Add(-gatewaySkew - time.Second), []string{testSecret}, string(body), nil, false},
		"other body":            {signedAt, []string{testSecret}, string(body) + " ", nil, false},
		"other time":            {signedAt, []string{testSecret}, string(body), func(h http.Header) { h.Set(headerTimestamp, "1700000001") }, false},
		"no time":               {signedAt, []string{testSecret}, string(body), func(h http.Header) { h.Del(headerTimestamp) }, false},
		"other partner":         {signedAt, []string{testSecret}, string(body), func(h http.Header) { h.Set(headerPartner, "else") }, false},
		"no signature":          {signedAt, []string{testSecret}, string(body), func(h http.Header) { h.Del(headerSignature) }, false},
		"signature without v1=": {signedAt, []string{testSecret}, string(body), func(h http.Header) { h.Set(headerSignature, strings.TrimPrefix(h.Get(headerSignature), "v1=")) }, false},
	} {
		h := h.Clone()
		if tc.change != nil {
			tc.change(h)
		}
		err := gateway(t, "https://partner.example", tc.clock, tc.secrets...).Verify(h, []byte(tc.body))
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrUnsigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGatewayAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status         int
		block, unblock bool // succeeded
		blockForGood   bool // failed permanently
		unblockForGood bool
	}{
		{200, true, true, false, false}, {201, true, true, false, false}, {204, true, true, false, false},
		{400, false, false, true, true}, {409, false, false, true, true}, {422, false, false, true, true},
		{404, false, true, true, false},
		{301, false, false, false, false}, {401, false, false, false, false}, {403, false, false, false, false},
		{408, false, false, false, false}, {429, false, false, false, false}, {500, false, false, false, false}, {503, false, false, false, false},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.status) }))
		g := gateway(t, srv.URL, now, testSecret)
		err := g.Block(context.Background(), Block{ID: "b", ListingID: "l", Start: at(1), End: at(2)})
		if (err == nil) != tc.block || errors.Is(err, ErrRejected) != tc.blockForGood {
			t.Errorf("block, %d: %v", tc.status, err)
		}
		err = g.Unblock(context.Background(), "b")
		if (err == nil) != tc.unblock || errors.Is(err, ErrRejected) != tc.unblockForGood {
			t.Errorf("unblock, %d: %v", tc.status, err)
		}
		g.cfg.HTTPClient.CloseIdleConnections()
		srv.Close()
	}
	srv := httptest.NewServer(nil)
	g := gateway(t, srv.URL, now, testSecret)
	srv.Close()
	if err := g.Block(context.Background(), Block{ID: "b"}); err == nil || errors.Is(err, ErrRejected) {
		t.Errorf("connection refused: %v", err)
	}
}

func TestNewGatewayRefusesBadSettings(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]GatewayConfig{
		"plain http":   {URL: "http://partner.example", ID: "a", Secrets: []string{testSecret}},
		"no host":      {URL: "https://", ID: "a", Secrets: []string{testSecret}},
		"user":         {URL: "https://a:b@partner.example", ID: "a", Secrets: []string{testSecret}},
		"no id":        {URL: "https://partner.example", Secrets: []string{testSecret}},
		"no secret":    {URL: "https://partner.example", ID: "a"},
		"empty secret": {URL: "https://partner.example", ID: "a", Secrets: []string{testSecret, ""}},
		"short secret": {URL: "https://partner.example", ID: "a", Secrets: []string{"0123456789abcde"}},
	} {
		if _, err := NewGateway(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The sandbox acts as the partner.
func TestGatewayAndSandbox(t *testing.T) {
	t.Parallel()
	type event struct {
		booking Booking
		err     error
	}
	events := make(chan event, 8)
	var g *Gateway
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		err := g.Verify(r.Header, body)
		var b Booking
		if err == nil {
			b, err = ParseEvent(body)
		}
		events <- event{b, err}
		_, _ = io.WriteString(w, `{"status":"`+StatusAccepted+`"}`)
	}))
	defer service.Close()
	box, err := sandbox.New(sandbox.Options{PartnerURL: service.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	srv := httptest.NewServer(box)
	defer srv.Close()
	g, err = NewGateway(GatewayConfig{URL: srv.URL, ID: sandbox.DemoPartnerID, Secrets: []string{sandbox.DemoPartnerSecret}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.cfg.HTTPClient.CloseIdleConnections()
	ctx := context.Background()

	block := Block{ID: "17", ListingID: sandbox.ListingID("gangnam", 2), Start: at(1), End: at(2)}
	for range 2 { // a repetition is harmless
		if err := g.Block(ctx, block); err != nil {
			t.Fatal(err)
		}
	}
	if got := box.Blocks(); len(got) != 1 || got[0].Branch != "gangnam" || got[0].Room != 2 || !got[0].Start.Equal(at(1)) || !got[0].End.Equal(at(2)) {
		t.Errorf("blocks %+v", got)
	}
	if err := g.Block(ctx, Block{ID: "18", ListingID: "nowhere", Start: at(1), End: at(2)}); !errors.Is(err, ErrRejected) {
		t.Errorf("unknown listing: %v", err)
	}
	if err := box.SetFault(sandbox.Fault{Target: sandbox.TargetChannel, Kind: sandbox.FaultDropAfterCommit}); err != nil {
		t.Fatal(err)
	}
	// The first response is lost. net/http may retry by itself because the request is idempotent; in either case the
	// caller's retry succeeds.
	if err := g.Unblock(ctx, "17"); err != nil {
		if err = g.Unblock(ctx, "17"); err != nil {
			t.Error(err)
		}
	}
	if got := box.Blocks(); len(got) != 0 {
		t.Errorf("blocks %+v", got)
	}

	booked, _, err := box.Book(sandbox.Booking{Branch: "gangnam", Room: 2, Start: at(3), End: at(4), Name: "홍길동", Phone: "01012345678"})
	if err != nil {
		t.Fatal(err)
	}
	e := <-events
	want := Booking{ExternalID: booked.ID, ListingID: "gangnam-2", Start: e.booking.Start, End: e.booking.End, Seq: 1, Name: "홍길동", Phone: "01012345678"}
	if e.err != nil || e.booking != want || !e.booking.Start.Equal(at(3)) || !e.booking.End.Equal(at(4)) {
		t.Errorf("%+v", e)
	}
	if _, err := box.CancelBooking(booked.ID); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.err != nil || !e.booking.Cancelled || e.booking.ExternalID != booked.ID || e.booking.Seq != 2 {
		t.Errorf("%+v", e)
	}
}

func TestParseEvent(t *testing.T) {
	t.Parallel()
	for name, body := range inputs(t, "event/*.json") {
		b, err := ParseEvent(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name+".golden", b)
	}
	base := string(inputs(t, "event/created.json")["testdata/event/created"])
	for name, body := range map[string]string{
		"empty": ``, "null": `null`, "list": `[]`, "html": `<html>`,
		"no id":             strings.Replace(base, `"SC-88123"`, `""`, 1),
		"no listing":        strings.Replace(base, `"room-2"`, `""`, 1),
		"id too long":       strings.Replace(base, `SC-88123`, strings.Repeat("가", 201), 1),
		"backwards":         strings.Replace(base, `T16:00`, `T14:00`, 1),
		"no length":         strings.Replace(base, `T16:00`, `T15:00`, 1),
		"no time":           strings.Replace(base, `"start":"2026-11-22T15:00:00+09:00",`, ``, 1),
		"time without zone": strings.Replace(base, `T15:00:00+09:00`, `T15:00:00`, 1),
		"negative seq":      strings.Replace(base, `"seq":1`, `"seq":-1`, 1),
		"name too long":     strings.Replace(base, `홍길동`, strings.Repeat("가", 51), 1),
		"phone too long":    strings.Replace(base, `01012345678`, strings.Repeat("0", 21), 1),
		"too long":          strings.Repeat(" ", MaxEventBody) + base,
		"wrong type":        strings.Replace(base, `"SC-88123"`, `88123`, 1),
	} {
		if b, err := ParseEvent([]byte(body)); err == nil || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %+v, %v; want an error in the partner's terms", name, b, err)
		}
	}
	if _, err := ParseEvent([]byte(strings.Replace(base, "booking.created", "booking.teleported", 1))); !errors.Is(err, ErrUnknownEvent) {
		t.Errorf("unknown type: %v", err)
	}
}

func FuzzParseEvent(f *testing.F) {
	for _, body := range inputs(f, "event/*.json") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := ParseEvent(body)
		if err == nil && (b.ExternalID == "" || b.ListingID == "" || b.Seq < 0 || !b.Cancelled && !b.End.After(b.Start)) {
			t.Errorf("%+v", b)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute}
	for failures := range 29 {
		expect := time.Hour
		if failures < len(want) {
			expect = want[failures]
		}
		if pause, ok := RetryAfter(failures); !ok || pause != expect {
			t.Errorf("after %d: %v %v, want %v", failures, pause, ok, expect)
		}
	}
	if _, ok := RetryAfter(29); ok {
		t.Error("RetryAfter never gives up")
	}
}
