// Package servicetest starts the whole service inside a test: the real wiring with a database of its own, the demo
// branches, and the sandbox as the outside world. Tests use it over HTTP like any client.
package servicetest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/branchfile"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/service"
	"github.com/yeolda/yeolda/firmware-sim/testkit/capture"
)

// Stack is a running service with its sandbox.
type Stack struct {
	URL        string // of the API, without a trailing slash
	Root       string // of the pages
	MQTT       string // address of the broker
	Sandbox    *sandbox.Sandbox
	Operations string       // of health and metrics
	DB         *postgres.DB // the service's database, through a separate pool
	Clock      *Clock
	Provider   *Clock // of the sandbox

	Transport http.RoundTripper // of clients; nil: http.DefaultTransport

	Settings config.Settings // the effective settings
	Log      *capture.Output // what the service has logged
}

// Clock is the clock of the service's rules. It runs with the real clock, with an offset, unless it is stopped.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration
	stands time.Time // zero if running
}

// StartOfSlot moves the clock forward to the next start of a slot, so that the current slot is not over for ten minutes.
func (c *Clock) StartOfSlot() {
	now := c.Now()
	c.Advance(now.Truncate(booking.SlotLength).Add(booking.SlotLength).Sub(now))
}

// Now returns the current time of the rules.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stands.IsZero() {
		return c.stands
	}
	return time.Now().Add(c.offset)
}

// Stop stops the clock at t, for tests of both sides of a boundary.
func (c *Clock) Stop(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stands = t
}

// Resume lets a stopped clock run again, from the time at which it was stopped.
func (c *Clock) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stands.IsZero() {
		c.offset, c.stands = time.Until(c.stands), time.Time{}
	}
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stands.IsZero() {
		c.stands = c.stands.Add(d)
		return
	}
	c.offset += d
}

// AdvanceDays advances the clock as it runs for a service that is not stopped: after a step of more than a day, a service deletes nothing.
func (s *Stack) AdvanceDays(t testing.TB, days int) {
	t.Helper()
	for range 2 * days {
		s.Clock.Advance(12 * time.Hour)
		if err := postgres.WatchClock(t.Context(), s.DB.Pool, s.Clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

// Start runs a service until the test ends. change may alter its settings before it starts.
func Start(t testing.TB, change ...func(*config.Settings)) *Stack {
	t.Helper()
	clock := new(Clock)
	return start(t, clock, postgres.AloneClock(clock.Now), change...)
}

// StartSkewed is Start on a machine whose clock is ahead of the database's, or behind it if ahead is negative. As in production,
// the rules follow the database's clock; [Stack.Clock] is the machine's.
func StartSkewed(t testing.TB, ahead time.Duration, change ...func(*config.Settings)) *Stack {
	t.Helper()
	machine := new(Clock)
	machine.Advance(ahead)
	return start(t, machine, postgres.NewClock(machine.Now), change...)
}

// StartApart is Start on a clock that replicas share, from which the time of this replica's rules differs by apart. In production the
// comparison with the database's clock leaves at most a second.
func StartApart(t testing.TB, clock *Clock, apart time.Duration, change ...func(*config.Settings)) *Stack {
	t.Helper()
	return start(t, clock, postgres.AloneClock(func() time.Time { return clock.Now().Add(apart) }), change...)
}

func start(t testing.TB, clock *Clock, rules *postgres.Clock, change ...func(*config.Settings)) *Stack {
	t.Helper()
	kept := new(capture.Output)
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), kept), &slog.HandlerOptions{Level: slog.LevelInfo}))
	settings := defaults(t)
	settings.Secrets.Mode = config.ModeDemo
	settings.HTTP.Addr = freeAddr(t)
	for settings.MQTT.Addr = freeAddr(t); settings.MQTT.Addr == settings.HTTP.Addr; {
		settings.MQTT.Addr = freeAddr(t)
	}
	settings.HTTP.MetricsAddr = "127.0.0.1:0"
	settings.HTTP.CookieSecure = false // unlike browsers, Go's cookie jar requires HTTPS on loopback too
	settings.Database.URL = pgtest.URL(t)

	provider := new(Clock)
	world := startSandbox(t, &settings, provider, log)
	for _, c := range change {
		c(&settings)
	}
	settings = settings.Effective()
	if err := settings.Check(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	own := settings // other programs, which read Stack.Settings, do not know the parameters
	if _, benchmark := t.(*testing.B); !benchmark && !strings.Contains(own.Database.URL, poolSize) {
		setParameters(&own, cheapConnections)
	}
	s, err := service.New(ctx, own, log, rules)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	db, err := postgres.Open(ctx, settings.Database.URL, log)
	if err != nil {
		t.Fatal(err)
	}
	db.Now = rules.Now
	applyDemo(t, db, settings)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("service: %v", err)
		}
		db.Close()
	})
	root := "http://" + s.Addr()
	return &Stack{URL: root + "/api", Root: root, Operations: "http://" + s.OperationsAddr(), MQTT: settings.MQTT.Addr, Sandbox: world, DB: db, Clock: clock, Provider: provider, Settings: settings, Log: kept}
}

