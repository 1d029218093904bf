// Package sandbox simulates all external systems for development and tests: the payment provider, the message
// provider, a mail server and a partner booking channel. Each uses its real protocol, so the service under
// test runs its production clients against real sockets.
//
// It also simulates the failures that the service has to handle: missing responses, money booked without a
// response, replayed errors, bounced deposits and deposits reversed by a bank. Faults are set over HTTP
// (/sandbox/faults) or from Go ([Sandbox.SetFault]).
//
// The transitions of a payment (docs/specification.md, Payment provider 2):
//
//	READY ──authenticated──▶ IN_PROGRESS ──confirm──▶ DONE ──cancel in full──▶ CANCELED
//	  │ 30 min                 │ 10 min  │ refused     │ ▲ └──cancel in part──▶ PARTIAL_CANCELED
//	  ▼                        ▼         ▼             │ │
//	EXPIRED                 EXPIRED   ABORTED  reversal│ │deposit
//	                           │                       ▼ │
//	                           └──confirm──▶ WAITING_FOR_DEPOSIT ──cancel──▶ CANCELED
//	                             (account)             └──dueDate──▶ EXPIRED
//
// A key of the payment provider with a number from 2 to 99 at its end, such as test_sk_yeolda_demo_2, is that of another
// merchant. A merchant sees only its own payments; the ledger lists the requests for those of another one.
//
// A phone number that ends in 0000 has no KakaoTalk and receives an SMS.
//
// Besides the documented endpoints there are, under /sandbox: POST reversals {orderId} (the bank reverses a
// deposit), POST payments/{paymentKey}/authenticate {method, bank} and .../decline {code} (the buyer's actions in
// the widget), GET widget (the payment window of the browser), GET faults, GET channel/bookings, PUT
// channel/bookings/{id} {startDateTime, endDateTime}, the fault target "refund" and the parameter limit of
// lists. The browser SDK is at /v2/standard.
//
// Time-dependent transitions are applied lazily: a payment is brought up to date before it is read or changed,
// so a test can set the clock with [Options.Now] without waiting.
//
// All state is in memory; [Options.StateFile] preserves it across restarts, as a journal of changes.
package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// The demo credentials. The service uses the same ones by default and refuses to start with them in production.
const (
	DemoWidgetSecretKey = "test_gsk_yeolda_demo"
	DemoWidgetClientKey = "test_gck_yeolda_demo"
	DemoAPISecretKey    = "test_sk_yeolda_demo"
	DemoMessageKey      = "NCSYEOLDADEMO"
	DemoMessageSecret   = "yeolda-demo-message-secret"
	DemoPartnerID       = "sandbox"
	DemoPartnerSecret   = "yeolda-demo-partner-secret"
)

// DefaultCallbackRetries are the intervals between delivery attempts of a deposit callback or channel event: three
// short ones, so that a restarting service receives its deposit within seconds, then the provider's 1, 4, 16, ...
// 4096 minutes (docs/specification.md, Payment provider 6).
var DefaultCallbackRetries = []time.Duration{
	2 * time.Second, 10 * time.Second, 30 * time.Second,
	1 * time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute,
	256 * time.Minute, 1024 * time.Minute, 4096 * time.Minute,
}

// Options configure a [Sandbox]. The zero value is usable: demo credentials, the real clock and no callbacks.
type Options struct {
	WidgetSecretKey string // key set for payments made in the widget
	APISecretKey    string // key set for virtual accounts issued by the server
	MessageKey      string
	MessageSecret   string
	PartnerID       string
	PartnerSecret   string

	// WebhookURL receives the deposit callbacks, PartnerURL the booking events. Nothing is sent if empty.
	WebhookURL string
	PartnerURL string

	// CallbackRetries are the intervals between delivery attempts; nil means DefaultCallbackRetries.
	CallbackRetries []time.Duration
	// RefundDelay is how long the refund of a deposit stays PENDING; 0 means 3 seconds. (The real provider takes
	// about two days.)
	RefundDelay time.Duration

	StageOrigin string // may show the pages in a frame; empty: none may

	StateFile string           // file that preserves the state across restarts; empty keeps it in memory
	Now       func() time.Time // nil means time.Now
	Logger    *slog.Logger     // nil discards log messages
}

// Sandbox serves all simulated systems as one [http.Handler]. Tests in Go can use its methods instead of the HTTP API;
// both share the same state. All methods are safe for concurrent use.
type Sandbox struct {
	opts    Options
	keys    map[string]keySet
	now     func() time.Time
	log     *slog.Logger
	handler http.Handler
	client  *http.Client

	ctx    context.Context // ends with Close; parent of deliveries and held connections
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu         sync.Mutex
	state      state
	faults     []*Fault
	clientKey  string               // of checkouts that name none
	journal    *journal             // nil: the state is kept in memory only
	saving     bool                 // save is running
	unsaved    bool                 // the state has changed since the last save
	running    map[string]struct{}  // idempotency keys whose first request is in progress
	signatures map[string]time.Time // signatures of the message API and when each was used

	signaturesSwept time.Time // when old signatures were last removed
}

// New returns a sandbox. It fails only if the state file exists and cannot be read. The caller must Close it.
func New(opts Options) (*Sandbox, error) {
	opts.WidgetSecretKey = cmp.Or(opts.WidgetSecretKey, DemoWidgetSecretKey)
	opts.APISecretKey = cmp.Or(opts.APISecretKey, DemoAPISecretKey)
	opts.MessageKey = cmp.Or(opts.MessageKey, DemoMessageKey)
	opts.MessageSecret = cmp.Or(opts.MessageSecret, DemoMessageSecret)
	opts.PartnerID = cmp.Or(opts.PartnerID, DemoPartnerID)
	opts.PartnerSecret = cmp.Or(opts.PartnerSecret, DemoPartnerSecret)
	opts.RefundDelay = cmp.Or(opts.RefundDelay, 3*time.Second)
	if opts.CallbackRetries == nil {
		opts.CallbackRetries = DefaultCallbackRetries
	}
	s := &Sandbox{
		opts: opts,
		keys: map[string]keySet{
			opts.WidgetSecretKey: widgetKeys,
			opts.APISecretKey:    apiKeys,
		},
		now:        opts.Now,
		log:        opts.Logger,
		client:     &http.Client{Timeout: callbackTimeout, CheckRedirect: noRedirect},
		running:    map[string]struct{}{},
		signatures: map[string]time.Time{},
	}
	if len(s.keys) != 2 {
		return nil, fmt.Errorf("sandbox: the widget and the API secret key must differ")
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.state = newState()
	if opts.StateFile != "" {
		var err error
		if s.journal, s.state, err = openJournal(opts.StateFile); err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.handler = s.routes()
	s.resumeDeliveries()
	return s, nil
}

// ServeHTTP serves /v1 (payments), /messages/v4 (messages), /partner (channel), /sandbox (control by users and tests)
// and the page at /.
func (s *Sandbox) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close stops retries, releases held connections and waits for both.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	s.cancel() // with the lock held, so that no goroutine is added to wg afterwards
	s.mu.Unlock()
	s.wg.Wait()
	if s.journal != nil {
		s.journal.close()
	}
	s.client.CloseIdleConnections()
	return nil
}

// noRedirect prevents callbacks from following redirects; the provider does not follow them either.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
