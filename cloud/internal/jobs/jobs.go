// Package jobs runs background work: messages, unclear answers of the payment provider, overdue deposits, partner channels,
// reconciliation.
//
// It contains River's workers; package queue inserts jobs. Beside River a sweep reads the rows themselves, so that a lost or
// discarded job strands neither a payment nor a message:
//
//	verb ──commit──▶ row + job ──River──▶ worker ──▶ verb
//	                  row ───────sweep───▶ verb
//
// Every step may run twice at the same time: the verbs decide under the lock of the row.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/doctor"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/partner"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/proof"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Service runs the background work. Every field is required.
type Service struct {
	DB      *postgres.DB
	Reserve *reserve.Service
	Partner *partner.Service
	Alerts  *alert.Service
	Proofs  *proof.Service
	Office  *backoffice.Service
	Doctor  *doctor.Hourly
	Queue   *queue.Queue
	Sender  notify.Sender
	Log     *slog.Logger

	SweepEvery     time.Duration      // interval of the sweep
	Retention      postgres.Retention // of names and contacts
	ReconcileEvery time.Duration      // interval of the comparison with the provider's books
}

// Run works until ctx is done and returns when work in progress has finished.
func (s *Service) Run(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.work(groupCtx) })
	group.Go(func() error { return every(groupCtx, s.SweepEvery, s.sweep) })
	group.Go(func() error { return every(groupCtx, reconcileTick, s.reconcile) })
	group.Go(func() error { return every(groupCtx, feedInterval, s.importFeeds) })
	group.Go(func() error { return every(groupCtx, chainEvery, s.chain) })
	group.Go(func() error { return every(groupCtx, linkEvery, s.link) })
	group.Go(func() error { return every(groupCtx, alertInterval, s.sweepAlerts) })
	group.Go(func() error { return every(groupCtx, doorDayInterval, s.putDoorDays) })
	group.Go(func() error { return every(groupCtx, retentionEvery, s.retain) })
	group.Go(func() error { return every(groupCtx, proofInterval, s.prove) })
	group.Go(func() error { return every(groupCtx, doctorInterval, s.examine) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// every calls do immediately and then at each interval until ctx is done.
func every(ctx context.Context, interval time.Duration, do func(ctx context.Context)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		do(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// settle asks the provider about a reservation if a check is due.
func (s *Service) settle(ctx context.Context, id booking.ReservationID) error {
	return settled(s.Reserve.SettleDue(ctx, id))
}

// settled returns only our own errors. An unclear or negative answer of the provider is not a failure of the work: the row
// states the next step.
func settled(err error) error {
	var refused *reserve.PaymentRefused
	switch {
	case errors.Is(err, reserve.ErrPaymentPending), errors.As(err, &refused), errors.Is(err, reserve.ErrAccountRequired):
		return nil
	}
	return err
}

// sweepLimit bounds the rows of a kind in one sweep.
const sweepLimit = 200

// lead runs do on one replica at a time. The lock belongs to a session, not to a transaction, because no transaction is
// open while do calls the provider.
func (s *Service) lead(ctx context.Context, key int64, do func(ctx context.Context) error) {
	err := s.DB.Pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		var mine bool
		if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, key).Scan(&mine); err != nil || !mine {
			return err
		}
		defer func() {
			if _, err := conn.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock($1)`, key); err != nil {
				_ = conn.Conn().Close(context.WithoutCancel(ctx)) // the end of the session releases the lock
			}
		}()
		return do(ctx)
	})
	if err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "background work failed and will be tried again", "error", err)
	}
}
