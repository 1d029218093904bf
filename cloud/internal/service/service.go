// Package service puts the parts of `yeolda serve` together: it is wiring, and a value that tests start on port 0.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/archive"
	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/cloud/internal/climate"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/discord"
	"github.com/yeolda/yeolda/cloud/internal/doctor"
	"github.com/yeolda/yeolda/cloud/internal/events"
	"github.com/yeolda/yeolda/cloud/internal/franchise"
	"github.com/yeolda/yeolda/cloud/internal/gallery"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/httpapi"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/console"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/idempotency"
	"github.com/yeolda/yeolda/cloud/internal/installation"
	"github.com/yeolda/yeolda/cloud/internal/jobs"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/live"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/partner"
	"github.com/yeolda/yeolda/cloud/internal/pass"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/proof"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/rollout"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
)

// Time-outs of connections, and of their end when the service stops. A confirmation may take slightly longer than the 60
// seconds of the payment provider.
const (
	headerTimeout  = 10 * time.Second
	writeTimeout   = 80 * time.Second
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 20 * time.Second
	untraceTimeout = 3 * time.Second // for the last spans

	// lastArchiveTimeout bounds the storing of the last segments of the write-ahead log; systemd waits for 60 seconds in all.
	lastArchiveTimeout = 15 * time.Second
	maxHeader          = 32 << 10
)

// Service is the whole service. New opens its listeners, Run serves.
type Service struct {
	settings  config.Settings
	log       *slog.Logger
	clock     *postgres.Clock
	now       func() time.Time // of clock
	database  *pgserver.Server // nil: an external one
	db        *postgres.DB
	reserve   *reserve.Service
	access    *access.Service
	passes    *pass.Service
	climate   *climate.Service
	devices   *device.Service
	rollouts  *rollout.Service
	partner   *partner.Service
	jobs      *jobs.Service
	live      *live.Hub
	webhooks  *events.Webhooks
	company   *company.Service
	link      link
	grantKeys *grantkey.Ring
	keeper    *archive.Keeper  // nil: no archive
	broker    *broker.Broker   // nil: only external ones
	peers     *peers           // nil: the embedded broker is not one of a pool
	chat      *discord.Handler // nil: off
	api       net.Listener
	metrics   net.Listener
	handler   http.Handler
	canary    canary

	brokerSession  *pgx.Conn // holds the lock of the embedded broker; nil: an external one
	certificateEnd time.Time // of the MQTT listener; zero: none

	began   time.Time                   // by the machine's clock, not by now
	leaving atomic.Bool                 // the signal to stop was received
	heard   atomic.Bool                 // the broker was reached at least once
	untrace func(context.Context) error // nil: traces are off
}

// errBackground is returned beside the error of the component that stopped and thereby ended the service.
var errBackground = errors.New("background work ended")

// New opens and migrates the database and opens the listeners. settings are effective and valid; clock shows the time of
// all rules.
func New(ctx context.Context, settings config.Settings, log *slog.Logger, clock *postgres.Clock) (_ *Service, err error) {
	s := &Service{settings: settings, log: log, clock: clock, now: clock.Now, began: time.Now()}
	defer func() { //nolint:contextcheck // closing must not depend on ctx
		if err != nil {
			s.Close()
		}
	}()
	if settings.Traces.URL != "" {
		if s.untrace, err = tracing.Start(ctx, settings.Traces.URL); err != nil {
			return nil, err
		}
	}
	if err := s.openDatabase(ctx); err != nil {
		return nil, err
	}
	if err := s.rejectDemoAccounts(ctx); err != nil {
		return nil, err
	}
	if err := s.bindKeys(ctx); err != nil {
		return nil, err
	}
	if err := s.lockBroker(ctx); err != nil {
		return nil, err
	}
	if err := postgres.PutBrokerList(ctx, s.db.Pool, settings.MQTT.AgentBrokerURLs()); err != nil {
		return nil, fmt.Errorf("store the brokers of agents: %w", err)
	}
	if err := s.storePageFiles(ctx); err != nil {
		return nil, err
	}
	return s, errors.Join(s.listen(), s.wire())
}

