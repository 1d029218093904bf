package panel_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/firmware-sim/internal/branch"
	"github.com/yeolda/yeolda/firmware-sim/internal/cloudtest"
	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/firmware-sim/internal/panel"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout ends the wait for an event that does not come.
const testTimeout = 30 * time.Second

// fixture is the demo branches behind a panel; they run only where a test needs an agent.
type fixture struct {
	t      *testing.T
	cloud  *cloudtest.Cloud
	server *httptest.Server
	feed   *panel.Feed
	all    []*branch.Branch
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, cloud: cloudtest.New(t), feed: panel.NewFeed()}
	sites, err := fleetconfig.Parse(fleetconfig.Demo)
	if err != nil {
		t.Fatal(err)
	}
	room := &sites[0].Plan.Doors[2]
	room.Agent, room.PIN = false, "481901" // the keypad of room_1 is standalone
	for _, s := range sites {
		b, err := branch.New(s.Plan, branch.Config{
			Branch: s.Branch, Brokers: []*url.URL{f.cloud.URL}, Password: s.Password, GrantKeys: []ed25519.PublicKey{f.cloud.GrantKey},
			Logger: slog.New(slog.DiscardHandler), Changed: func(c branch.Change) { f.feed.Publish(s.Branch, c) },
		})
		if err != nil {
			t.Fatal(err)
		}
		f.all = append(f.all, b)
	}
	f.server = httptest.NewServer(panel.New(f.all, f.feed).Handler())
	t.Cleanup(func() {
		f.feed.Close()
		f.server.Close()
	})
	return f
}

// run starts gangnam.
func (f *fixture) run() {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.all[0].Run(ctx) }()
	f.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
	f.cloud.Status("gangnam", protocol.Online, time.Time{}, testTimeout)
}

// do sends a request and returns status and body.
func (f *fixture) do(method, path, body string) (int, string) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.server.URL+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	return f.send(r)
}

func (f *fixture) send(r *http.Request) (int, string) {
	f.t.Helper()
	answer, err := f.server.Client().Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(text))
}

// get returns the decoded response of a GET.
func get[T any](f *fixture, path string) T {
	f.t.Helper()
	status, body := f.do("GET", path, "")
	var v T
	if err := json.Unmarshal([]byte(body), &v); status != 200 || err != nil {
		f.t.Fatalf("GET %s: %d %s (%v)", path, status, body, err)
	}
	return v
}

