package e2e

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// A flaw is a network fault that affects the requests of one kind between a browser and the service.
type flaw string

const (
	refused flaw = "fails"       // the connection is closed before the service sees the request
	stalled flaw = "hangs"       // the request never reaches the service, and no response arrives
	client  flaw = "4xx"         // a proxy in between responds 418
	server  flaw = "5xx"         // a proxy in between responds 502
	lost    flaw = "answer lost" // the service handles the request, but its response never arrives
	cut     flaw = "body fails"  // the headers arrive, then the connection is closed
	frozen  flaw = "body hangs"  // the headers arrive, but the body does not
)

// flawedNetwork is a reverse proxy between a browser and the service that applies flaws to selected requests.
type flawedNetwork struct {
	*httptest.Server

	mu    sync.Mutex
	flaws map[string]flaw // by prefix of "METHOD /path"
	done  chan struct{}
}

func newFlawedNetwork(t *testing.T, target string) *flawedNetwork {
	t.Helper()
	address, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	n := &flawedNetwork{flaws: map[string]flaw{}, done: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(address) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(response *http.Response) error {
			switch n.of(response.Request) {
			case cut:
				response.Body = &brokenBody{end: func() {}}
			case frozen:
				wait := response.Request.Context().Done()
				response.Body = &brokenBody{end: func() {
					select {
					case <-wait:
					case <-n.done:
					}
				}}
			case lost:
				_, _ = io.Copy(io.Discard, response.Body)
				panic(http.ErrAbortHandler)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.of(r) {
		case refused:
			panic(http.ErrAbortHandler)
		case stalled:
			select {
			case <-r.Context().Done():
			case <-n.done:
			}
			panic(http.ErrAbortHandler)
		case client:
			w.WriteHeader(http.StatusTeapot)
		case server:
			w.WriteHeader(http.StatusBadGateway)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(n.Close)
	t.Cleanup(func() { close(n.done) })
	return n
}

// damage applies a flaw to the requests whose method and path begin with prefix, such as "POST /api/door".
func (n *flawedNetwork) damage(prefix string, f flaw) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flaws[prefix] = f
}

func (n *flawedNetwork) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.flaws)
}

func (n *flawedNetwork) of(r *http.Request) flaw {
	n.mu.Lock()
	defer n.mu.Unlock()
	for prefix, f := range n.flaws {
		if strings.HasPrefix(r.Method+" "+r.URL.Path, prefix) {
			return f
		}
	}
	return ""
}

// brokenBody is a response body of one empty line, so that the headers are sent, followed by an error.
type brokenBody struct {
	end  func()
	read bool
}

func (b *brokenBody) Read(p []byte) (int, error) {
	if !b.read {
		b.read = true
		return copy(p, "\n"), nil
	}
	b.end()
	return 0, io.ErrUnexpectedEOF
}

func (b *brokenBody) Close() error { return nil }

// TestWebKeyPageFaults applies each flaw to the press, its result, the refresh of the page and the navigation to it. The key
// page must end every wait within ten seconds with a correct message and a next step.
func TestWebKeyPageFaults(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)
	var keys []string // several: one key may ask for a door ten times, then once a second
	for room := 1; room <= 6; room++ {
		keys = append(keys, keyOfAdminReservation(t, s, "gangnam", room, fmt.Sprintf("0101111222%d", room)))
	}

	const (
		press  = "POST /api/door/v2/unlock"
		result = "GET /api/door/v2/unlock/subscribe"
		facts  = "GET /api/v2/keys/"

		unreachable = "서버에 연결하지 못했어요"
		unknown     = "현관문이 열렸는지 확인하지 못했어요"
		ours        = "저희 서버에 문제가 생겼어요"
		opened      = "현관문이 열렸어요"
		noServer    = "지금 서버에 연결되지 않고 있어요"
	)
	for i, c := range []struct {
		on    string // the step to which the flaws apply
		flaws map[string]flaw
		want  string
	}{
		{"press", map[string]flaw{press: refused}, unreachable},
		{"press", map[string]flaw{press: stalled}, unknown},
		{"press", map[string]flaw{press: client}, ours},
		{"press", map[string]flaw{press: server}, ours},
		{"press", map[string]flaw{press: lost}, unreachable},
		{"result", map[string]flaw{press: cut}, opened},
		{"result", map[string]flaw{press: frozen, result: refused}, unknown},
		{"result", map[string]flaw{press: frozen, result: stalled}, unknown},
		{"result", map[string]flaw{press: cut, result: stalled}, unknown},
		{"result", map[string]flaw{press: cut, result: client}, ours},
		{"result", map[string]flaw{press: cut, result: server}, unknown},
		{"result", map[string]flaw{press: cut, result: lost}, unknown},
		{"refresh", map[string]flaw{facts: refused}, noServer},
		{"refresh", map[string]flaw{facts: stalled}, noServer},
		{"refresh", map[string]flaw{facts: client}, noServer},
		{"refresh", map[string]flaw{facts: server}, noServer},
		{"refresh", map[string]flaw{facts: lost}, noServer},
	} {
		name := c.on
		for _, f := range c.flaws {
			name += " " + string(f)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network := newFlawedNetwork(t, s.Pages)
			p := first.another(t)
			p.base = network.URL
			p.expect("Failed to load resource")
			p.open("/k/" + keys[i%len(keys)])
			p.see("지금 열 수 있어요")
			p.wait("the first refresh is over", `performance.getEntriesByType("resource").some((e) => e.name.includes("/v2/keys/") && e.responseEnd > 0)`)
			for prefix, f := range c.flaws {
				network.damage(prefix, f)
			}
			if c.on == "refresh" {
				value[bool](p, `document.dispatchEvent(new Event("visibilitychange"))`) // refreshes the page
			} else {
				p.press("현관문 열기")
			}
			p.patience = 10 * time.Second
			p.see(c.want)
			p.patience = patience
			p.wait("the buttons work again", `[...document.querySelectorAll("button[name=door]")].every((b) => !b.disabled && !b.hasAttribute("aria-busy"))`)
			p.find("전화하기")
			network.heal()
			p.press("현관문 열기")
			p.see(opened)
		})
	}

	for i, f := range []flaw{refused, stalled, client, server, lost} {
		t.Run("navigation "+string(f), func(t *testing.T) {
			t.Parallel()
			network := newFlawedNetwork(t, s.Pages)
			p := first.another(t)
			p.base = network.URL
			p.expect("Failed to load resource", "The FetchEvent")
			p.open("/k/" + keys[i%len(keys)])
			p.wait("the worker has stored the page", `navigator.serviceWorker.controller && caches.match(location.pathname).then(r => window.stored = Boolean(r)) && window.stored`)
			network.damage("GET /k/", f)
			p.patience = 10 * time.Second
			p.do("reload", chromedp.Reload())
			p.see("지금 열 수 있어요")
			p.patience = patience
			p.press("현관문 열기")
			p.see(opened)
		})
	}
}

