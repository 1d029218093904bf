package alert

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// ErrNoAlert is returned when there is no alert with that id.
var ErrNoAlert = postgres.ErrNoAlert

// Alert is a condition that an administrator must know about.
type Alert = postgres.Alert

// Filter selects alerts.
type Filter = postgres.AlertFilter

// Limits are the thresholds of a service in production.
var Limits = postgres.AlertLimits{
	Offline: 2 * time.Minute, Away: 30 * time.Second, Mass: 20, MassWindow: time.Minute, MassCover: time.Hour, MassEnd: 5, Stale: 150 * time.Second,
	Undelivered: 2 * time.Minute, Unclear: 5 * time.Minute, Silent: 10 * time.Minute, FirstReading: 2 * time.Minute, Frozen: 24 * time.Hour, Settle: 20 * time.Minute, NoArrival: 20 * time.Minute, Quiet: 30 * time.Minute, Journal: 24 * time.Hour,
	Clock: 30 * time.Second, ClockSettle: 5 * time.Minute, Beacon: 2 * time.Minute, Passes: 35 * time.Minute, MinCelsius: 5, MaxCelsius: 35, Reconcile: 26 * time.Hour, Certificate: 14 * 24 * time.Hour,
	FailedWindow: 24 * time.Hour,
}

const (
	// settleDelay is how long an alert has been over before its end is announced. If it returns earlier, it is one incident.
	settleDelay = 2 * time.Minute
	// slowInterval is the interval of the conditions that read a row of every sensor.
	slowInterval = 30 * time.Second
	// gap between two observations after which the service counts as restarted: the machine slept, its clock was set, or the
	// database, which keeps the reports of agents, took no writes.
	gap = time.Minute
)

// Service finds alerts and queues their messages. Every field is required unless its comment says otherwise.
type Service struct {
	DB    *postgres.DB
	Queue *queue.Queue
	Keys  *seal.Keyring // of contacts
	// Heard reports whether the broker is connected.
	Heard func() bool
	// Stores reports whether the database takes writes.
	Stores func() bool
	// CheckHook returns an error for the address of a webhook that messages would not be sent to.
	CheckHook func(address string) error

	PublicURL      string    // of links to the console
	HQEmail        string    // a contact of the headquarters unless they have others; may be empty
	DiscordURL     string    // likewise
	CertificateEnd time.Time // of the MQTT listener; zero: none

	mu     sync.Mutex
	up     time.Time // since when sweeps have followed one another
	heard  time.Time // since when the broker has been connected; zero: it is not
	swept  time.Time // the last observation
	stored time.Time // the last one while the database took writes
	slowAt time.Time // the last look at the slow conditions
}

// Observe records that the service is working, and whether the broker is connected. It is called at the interval of the
// sweep on every replica, so that the one that sweeps knows for how long it could have received reports.
func (s *Service) Observe(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.stored) > gap || now.Before(s.swept) {
		s.up, s.heard = now, time.Time{}
	}
	s.swept = now
	if s.Stores() {
		s.stored = now
	}
	switch {
	case !s.Heard():
		s.heard = time.Time{}
	case s.heard.IsZero():
		s.heard = now
	}
}

// Sweep opens and ends alerts and queues the messages that are due. At most one replica may sweep at a time. Observe has
// been called before.
func (s *Service) Sweep(ctx context.Context) error {
	s.mu.Lock()
	now := s.swept
	sweep := postgres.AlertSweep{
		AlertLimits: Limits, Now: now, Up: s.up, Heard: s.heard, CertificateEnd: s.CertificateEnd, KeyTemplates: notify.KeyTemplates(),
	}
	slow := now.Sub(s.slowAt) >= slowInterval || now.Before(s.slowAt)
	if slow {
		s.slowAt = now
	}
	s.mu.Unlock()
	found := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.SweepAlerts(ctx, tx, sweep, slow)
	})
	return errors.Join(found, s.announce(ctx, now))
}

// List returns alerts, newest first.
func (s *Service) List(ctx context.Context, f Filter) ([]Alert, error) {
	return postgres.Alerts(ctx, s.DB.Pool, f)
}

// ByID returns an alert, or ErrNoAlert.
func (s *Service) ByID(ctx context.Context, id int64) (Alert, error) {
	return postgres.AlertByID(ctx, s.DB.Pool, id)
}

// Acknowledge records that an administrator takes care of an alert. The first one is kept.
func (s *Service) Acknowledge(ctx context.Context, a Alert, by, actor string) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		changed, err := postgres.AcknowledgeAlert(ctx, tx, a.ID, by, now)
		if err != nil || !changed {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Branch: a.Branch, Action: "alert.acknowledge", Target: a.Kind,
			Detail: map[string]any{"subject": a.Subject}})
	})
}