// TestBranchHasTheContractsFields checks the fields of the documented answer.
func TestBranchHasTheContractsFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	got := get[map[string]any](f, "/sim/branches/gangnam")
	for list, fields := range map[string]string{
		"doors":           "device kind locked open actuations",
		"airConditioners": "name power mode temperature fan direction frames",
		"sensors":         "location thermometer hygrometer",
	} {
		rows, _ := got[list].([]any)
		if len(rows) == 0 {
			t.Errorf("%s is empty", list)
			continue
		}
		row := rows[0].(map[string]any)
		for _, field := range strings.Fields(fields) {
			if _, ok := row[field]; !ok {
				t.Errorf("%s lacks %s", list, field)
			}
		}
	}
	if got["branch"] != "gangnam" || got["online"] != false {
		t.Errorf("branch %v, online %v", got["branch"], got["online"])
	}
	if n := len(get[map[string][]any](f, "/sim/branches")["branches"]); n != 2 {
		t.Errorf("%d branches, want 2", n)
	}
	if _, body := f.do("GET", "/sim/branches/hongdae/actuations", ""); body != `{"actuations":[]}` {
		t.Errorf("no actuations: %s", body)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const faults = "/sim/branches/gangnam/faults"
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/sim/branches/busan", "", 404},
		{"GET", "/sim/branches/busan/actuations", "", 404},
		{"GET", "/sim/nothing", "", 404},
		{"POST", "/sim/branches/gangnam", "", 405},
		{"POST", "/sim/branches", `{"command":"curl","rooms":0}`, 400},
		{"POST", "/sim/branches", `{"command":"curl","rooms":1}`, 404}, // this panel enrols none
		{"PUT", "/sim/branches/busan/faults", `{"kind":"stuck"}`, 404},
		{"PUT", faults, ``, 400},
		{"PUT", faults, `{`, 400},
		{"PUT", faults, `[]`, 400},
		{"PUT", faults, `{"kind":"stuck"} {}`, 400},
		{"PUT", faults, `{"kind":"stuck","devize":"room_1"}`, 400},
		{"PUT", faults, `{"kind":"broken"}`, 400},
		{"PUT", faults, `{"kind":"stuck","device":"room_9"}`, 400},
		{"PUT", faults, `{"kind":"slow"}`, 400},
		{"PUT", faults, `{"kind":"` + strings.Repeat("x", 5000) + `"}`, 413},
		{"POST", "/sim/branches/gangnam/doors/room_9/contact", `{"open":true}`, 404},
		{"POST", "/sim/branches/gangnam/doors/room_1/contact", `{}`, 400},
		{"POST", "/sim/branches/gangnam/doors/room_9/exit", ``, 404},
		{"POST", "/sim/branches/gangnam/doors/room_1/keypad", `{"pin":1}`, 400},
		{"POST", "/sim/branches/gangnam/sensors/attic", `{"thermometer":20}`, 404},
		{"POST", "/sim/branches/gangnam/sensors/" + url.PathEscape("로비"), `{"thermometer":200}`, 400},
	} {
		status, body := f.do(tt.method, tt.path, tt.body)
		var e struct{ Error string }
		if err := json.Unmarshal([]byte(body), &e); status != tt.status || err != nil || e.Error == "" {
			t.Errorf("%s %s %.40s: %d %s, want %d and an error", tt.method, tt.path, tt.body, status, body, tt.status)
		}
	}
	if _, body := f.do("GET", faults, ""); body != `{"faults":[]}` {
		t.Errorf("a rejected fault is on: %s", body)
	}
}

