package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/gallery"
)

// Options configures the pages.
type Options struct {
	PublicURL   string // the address at which customers reach the service, without a trailing slash
	StageOrigin string // may show the pages in a frame; empty: none may
	Company     func(context.Context) company.Snapshot
	Widget      Widget
	Keys        Keys
	File        func(ctx context.Context, name string) ([]byte, error)                                    // of the pages of another version; nil: none
	Photo       func(ctx context.Context, name, accept string) (data []byte, mediaType string, err error) // in a format of an Accept header; nil: none

	// Data returns the data of a public GET of the interface, such as /v2/site, for the client and the language of a request. It
	// returns ErrNoData if the service has nothing there.
	Data func(r *http.Request, language, address string) (json.RawMessage, error)

	Log *slog.Logger
	Now func() time.Time
}

// Widget describes the payment provider's script on the payment page.
type Widget struct {
	ScriptURL string   // such as https://js.tosspayments.com/v2/standard
	Origins   []string // origins that the script loads and contacts, as Content-Security-Policy sources
}

// TossWidget returns the provider's widget.
func TossWidget() Widget {
	return Widget{
		ScriptURL: "https://js.tosspayments.com/v2/standard",
		Origins:   []string{"https://*.tosspayments.com", "https://*.toss.im"},
	}
}

// SandboxWidget returns the substitute widget that yeolda-sandbox serves at origin, such as http://127.0.0.1:8090.
func SandboxWidget(origin string) Widget {
	return Widget{ScriptURL: origin + "/v2/standard", Origins: []string{origin}}
}

// Keys is the part of the service that the key page uses. Every function receives the key from the page's address.
type Keys struct {
	// Find returns the reservation of a doorlockKey, or ErrUnknownKey.
	Find func(ctx context.Context, key string) (Key, error)
	// Unlock requests a door ("front" or "room") and returns the id of the request.
	Unlock func(ctx context.Context, branch, door, key string) (requestID string, err error)
	// Why explains in a language why a key that Find does not know opens nothing; empty if nothing is known about it. Optional.
	Why func(ctx context.Context, key, language string) string
	// Await waits for the result of a request. It fails if the request belongs to another key, is unknown, or has no
	// result in time.
	Await func(r *http.Request, requestID, key string) (Result, error)
}

// Key is a doorlockKey and the reservation behind it.
type Key struct {
	Branch         string // code
	NameKo, NameEn string
	Address, Phone string
	Room           int
	Zone           *time.Location
	Start, End     time.Time     // End is the real end
	From, To       time.Time     // the window in which doors open
	Pulse          time.Duration // how long a lock stays open
	Online         bool          // the branch's agent is connected
	Owner          bool          // the owner's key, not a companion's

	ExtendedMinutes, RefundedWon int // what the guest got because a door did not open

	StayPIN *StayPIN // nil: not disclosed
}

// StayPIN is the PIN that opens the doors of a stay at the keypads of the branch's agent.
type StayPIN struct {
	Digits string
	Ready  bool // the agent has it
}

// Result is the result of an unlock request.
type Result struct {
	Opened bool
	PIN    string // for the keypad, if the door did not open and a PIN may be shown
	Code   bool   // the PIN is a one-time code
}

// ErrUnknownKey is returned if a key never existed or no longer opens a door.
var ErrUnknownKey = errors.New("web: unknown key")

// site serves all pages.
type site struct {
	Options
	*made
	policy policy
	others *lru.Cache[string, asset] // of other versions, by name: compressing one takes milliseconds, and any client can ask for it
}

// maxOthers is the number of assets of other versions that are kept in memory: those of four, less than 3 MB.
const maxOthers = 28

// made holds everything derived from the embedded sources.
type made struct {
	pages   *bundle
	fixed   map[string]asset // by path
	texts   locales
	shell   *template.Template
	screens map[string]*template.Template // by name
	console *template.Template
	keyPage *keyPage
}

// makeOnce bundles the sources once per process.
var makeOnce = sync.OnceValues(func() (*made, error) {
	var m made
	var err error
	m.pages, err = bundleEach(sources(),
		[]string{"customer.ts", "styles/customer.css"}, []string{"console.ts", "styles/console.css"}, []string{keyParts})
	if err != nil {
		return nil, fmt.Errorf("bundle pages: %w", err)
	}
	if m.fixed, err = fixedFiles(); err != nil {
		return nil, err
	}
	if m.texts, err = readLocales(sources()); err != nil {
		return nil, err
	}
	if m.shell, err = parseShell(); err != nil {
		return nil, err
	}
	if m.screens, err = parseScreens(); err != nil {
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
	others, err := lru.New[string, asset](maxOthers)
	if err != nil {
		return nil, err
	}
	s := &site{Options: o, made: made, policy: newPolicy(o.PublicURL, o.Widget, o.StageOrigin), others: others}
	return s.routes(), nil
}

func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", s.serveAsset)
	mux.HandleFunc("GET /k/{key}", s.showKey)
	mux.HandleFunc("POST /k/{key}", s.pressDoor)
	mux.HandleFunc("GET /k/{key}/reservation.ics", s.serveCalendar)
	mux.HandleFunc("GET "+company.LogoPath, s.serveLogo)
	mux.HandleFunc("GET /brand.css", s.serveBrandStyle)
	mux.HandleFunc("GET "+gallery.Prefix+"{name}", s.servePhoto)
	mux.HandleFunc("GET /manifest.webmanifest", s.serveManifest)
	for name := range s.fixed {
		mux.HandleFunc("GET "+name, s.serveFixed)
	}
	mux.HandleFunc("GET /{$}", s.serveScreen("home", s.home))
	mux.HandleFunc("GET /b/{branch}", s.serveScreen("date", s.dates))
	mux.HandleFunc("GET /b/{branch}/{date}", s.serveScreen("rooms", s.rooms))
	for _, screen := range screens {
		mux.HandleFunc("GET "+screen, s.serveShell)
	}
	mux.HandleFunc("GET /console", s.serveConsole)
	mux.HandleFunc("GET /console/{rest...}", s.serveConsole)
	mux.HandleFunc("GET /", s.serveMissing)
	return secured(mux, strings.HasPrefix(s.PublicURL, "https:"))
}
