package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// shell runs commands against a service, with a token.
type shell struct {
	*testing.T
	url, token string
}

func (s shell) run(args ...string) (out, errOut string, code int) {
	s.Helper()
	var stdout, stderr bytes.Buffer
	code = run(s.Context(), append([]string{"--url", s.url, "--token", s.token}, args...), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// prints runs a command that must succeed and whose output must match a pattern.
func (s shell) prints(pattern string, args ...string) string {
	s.Helper()
	out, errOut, code := s.run(args...)
	if code != 0 || !regexp.MustCompile(pattern).MatchString(out) {
		s.Fatalf("yeoldactl %s: exit code %d\n%s%s, want %s", strings.Join(args, " "), code, out, errOut, pattern)
	}
	return out
}

// fails runs a command that must fail with one line that matches a pattern.
func (s shell) fails(want int, pattern string, args ...string) {
	s.Helper()
	out, errOut, code := s.run(args...)
	if code != want || !regexp.MustCompile(pattern).MatchString(errOut) || strings.Count(errOut, "\n") != 1 || strings.Contains(errOut, s.token) {
		s.Fatalf("yeoldactl %s: exit code %d\n%s%s, want %d %s", strings.Join(args, " "), code, out, errOut, want, pattern)
	}
}

func newToken(t *testing.T, hq *servicetest.Client, scopes, branches []string) (id, token string) {
	t.Helper()
	var created struct{ ID, Token string }
	hq.Post("/v2/admin/tokens", map[string]any{"name": "shell", "scopes": scopes, "branches": branches}).OK(t).Into(t, &created)
	return created.ID, created.Token
}

func TestCommands(t *testing.T) {
	t.Parallel()
	stack := servicetest.Start(t, func(set *config.Settings) {
		set.Webhooks.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	hq := stack.Admin(t, "hq", "hq-demo")
	id, all := newToken(t, hq, []string{"read", "doors"}, nil)
	s := shell{T: t, url: stack.Root, token: all}

	s.prints(`(?m)^gangnam +열다 강남점 `, "branches")
	s.prints(`"branch":"hongdae"`, "--json", "branches")
	start := stack.Clock.Now().Add(24 * time.Hour).In(time.FixedZone("", 9*60*60)).Format("20060102")
	hq.Post("/admin/reservation", map[string]any{"branch": "gangnam", "room": 1, "startDateTime": start + "1000", "endDateTime": start + "1100"}).OK(t)
	hq.Post("/admin/payment", map[string]any{"name": "이순신", "mobileNum": "010-9999-0001"}).OK(t)
	found := s.prints(`(?m)^[0-9]+ +gangnam +1 +`+start+`1000 +`+start+`1100 +DONE +0 +이순신$`, "reservations", "find", "이순신")
	reservation := regexp.MustCompile(`(?m)^[0-9]+`).FindString(found)
	if shown := s.prints(``, "reservations", "show", reservation); !json.Valid([]byte(shown)) || !strings.Contains(shown, `"roomNo": "1"`) {
		t.Errorf("reservation %s", shown)
	}
	s.fails(1, `404 ResourceNotFoundException`, "reservations", "show", "999999")

	t.Run("doors", func(t *testing.T) {
		s := shell{T: t, url: stack.Root, token: all}
		s.prints(`(?m)^room_1 +room +false$`, "doors", "list", "gangnam")
		s.fails(1, `^yeoldactl: room_2 did not open\n$`, "doors", "open", "gangnam", "2")
		s.fails(1, `^yeoldactl: room_1 did not open; code for its keypad: [0-9]+\n$`, "doors", "open", "hongdae", "1")
		keys, err := config.Settings{Secrets: config.Secrets{Mode: config.ModeDemo}}.Effective().GrantKeys()
		if err != nil {
			t.Fatal(err)
		}
		agent := agenttest.Connect(t, agenttest.Config{
			Branch: "gangnam", Dial: agenttest.TCP(stack.MQTT), Keys: []ed25519.PublicKey{keys[0].Public().(ed25519.PublicKey)},
		})
		s.prints(`^room_2 opened\n$`, "doors", "open", "gangnam", "2")
		s.prints(`"status":"SUCCESS"`, "--json", "doors", "open", "gangnam")
		if driven := agent.Driven(); len(driven) != 3 { // the room and two front doors
			t.Errorf("driven %+v", driven)
		}
	})
	t.Run("webhooks", func(t *testing.T) {
		s := shell{T: t, url: stack.Root, token: all}
		added := s.prints(`(?m)^[0-9]+ +whsec_`, "webhooks", "add", "http://127.0.0.1:1/", "--types", "reservation.*", "--branches", "gangnam")
		webhook := regexp.MustCompile(`(?m)^[0-9]+`).FindString(added)
		s.prints(`(?m)^`+webhook+` +http://127.0.0.1:1/ +true +reservation.\* +gangnam +`, "webhooks", "list")
		s.prints(``, "webhooks", "disable", webhook)
		s.prints(`(?m)^`+webhook+` +http://127.0.0.1:1/ +false `, "webhooks", "list")
		s.prints(``, "webhooks", "enable", webhook)
		s.prints(``, "webhooks", "replay", webhook)
		s.prints(`^EVENT +TYPE`, "webhooks", "deliveries", webhook)
		s.prints(``, "webhooks", "remove", webhook)
		s.fails(1, `404`, "webhooks", "remove", webhook)
		s.fails(1, `400`, "webhooks", "add", "http://10.0.0.1/")
	})
	t.Run("follow", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		reader, writer := io.Pipe()
		ended := make(chan int, 1)
		go func() {
			ended <- run(ctx, []string{"--url", stack.Root, "--token", all, "events", "follow"}, writer, io.Discard)
			_ = writer.Close()
		}()
		lines := bufio.NewScanner(reader)
		for subject := "reservation:" + reservation + " "; lines.Scan(); {
			if strings.Contains(lines.Text(), subject) && strings.Contains(lines.Text(), "reservation.done") {
				break
			}
		}
		stop()
		_, _ = io.Copy(io.Discard, reader)
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d after an interrupt", code)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		s := shell{T: t, url: stack.Root, token: all}
		s.fails(2, `unknown flag`, "branches", "--nonsense")
		_, reading := newToken(t, hq, []string{"read"}, []string{"hongdae"})
		limited := shell{T: t, url: stack.Root, token: reading}
		limited.fails(1, `403 AuthorizationError`, "doors", "open", "hongdae")
		limited.fails(1, `403 AuthorizationException`, "doors", "list", "gangnam")
		limited.fails(1, `403`, "webhooks", "list")
		hq.Delete("/v2/admin/tokens/"+id, nil).OK(t)
		s.fails(1, `401 AuthenticationError`, "branches")
		nowhere := shell{T: t, url: "http://127.0.0.1:1", token: all}
		nowhere.fails(1, `connection refused`, "branches")
	})
}

// TestRedirectChangesNothing uses the address of a proxy that redirects to the service. HTTP clients repeat a POST, PUT or DELETE as a GET, which
// would look like success.
func TestRedirectChangesNothing(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was sent to the other address", r.Method, r.URL)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"data": {"webhooks": []}}`))
	}))
	t.Cleanup(service.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, service.URL+r.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	t.Cleanup(proxy.Close)
	s := shell{T: t, url: proxy.URL, token: "secret"}
	s.fails(1, `301: the service has moved to `+regexp.QuoteMeta(service.URL), "webhooks", "add", "https://receiver.example/")
	s.fails(1, `301: the service has moved to `, "webhooks", "list")
}

// TestEmptyRoom checks that a variable without a value in a script does not open the front doors.
func TestEmptyRoom(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s was sent", r.Method, r.URL) }))
	t.Cleanup(server.Close)
	shell{T: t, url: server.URL, token: "secret"}.fails(exitUsage, `the room has no number`, "doors", "open", "gangnam", "")
}

// defect is a writer with a defect.
type defect struct{}

func (defect) Write([]byte) (int, error) { panic("a defect") }

// TestPanicIsAFailure checks that a command that ends with a panic does not look like one that succeeded.
func TestPanicIsAFailure(t *testing.T) {
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"version"}, defect{}, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "internal error: a defect") {
		t.Errorf("got exit code %d and %q, want %d and the defect", code, stderr.String(), exitFailed)
	}
}

// TestOtherServer checks that the answer of another server is an error in one line, and neither an empty list nor success.
func TestOtherServer(t *testing.T) {
	t.Parallel()
	for _, a := range []struct {
		status     int
		kind, body string
	}{
		{200, "text/html", "<html>hello</html>"},
		{200, "application/xhtml+xml", "<html/>"},
		{200, "application/json", `{"status":"ok"}`},
		{200, "application/json", `{"status":"error","message":"x"}`},
		{200, "application/json", "null"},
		{202, "application/json", `{"status":"success","data":null}`},
		{204, "", ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", a.kind)
			w.WriteHeader(a.status)
			_, _ = w.Write([]byte(a.body))
		}))
		t.Cleanup(server.Close)
		s := shell{T: t, url: server.URL, token: "secret"}
		for _, command := range [][]string{{"branches"}, {"reservations", "show", "1"}, {"webhooks", "add", "https://receiver.example/"}, {"webhooks", "remove", "1"}, {"doors", "list", "gangnam"}, {"doors", "open", "gangnam"}} {
			s.fails(exitFailed, "not a Yeolda service", command...)
		}
	}
}