func TestRecordings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const gangnam = "/sim/branches/gangnam"
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/recording", "", 404, "no recording"},
		{"DELETE", "/recording", "", 404, "no recording"},
		{"PUT", "/recording", "", 200, `"recording":"2`},
		{"POST", "/doors/room_2/contact", `{"open":true}`, 200, ""},
		{"GET", "/recording", "", 200, `"door":{"device":"room_2","open":true}`},
		{"GET", "/replay", "", 200, `"replay":null`},
		{"GET", "/scenarios", "", 200, `"forced":{"title"`},
		{"PUT", "/replay", `{}`, 400, "either tape or scenario"},
		{"PUT", "/replay", `{"scenario":"forced","tape":{"lengthMs":1,"steps":[]}}`, 400, "either tape or scenario"},
		{"PUT", "/replay", `{"scenario":"fire"}`, 400, "no scenario"},
		{"PUT", "/replay", `{"scenario":"forced","speed":0}`, 400, "speed"},
		{"PUT", "/replay", `{"tape":{"lengthMs":1,"steps":[{"atMs":0,"exit":{"device":"room_9"}}]}}`, 400, "does not have"},
		{"PUT", "/replay", `{"scenario":"forced","speed":1}`, 200, `"steps":2`},
		{"GET", "/replay", "", 200, `"lengthMs":20000`},
		{"GET", "", "", 200, `"replay":{"title"`},
		{"DELETE", "/replay", "", 200, `"replay":null`},
	} {
		if status, body := f.do(tt.method, gangnam+tt.path, tt.body); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s %s: %d %.300s, want %d with %s", tt.method, tt.path, tt.body, status, body, tt.status, tt.want)
		}
	}
	status, recording := f.do("DELETE", gangnam+"/recording", "")
	if status != 200 {
		t.Fatalf("%d %s", status, recording)
	}
	f.do("POST", gangnam+"/doors/room_2/contact", `{"open":false}`)
	if status, body := f.do("PUT", gangnam+"/replay", `{"tape":`+recording+`,"speed":100}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	deadline := time.Now().Add(testTimeout)
	for !get[hardware.State](f, gangnam).Doors[3].Open {
		if time.Now().After(deadline) {
			t.Fatal("the replay did not open the door")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestForeignPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, f.server.URL+"/sim/branches/gangnam/faults", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "https://example.org")
	if status, body := f.send(r); status != http.StatusForbidden {
		t.Errorf("DELETE from another origin:  %d %s", status, body)
	}
	_, answer, err := websocket.DefaultDialer.DialContext(t.Context(), f.socket(""), http.Header{"Origin": {"https://example.org"}})
	if err == nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("WebSocket from another origin:  %v", err)
	}
}

func TestFaultsAreListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const path = "/sim/branches/gangnam/faults"
	for _, body := range []string{`{"kind":"stuck","device":"room_1"}`, `{"kind":"network-lag","delayMs":50}`, `{"kind":"network-lag","delayMs":80}`} {
		if status, answer := f.do("PUT", path, body); status != 200 {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if _, body := f.do("GET", path, ""); body != `{"faults":[{"device":"room_1","kind":"stuck"},{"kind":"network-lag","delayMs":80}]}` {
		t.Errorf("faults: %s", body)
	}
	if _, body := f.do("DELETE", path+"?kind=stuck&device=room_1", ""); body != `{"faults":[{"kind":"network-lag","delayMs":80}]}` {
		t.Errorf("after one is cleared: %s", body)
	}
	if status, body := f.do("DELETE", path, ""); status != 200 || body != `{"faults":[]}` {
		t.Errorf("after all are cleared: %d %s", status, body)
	}
}

func TestHandsInTheBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const door = "/sim/branches/gangnam/doors/room_1"
	lobby := "/sim/branches/gangnam/sensors/" + url.PathEscape("로비")
	for _, step := range []struct{ path, body, want string }{
		{door + "/contact", `{"open":true}`, `"open":true`},
		{door + "/exit", ``, `"exit":true`},
		{door + "/keypad", `{"pin":"000000"}`, `{"opened":false}`},
		{door + "/keypad", `{"pin":"481901"}`, `{"opened":true}`},
		{"/sim/branches/gangnam/keypads/room_1", `{"digits":"481901#"}`, `{"accepted":true,"reason":"opened"}`},
		{"/sim/branches/gangnam/keypads/room_1", `{"digits":"481901*"}`, `{"accepted":true,"reason":"opened"}`}, // as the key page says
		{"/sim/branches/gangnam/keypads/room_1", `{"digits":"12#"}`, `{"accepted":false,"reason":"wrong"}`},
		{"/sim/branches/gangnam/keypads/room_1", `{"digits":"12"}`, `{"accepted":false,"reason":"incomplete"}`},
		{"/sim/branches/gangnam/keypads/room_2", `{"digits":"481902#"}`, `{"accepted":false,"reason":"`},
		{lobby, `{"thermometer":31.5,"hygrometer":70}`, `"thermometer":31.5,"hygrometer":70,"kind":"sht4x","held":true`},
		{lobby, `{"held":false}`, `"held":false`},
	} {
		if status, body := f.do("POST", step.path, step.body); status != 200 || !strings.Contains(body, step.want) {
			t.Errorf("%s %s: %d %s, want %s", step.path, step.body, status, body, step.want)
		}
	}
	d := get[hardware.State](f, "/sim/branches/gangnam").Doors[2]
	if !d.Open || !d.Released || !d.Locked {
		t.Errorf("the door: %+v", d)
	}
}

func (f *fixture) socket(query string) string {
	return "ws" + strings.TrimPrefix(f.server.URL, "http") + "/sim/ws" + query
}

