// Package jobs does the work that no request waits for: messages, the provider's unclear answers, deposits that are
// overdue, partner channels, reconciliation.
//
// It is River's working half; package queue is the inserting one. Beside River runs a sweep that looks at the rows
// themselves, so that a job that was lost, discarded or badly deployed strands neither money nor a message:
//
//	verb ──commit──▶ row + job ──River──▶ worker ──▶ verb
//	                  row ───────sweep───▶ verb
//
// Every step is safe to run twice at the same time: the verbs decide under the row's lock.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/partner"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Service runs the background work. Every field is required.
type Service struct {
	DB      *postgres.DB
	Reserve *reserve.Service
	Partner *partner.Service
	Queue   *queue.Queue
	Sender  notify.Sender
	Log     *slog.Logger

	SweepEvery     time.Duration      // how often the rows are looked at
	Retention      postgres.Retention // for how long names and contacts are kept
	ReconcileEvery time.Duration      // how often the provider's books are compared with ours
}

// Run works until ctx is done and returns when the work in hand is finished.
func (s *Service) Run(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.work(groupCtx) })
	group.Go(func() error { return every(groupCtx, s.SweepEvery, s.sweep) })
	group.Go(func() error { return every(groupCtx, s.ReconcileEvery, s.reconcile) })
	group.Go(func() error { return every(groupCtx, feedTick, s.importFeeds) })
	group.Go(func() error { return every(groupCtx, chainEvery, s.chain) })
	group.Go(func() error { return every(groupCtx, retentionEvery, s.forget) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// every calls do at once and then again and again until ctx is done.
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

// settle asks the provider about a reservation if that is due.
func (s *Service) settle(ctx context.Context, id booking.ReservationID) error {
	return settled(s.Reserve.SettleDue(ctx, id))
}

// settled passes on what went wrong on our side. An answer of the provider that is open, or not what the customer
// hoped for, is no failure of the work: the row says what comes next.
func settled(err error) error {
	var refused *reserve.PaymentRefused
	switch {
	case errors.Is(err, reserve.ErrPaymentPending), errors.As(err, &refused), errors.Is(err, reserve.ErrAccountRequired):
		return nil
	}
	return err
}

// sweepLimit bounds how many rows one sweep takes up.
const sweepLimit = 200

// lead runs do on one replica at a time. The lock belongs to a connection, not to a transaction: do asks the provider,
// and no transaction is open while it does.
func (s *Service) lead(ctx context.Context, key int64, do func(ctx context.Context) error) {
	err := s.DB.Pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		var mine bool
		if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, key).Scan(&mine); err != nil || !mine {
			return err
		}
		defer func() {
			if _, err := conn.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock($1)`, key); err != nil {
				_ = conn.Conn().Close(context.WithoutCancel(ctx)) // the lock goes with the connection
			}
		}()
		return do(ctx)
	})
	if err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "background work failed, to be tried again", "error", err)
	}
}