func (s *Service) openDatabase(ctx context.Context) error {
	owner, url := s.settings.Database.OwnerURL, s.settings.Database.URL
	if url == "" {
		archiving := pgserver.ArchivingOff
		if s.settings.Archive.Place != "" {
			archiving = pgserver.ArchivingOn
		}
		server, err := pgserver.Start(ctx, pgserver.Options{DataDir: s.settings.Database.DataDir, Logger: s.log, Archive: archiving})
		if err != nil {
			return err
		}
		s.database, owner, url = server, server.URL(), server.ServiceURL()
	}
	db, err := postgres.OpenMigrated(ctx, owner, url, s.log)
	if err != nil {
		return err
	}
	s.db, db.Now = db, s.now
	if err := s.clock.Compare(ctx, db.Pool); err != nil {
		return err
	}
	return s.openArchive(ctx)
}

// rejectDemoAccounts fails if the database holds accounts whose passwords are public, unless in a demonstration that only
// this machine reaches.
func (s *Service) rejectDemoAccounts(ctx context.Context) error {
	if s.settings.Demo() && len(s.settings.Exposed()) == 0 {
		return nil
	}
	accounts, err := postgres.DemoAccounts(ctx, s.db.Pool)
	if err != nil {
		return err
	}
	if len(accounts) > 0 {
		return fmt.Errorf("the database holds demo accounts (%v), whose passwords are public: remove them, or run with YEOLDA_MODE=demo on 127.0.0.1 only", accounts)
	}
	return nil
}

// bindKeys fails if the database was written with the keys of another installation.
func (s *Service) bindKeys(ctx context.Context) error {
	keys, err := installation.Of(s.settings)
	if err != nil {
		return err
	}
	return keys.Bind(ctx, s.db)
}

func (s *Service) listen() (err error) {
	api, err := net.Listen("tcp", s.settings.HTTP.Addr)
	if err != nil {
		return err
	}
	s.api = newConnections(api, openFiles(), s.settings.HTTP.TrustedProxies)
	s.metrics, err = net.Listen("tcp", s.settings.HTTP.MetricsAddr)
	return err
}