// patiently limits the reads that follow.
func patiently(t *testing.T, conn *websocket.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
}

type event struct {
	Seq       uint64
	Type      string
	Branch    string
	Branches  []hardware.State
	Door      *hardware.Door
	Actuation *hardware.Actuation
	Message   *struct{ Kind, RequestID string }
}

// TestStream follows an unlock from the snapshot to the end of the pulse.
func TestStream(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.run()
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), f.socket(""), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	next := func() event {
		t.Helper()
		var e event
		patiently(t, conn)
		if err := conn.ReadJSON(&e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := next()
	if first.Type != "snapshot" || len(first.Branches) != 2 || len(first.Branches[0].Doors) != 8 {
		t.Fatalf("first message: %+v", first)
	}
	id := f.cloud.Unlock("gangnam", "room_1")
	var kinds []string
	for last := first.Seq; ; last++ {
		e := next()
		if e.Seq != last+1 {
			t.Fatalf("change %d follows %d", e.Seq, last)
		}
		if e.Message != nil && e.Message.RequestID == id {
			kinds = append(kinds, e.Message.Kind)
		}
		if a := e.Actuation; a != nil && !a.Energized {
			if a.RequestID != id || a.Device != "room_1" || a.EnergizedMs < 600 {
				t.Errorf("actuation: %+v", a)
			}
			break
		}
	}
	if got := strings.Join(kinds, " "); got != "door/ask door/claim door/grant door/result" {
		t.Errorf("the exchange: %s", got)
	}
}

func TestStreamOfOneBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), f.socket("?branch=hongdae"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	patiently(t, conn)
	var e event
	if err := conn.ReadJSON(&e); err != nil || len(e.Branches) != 1 {
		t.Fatalf("snapshot: %+v (%v)", e, err)
	}
	f.do("POST", "/sim/branches/gangnam/doors/room_1/contact", `{"open":true}`)
	f.do("POST", "/sim/branches/hongdae/doors/room_1/contact", `{"open":true}`)
	if err := conn.ReadJSON(&e); err != nil || e.Branch != "hongdae" || e.Door == nil || !e.Door.Open {
		t.Errorf("change: %+v (%v)", e, err)
	}
	f.feed.Close()
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("at the end: %v", err)
	}
	if status, _ := f.do("GET", "/sim/ws?branch=busan", ""); status != 404 {
		t.Errorf("a stream of a branch that is not there: %d", status)
	}
}

// TestSlowReaderIsCutOff checks that a reader that stops reading is disconnected and does not affect others.
func TestSlowReaderIsCutOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), f.socket(""), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	patiently(t, conn)
	if _, _, err := conn.ReadMessage(); err != nil { // the reader is subscribed
		t.Fatal(err)
	}
	change := branch.Change{Message: &branch.Message{Payload: []byte(`{"outcome":"` + strings.Repeat("x", 1000) + `"}`)}}
	for range 30_000 { // more than the socket buffers hold
		f.feed.Publish("gangnam", change)
	}
	for err == nil {
		_, _, err = conn.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the slow reader ended with %v", err)
	}
}

// TestPageStandsAlone checks that the page loads only files of the panel and nothing that its policy forbids.
func TestPageStandsAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	status, html := f.do("GET", "/", "")
	if status != 200 {
		t.Fatalf("GET /: %d", status)
	}
	if strings.Contains(html, "style=") || strings.Contains(html, "<style") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(html) {
		t.Error("the page contains inline code, which its policy forbids")
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(html, -1) {
		if status, _ := f.do("GET", "/"+m[1], ""); status != 200 {
			t.Errorf("%s: %d", m[1], status)
		}
	}
	_, script := f.do("GET", "/panel.js", "")
	for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(script, -1) {
		if status, _ := f.do("GET", "/"+m[1], ""); status != 200 {
			t.Errorf("%s: %d", m[1], status)
		}
	}
}
