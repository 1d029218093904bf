package web

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options is what the pages need to know of the service behind them.
type Options struct {
	PublicURL string // where customers reach the service, without a slash at the end
	Company   Company
	Widget    Widget
	Keys      Keys
	Log       *slog.Logger
	Now       func() time.Time
}

// Company is who runs the shop, as the law wants it shown; empty fields are left out.
type Company struct {
	Name, Representative, Address, Phone, Email, BusinessNumber, MailOrderNumber string
}

// Widget is the payment provider's part of the payment page.
type Widget struct {
	ScriptURL string   // such as https://js.tosspayments.com/v2/standard
	Origins   []string // what that script frames and talks to, as the Content-Security-Policy writes sources
}

// TossWidget is the provider's own widget.
func TossWidget() Widget {
	return Widget{
		ScriptURL: "https://js.tosspayments.com/v2/standard",
		Origins:   []string{"https://*.tosspayments.com", "https://*.toss.im"},
	}
}

// SandboxWidget is the stand-in for it that yeolda-sandbox serves at origin, such as http://127.0.0.1:8090.
func SandboxWidget(origin string) Widget {
	return Widget{ScriptURL: origin + "/v2/standard", Origins: []string{origin}}
}

// Keys is what the key page needs of the service. All of its functions are called with the caller's own key.
type Keys struct {
	// Find returns what a doorlockKey opens, or ErrUnknownKey.
	Find func(ctx context.Context, key string) (Key, error)
	// Unlock asks for a door ("front", "room") and returns the id of the request.
	Unlock func(ctx context.Context, branch, door, key string) (requestID string, err error)
	// Await waits for the end of a request and returns it. It fails if the request is not of this key or is
	// forgotten, or if nothing came in time.
	Await func(r *http.Request, requestID, key string) (Result, error)
}

// Key is a doorlockKey and the reservation behind it.
type Key struct {
	Branch         string // code
	NameKo, NameEn string
	Address, Phone string
	Room           int
	Zone           *time.Location
	Start, End     time.Time // End is the real end
	From, To       time.Time // the window in which doors open
	Online         bool      // the branch's agent is connected
}

// Result is how a request ended.
type Result struct {
	Opened bool
	PIN    string // for the keypad, if the door did not open
}

// ErrUnknownKey says that a key opens nothing, or no longer does.
var ErrUnknownKey = errors.New("web: no such key")

// site is everything that is served.
type site struct {
	Options
	*made
	policy policy
}

// made is what comes from the sources alone.
type made struct {
	pages   *bundle
	fixed   map[string]asset // by path
	shell   *template.Template
	console *template.Template
	keyPage *keyPage
}

// makeOnce makes it once per process: the sources are embedded and do not change.
var makeOnce = sync.OnceValues(func() (*made, error) {
	var m made
	var err error
	if m.pages, err = bundlePages(sources(), "customer.ts", "styles/customer.css", "console.ts", "styles/console.css"); err != nil {
		return nil, fmt.Errorf("bundle pages: %w", err)
	}
	if m.fixed, err = fixedFiles(); err != nil {
		return nil, err
	}
	if m.shell, err = parseShell(); err != nil {
		return nil, err
	}
	if m.console, err = parseConsole(); err != nil {
		return nil, err
	}
	m.keyPage, err = newKeyPage()
	return &m, err
})

// New bundles the sources and returns the handler for everything that is not /api.
func New(o Options) (http.Handler, error) {
	made, err := makeOnce()
	if err != nil {
		return nil, err
	}
	s := &site{Options: o, made: made, policy: newPolicy(o.PublicURL, o.Widget)}
	return s.routes(), nil
}

func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", s.serveAsset)
	mux.HandleFunc("GET /k/{key}", s.showKey)
	mux.HandleFunc("POST /k/{key}", s.pressDoor)
	mux.HandleFunc("GET /k/{key}/reservation.ics", s.serveCalendar)
	for name := range s.fixed {
		mux.HandleFunc("GET "+name, s.serveFixed)
	}
	for _, screen := range screens {
		mux.HandleFunc("GET "+screen, s.serveShell)
	}
	mux.HandleFunc("GET /console", s.serveConsole)
	mux.HandleFunc("GET /console/{rest...}", s.serveConsole)
	mux.HandleFunc("GET /", s.serveMissing)
	return secured(mux, strings.HasPrefix(s.PublicURL, "https:"))
}