func (s *Service) wire() error {
	set := s.settings
	keys, err := set.Keyring()
	if err != nil {
		return err
	}
	grantKeys, err := set.GrantKeys()
	if err != nil {
		return err
	}
	codeKey, err := set.LoginCodeKey()
	if err != nil {
		return err
	}
	payments, entities, err := newPayments(set, s.db, keys, s.log)
	if err != nil {
		return err
	}
	s.company = entities.Company
	hooks := notify.NewHooks(set.Discord.WebhookURL.Reveal(), set.Webhooks.Allow...)
	sender, err := newSender(set, hooks, s.company.MessageBrand, s.log)
	if err != nil {
		return err
	}
	work, err := queue.New(s.db.Pool, keys)
	if err != nil {
		return err
	}
	limits := &limit.Limiter{DB: s.db, Key: keys.MAC("rate-limit", ""), Off: !set.HTTP.Limited()}
	relyingParty, err := account.NewRelyingParty(set.HTTP.PublicURL)
	if err != nil {
		return err
	}
	accounts := &account.Service{
		DB: s.db, Limits: limits, Queue: work, Log: s.log, Keys: keys, CodeKey: codeKey, CodeTTL: set.Times.LoginCodeTTL, HideAccounts: set.HTTP.HideAccounts, SecondFactorRoles: set.HTTP.SecondFactor, RelyingParty: relyingParty,
	}
	s.reserve = &reserve.Service{
		DB: s.db, Payments: payments, Queue: work, Keys: keys, Log: s.log, PublicURL: set.HTTP.PublicURL,
		HoldTTL: set.Times.CustomerHoldTTL, AdminHoldTTL: set.Times.AdminHoldTTL, DepositDue: set.Times.DepositDue,
		MaxHoldsPerClient: set.HTTP.Limit(set.HTTP.MaxHoldsPerClient), MaxHoldsPerPhone: set.HTTP.Limit(set.HTTP.MaxHoldsPerPhone),
		RefundLimit: set.Toss.RefundApprovalAbove,
	}
	if s.partner, err = newPartner(set, s.db, s.reserve, keys, s.log); err != nil {
		return err
	}
	alerts := &alert.Service{
		DB: s.db, Queue: work, Keys: keys, Heard: func() bool { return s.link.Connected() }, Stores: s.canary.ok,
		CheckHook: hooks.CheckAddress, PublicURL: set.HTTP.PublicURL, HQEmail: set.Messages.HQEmail, DiscordURL: set.Discord.WebhookURL.Reveal(),
	}
	proofs := &proof.Service{DB: s.db, Keys: keys, Queue: work, HQEmail: set.Messages.HQEmail, HeadURL: set.Log.AuditHeadURL.Reveal(), Log: s.log}
	s.jobs = &jobs.Service{
		DB: s.db, Reserve: s.reserve, Partner: s.partner, Alerts: alerts, Proofs: proofs, Queue: work, Sender: sender, Log: s.log,
		SweepEvery: set.Times.SweepEvery, ReconcileEvery: reconcileEvery,
		Retention: postgres.Retention{Paid: set.Times.KeepPaid, Other: set.Times.KeepOther},
	}
	s.grantKeys = &grantkey.Ring{DB: s.db, Keys: keys, First: grantKeys, Log: s.log}
	s.access = &access.Service{
		DB: s.db, Keys: keys, GrantKeys: s.grantKeys, Log: s.log, Limits: limits, ResultTimeout: set.Times.DoorResultTimeout, Now: s.now,
		Alone: len(set.MQTT.BrokerURLs()) == 0 && set.MQTT.BrokerPeerURL == "",
	}
	s.climate = &climate.Service{DB: s.db, Log: s.log, Now: s.now}
	s.devices = &device.Service{DB: s.db, Log: s.log, Now: s.now, OfferKeys: s.grantKeys.Offer, SigningKey: s.grantKeys.Signing}
	s.passes = &pass.Service{DB: s.db, Keys: keys, GrantKeys: s.grantKeys, Log: s.log, Now: s.now}
	if set.MQTT.BrokerPeerURL != "" {
		s.peers = newPeers(s.db, keys, set.MQTT.BrokerPeerURL, s.log)
	}
	if err := s.openLink(); err != nil {
		return err
	}
	s.access.Link, s.climate.Link, s.passes.Link, s.grantKeys.Send = s.link, s.link, s.link, s.link.Send
	alerts.CertificateEnd = s.certificateEnd
	s.devices.Send = s.link.Send
	s.rollouts = &rollout.Service{DB: s.db, Log: s.log, Packages: set.MQTT.AgentPackages, Send: s.link.Send}
	chat, err := s.newDiscord()
	if err != nil {
		return err
	}
	s.webhooks = events.NewWebhooks(s.db, keys, s.log, set.Webhooks.Allow)
	s.webhooks.Ahead = s.clock.Ahead
	s.live = &live.Hub{DB: s.db, Log: s.log}
	sessions := session.New(postgres.Sessions{DB: s.db}, accounts, set.HTTP.CookieSecure, set.HTTP.AdminIdle, s.now)
	sessions.StepUp = set.HTTP.StepUp
	office := &backoffice.Service{DB: s.db, Queue: work, Keys: keys, GrantKeys: s.grantKeys, Alerts: alerts, Company: s.company}
	s.jobs.Office = office
	examiner := &doctor.Doctor{Settings: set, Company: Facts(set.Legal), DB: s.db}
	s.jobs.Doctor = &doctor.Hourly{Doctor: examiner, Log: s.log, Began: s.began}
	api := &httpapi.API{
		Unavailable: postgres.IsUnavailable, Overloaded: s.db.Overloaded,
		Backoffice: office, Reserve: s.reserve, Access: s.access, Climate: s.climate, Account: accounts, Limits: limits,
		Franchise:   &franchise.Service{DB: s.db, Limits: limits, Queue: work, HQEmail: set.Messages.HQEmail},
		Idempotency: &idempotency.Service{DB: s.db, Keys: keys}, Events: &events.Service{DB: s.db}, Company: s.company, Entities: entities, Gallery: &gallery.Service{DB: s.db},
		Discord: chat, Sessions: sessions, Log: s.log, Now: s.now,
		Console: &console.Console{
			Backoffice: office, Reserve: s.reserve, Devices: s.devices, Rollouts: s.rollouts, Account: accounts, Partner: s.partner, Live: s.live, Webhooks: s.webhooks, Proofs: proofs, Company: s.company, Entities: entities, Sessions: sessions, Now: s.now,
			PublicURL: set.HTTP.PublicURL,
		},
		TrustedProxies: set.HTTP.TrustedProxies, CustomerTTL: set.Times.CustomerSessionTTL,
		Site: site(set),
	}
	examiner.UntrustedProxy = api.UntrustedProxy
	s.handler, err = s.routes(api)
	return err
}