// TestWebKeyPageOfAMovedReservation checks that a page with the old room does not open the door of the new room.
func TestWebKeyPageOfAMovedReservation(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	key := newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01011112222")
	p := newPage(t, s.Pages)
	p.open("/k/" + key)
	p.see("2번 룸 열기", "지금 열 수 있어요")
	p.wait("the worker has stored the page", `navigator.serviceWorker.controller && caches.match(location.pathname).then(r => window.stored = Boolean(r)) && window.stored`)
	moveTo(t, s, "01011112222", "3")
	value[bool](p, `document.dispatchEvent(new Event("visibilitychange"))`) // refreshes the page
	p.see("예약 내용이 바뀌었어요", "3번 룸 열기")
	if driven := actuations(t, s, "gangnam"); len(driven) != 0 {
		t.Errorf("doors were driven: %v", driven)
	}
	p.press("3번 룸 열기")
	p.see("3번 룸 문이 열렸어요")
	p.do("reload", chromedp.Reload())
	p.see("3번 룸 열기")
}

// moveTo moves the reservation of a phone number to another room, as the headquarters.
func moveTo(t *testing.T, s *world.Stack, mobile, room string) {
	t.Helper()
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	var found struct {
		Reservations []struct {
			ID, Start, End string
		} `json:"reservations"`
	}
	hq.must("GET", "/v2/admin/reservations?query="+mobile, nil, &found)
	if len(found.Reservations) != 1 {
		t.Fatalf("%d reservations of %s, want 1", len(found.Reservations), mobile)
	}
	r := found.Reservations[0]
	hq.must("PUT", "/admin/reservation/"+r.ID, map[string]any{"room": room, "startDateTime": r.Start, "endDateTime": r.End}, nil)
}
