// Package sandbox is the outside world for development and tests: the payment provider, the message
// provider, a mail server and a partner booking channel, each speaking its own protocol, so that the
// service under test runs its production clients against real sockets and cannot tell the difference.
//
// It models what those providers do when things go wrong, because that is what the service has to be
// built for: answers that never come, money booked without an answer, replayed errors, deposits that
// bounce, banks that take a deposit back. Every fault can be ordered over HTTP (/sandbox/faults) or from
// Go ([Sandbox.SetFault]).
//
// A payment moves like this (providers.md 1.2):
//
//	READY ──authenticated──▶ IN_PROGRESS ──confirm──▶ DONE ──cancel in one go──▶ CANCELED
//	  │ 30 min                 │ 10 min  │ refused     │ ▲ └──cancel in part──▶ PARTIAL_CANCELED
//	  ▼                        ▼         ▼             │ │
//	EXPIRED                 EXPIRED   ABORTED  reversal│ │deposit
//	                           │                       ▼ │
//	                           └──confirm──▶ WAITING_FOR_DEPOSIT ──cancel──▶ CANCELED
//	                             (account)             └──dueDate──▶ EXPIRED
//
// A message to a phone number that ends in 0000 finds nobody on KakaoTalk and becomes an SMS.
//
// Beside what the contract lists there are, under /sandbox: POST reversals {orderId} (the bank takes a deposit
// back), POST payments/{paymentKey}/authenticate {method, bank} and .../decline {code} (what the buyer does in
// the widget), GET widget (the payment window of the browser), GET faults, GET channel/bookings, PUT
// channel/bookings/{id} {startDateTime, endDateTime}, the fault target "refund" and the parameter limit of
// lists. The browser SDK is at /v2/standard.
//
// Time passes when somebody looks: a payment is moved to where it belongs by now before anything reads
// or changes it, so a test turns the clock with [Options.Now] and nothing has to wait.
//
// All state is in memory; [Options.StateFile] keeps it over a restart.
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

// The demo credentials. The service uses the same ones when it is told nothing else, and refuses to start
// with them on an address that is reachable from elsewhere.
const (
	DemoWidgetSecretKey = "test_gsk_yeolda_demo"
	DemoWidgetClientKey = "test_gck_yeolda_demo"
	DemoAPISecretKey    = "test_sk_yeolda_demo"
	DemoAPIClientKey    = "test_ck_yeolda_demo"
	DemoMessageKey      = "NCSYEOLDADEMO"
	DemoMessageSecret   = "yeolda-demo-message-secret"
	DemoPartnerID       = "sandbox"
	DemoPartnerSecret   = "yeolda-demo-partner-secret"
)

// DefaultCallbackRetries are the pauses between the delivery attempts of a deposit callback or a channel
// event: three quick ones, so that a service that was only restarting hears of its deposit within seconds,
// then the provider's own 1, 4, 16, ... 4096 minutes (providers.md 1.6).
var DefaultCallbackRetries = []time.Duration{
	2 * time.Second, 10 * time.Second, 30 * time.Second,
	1 * time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute,
	256 * time.Minute, 1024 * time.Minute, 4096 * time.Minute,
}

// Options say how a [Sandbox] is set up. The zero value is usable: demo credentials, the real clock, nobody
// to call back.
type Options struct {
	WidgetSecretKey string // key set of payments made by the widget
	APISecretKey    string // key set of virtual accounts issued by the server
	MessageKey      string
	MessageSecret   string
	PartnerID       string
	PartnerSecret   string

	// WebhookURL receives the deposit callbacks, PartnerURL the booking events. Empty: nothing is sent.
	WebhookURL string
	PartnerURL string

	// CallbackRetries are the pauses between delivery attempts; nil means DefaultCallbackRetries.
	CallbackRetries []time.Duration
	// RefundDelay is how long the refund of a deposit stays PENDING; 0 means 3 seconds. (The real provider
	// takes about two days.)
	RefundDelay time.Duration

	StateFile string           // where state is kept over a restart; empty: memory only
	Now       func() time.Time // nil means time.Now
	Logger    *slog.Logger     // nil means no log
}

// Sandbox is the outside world as one [http.Handler]. Its methods reach the same state as its HTTP API, for
// tests written in Go. All methods are safe for concurrent use.
type Sandbox struct {
	opts    Options
	keys    map[string]keySet
	now     func() time.Time
	log     *slog.Logger
	handler http.Handler
	client  *http.Client

	ctx    context.Context // ends with Close; deliveries and held connections hang on it
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu         sync.Mutex
	state      state
	faults     []*Fault
	keeping    bool                 // the state file is about to be written
	running    map[string]struct{}  // idempotency keys whose first request is still under way
	signatures map[string]time.Time // of the message API, and when each was used

	signaturesSwept time.Time // when old signatures were last forgotten
}

// New returns a sandbox. It fails only if there is a state file that cannot be read. The caller owns it and
// must Close it.
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
	st, err := loadState(opts.StateFile)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	s.state = st
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.handler = s.routes()
	s.resumeDeliveries()
	return s, nil
}

// ServeHTTP answers for all the outside world: /v1 (payments), /messages/v4 (messages), /partner (channel),
// /sandbox (what people and tests do), and the page at /.
func (s *Sandbox) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close gives up deliveries that are still being retried, lets go of held connections and waits for both.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	s.cancel() // under the lock: nothing is added to wg after it
	s.mu.Unlock()
	s.wg.Wait()
	s.client.CloseIdleConnections()
	return nil
}

// noRedirect keeps a callback at the address it was registered for, as the provider does.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