// reconcileEvery is the interval at which the provider's books are compared with ours.
const reconcileEvery = 24 * time.Hour

// Addr returns the address of the API.
func (s *Service) Addr() string { return s.api.Addr().String() }

// OperationsAddr returns the address of health and metrics.
func (s *Service) OperationsAddr() string { return s.metrics.Addr().String() }

// Run serves until ctx is done. Then it finishes requests in progress, background work, the broker and the database, in
// this order.
func (s *Service) Run(ctx context.Context) error {
	defer s.Close() //nolint:contextcheck // closing must not depend on ctx
	group, ctx := errgroup.WithContext(ctx)
	operating, stopOperations := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOperations()
	serving, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()

	var background errgroup.Group
	failed := make(chan error, 16) // one per task
	run := func(name string, task func(context.Context) error) {
		background.Go(func() error {
			err := task(serving)
			if err != nil && !errors.Is(err, context.Canceled) {
				err = fmt.Errorf("%s: %w", name, err)
				failed <- err
				return err
			}
			return nil
		})
	}
	run("clock", func(ctx context.Context) error { return s.clock.Run(ctx, s.db.Pool, s.log) })
	run("broker", s.link.Run)
	run("doors", s.access.Run)
	run("devices", s.devices.Run)
	run("passes", s.passes.Run)
	run("rollouts", s.rollouts.Run)
	run("grant keys", s.grantKeys.Run)
	run("jobs", s.jobs.Run)
	run("live", s.live.Run)
	run("webhooks", s.webhooks.Run)
	run("climate", s.climate.Run)
	run("canary", s.watchWrites)
	run("broker lock", s.keepBrokerLock)
	if s.keeper != nil {
		run("archive", s.keeper.Run)
	}

	group.Go(func() error {
		defer stopOperations() // readiness and metrics are served until the last request has ended
		return serveHTTP(s.leave(ctx), s.api, s.closeConnections(s.handler))
	})
	group.Go(func() error { return serveHTTP(operating, s.metrics, s.operations()) })
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		// If one part fails, the process ends, so that the supervisor restarts all of it.
		case <-failed: //nolint:errcheck // background.Wait returns it
			return errBackground
		}
	})
	s.log.Info("serving", "http", s.api.Addr().String(), "mqtt", s.settings.MQTT.Addr, "metrics", s.metrics.Addr().String())
	err := group.Wait()
	drain, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	s.reserve.Drain(drain) //nolint:contextcheck // ctx is done; draining has a time-out of its own
	if s.chat != nil {
		s.chat.Wait()
	}
	stopBackground()
	return errors.Join(err, background.Wait())
}

// Close releases what New opened.
func (s *Service) Close() {
	for _, listener := range []net.Listener{s.api, s.metrics} {
		if listener != nil {
			_ = listener.Close() // closed already after Run
		}
	}
	if s.brokerSession != nil {
		_ = s.brokerSession.Close(context.Background()) // the session may be broken
	}
	if s.db != nil {
		s.db.Close()
	}
	if s.database != nil {
		s.database.Stop()
	}
	if s.keeper != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastArchiveTimeout)
		defer cancel()
		s.keeper.Finish(ctx)
	}
	if s.untrace != nil {
		ctx, cancel := context.WithTimeout(context.Background(), untraceTimeout)
		defer cancel()
		if err := s.untrace(ctx); err != nil {
			s.log.Warn("the last traces were not exported", "error", err)
		}
	}
}