// poolSize is the parameter of a database URL that bounds the connections of a service, beside those for doors.
const poolSize = "pool_max_conns"

// cheapConnections are the connections of a service under test: the smallest pool that a service accepts, and one plan of each
// statement, because each connection is a process with empty caches, which would plan it five times before it keeps a plan. That was a
// third of PostgreSQL's time. Whole programs, as in torture and e2e, have the plans of production.
var cheapConnections = map[string]string{poolSize: "10", "plan_cache_mode": "force_generic_plan"}

// ManyConnections gives a service the connections of production, for tests in which many transactions wait for each other.
// Benchmarks have them always.
func ManyConnections(s *config.Settings) {
	setParameters(s, map[string]string{poolSize: strconv.Itoa(postgres.MaxConns)})
}

// setParameters sets parameters of the database URL.
func setParameters(s *config.Settings, parameters map[string]string) {
	u, err := url.Parse(s.Database.URL)
	if err != nil {
		return // the service rejects it
	}
	query := u.Query()
	for name, value := range parameters {
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	s.Database.URL = u.String()
}

// defaults returns the settings of an unconfigured service.
func defaults(t testing.TB) config.Settings {
	t.Helper()
	var settings config.Settings
	if err := kong.ApplyDefaults(&settings); err != nil {
		t.Fatal(err)
	}
	settings.HTTP.MaxHoldsPerClient, settings.HTTP.MaxHoldsPerPhone = 0, 0 // the clients of a test share an address
	settings.HTTP.StepUp = 0                                               // tests move the clock by hours
	return settings
}

func startSandbox(t testing.TB, settings *config.Settings, clock *Clock, log *slog.Logger) *sandbox.Sandbox {
	t.Helper()
	effective := settings.Effective() // a copy, because settings derived from the sandbox's addresses are not known yet
	world, err := sandbox.New(sandbox.Options{
		WebhookURL:      "http://" + settings.HTTP.Addr + "/api/virtualaccount/webhook",
		PartnerURL:      "http://" + settings.HTTP.Addr + "/partner/v1/events",
		WidgetSecretKey: effective.Toss.WidgetSecretKey.Reveal(), APISecretKey: effective.Toss.APISecretKey.Reveal(),
		MessageKey: effective.Messages.SolapiAPIKey.Reveal(), MessageSecret: effective.Messages.SolapiAPISecret.Reveal(),
		PartnerID: effective.Partner.ID, PartnerSecret: effective.PartnerSecrets()[0],
		RefundDelay: 50 * time.Millisecond, Now: clock.Now, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(world)
	mail, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- world.ServeSMTP(ctx, mail) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = world.Close()
		server.Close()
	})
	settings.Sandbox.Addr, settings.Sandbox.SMTPAddr = server.Listener.Addr().String(), mail.Addr().String()
	return world
}

// demoFile is the path of the file with the demo branches.
func demoFile() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "../../../deploy/demo/branches.yaml")
}

func applyDemo(t testing.TB, db *postgres.DB, settings config.Settings) {
	t.Helper()
	content, err := os.ReadFile(demoFile())
	if err != nil {
		t.Fatal(err)
	}
	file, err := branchfile.Parse("branches.yaml", content)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := settings.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	plan, err := branchfile.MakePlan(ctx, db.Pool, keys, "branches.yaml", file, db.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := branchfile.Apply(ctx, db, keys, "branches.yaml", file, plan, "test"); err != nil {
		t.Fatal(err)
	}
}

// freeAddr returns an address to listen on later. Each call uses a separate loopback address where the system
// supports it, because on a shared one another process may take the port in between.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(250), rand.N(250), 1+rand.N(250)))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
