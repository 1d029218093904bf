package jobs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/events"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/proof"
)

// Keys of the advisory locks under which one replica works.
const (
	sweepLock     = 0x79656f6c_0001
	reconcileLock = 0x79656f6c_0002
	feedLock      = 0x79656f6c_0008
)

// sweepWorkers bounds the rows of a kind that are processed at the same time: an unresponsive provider delays each for
// seconds.
const sweepWorkers = 16

// sweep reads the rows themselves: reservations with unsettled payments, callbacks that were not applied, messages that
// were not sent. Rows that the queue has processed no longer match. The kinds run concurrently, so messages are sent while
// the payment provider does not respond.
func (s *Service) sweep(ctx context.Context) {
	s.lead(ctx, sweepLock, func(ctx context.Context) error {
		var group errgroup.Group
		for _, part := range []func(context.Context) error{
			s.sweepMoney, s.sweepReceipts, s.sweepCallbacks, s.sweepMessages, s.Reserve.ReportStuck, s.Reserve.SealKeys, s.Reserve.Compensate,
			s.Reserve.SweepStays, s.Partner.Sweep, s.Partner.SealFeeds, s.purge,
		} {
			group.Go(func() error { return part(ctx) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		return postgres.NoteSuccess(ctx, s.DB.Pool, postgres.WorkSweep, s.DB.Now())
	})
}

func (s *Service) sweepMoney(ctx context.Context) error {
	ids, err := postgres.Unsettled(ctx, s.DB.Pool, s.DB.Now(), sweepLimit)
	return errors.Join(err, eachOf(ids, func(id booking.ReservationID) error { return s.settle(ctx, id) }))
}

func (s *Service) sweepReceipts(ctx context.Context) error {
	ids, err := postgres.DueReceipts(ctx, s.DB.Pool, s.DB.Now(), sweepLimit)
	return errors.Join(err, eachOf(ids, func(id booking.ReservationID) error { return s.Reserve.SettleReceipt(ctx, id) }))
}

func (s *Service) sweepCallbacks(ctx context.Context) error {
	last, err := postgres.UnappliedOrders(ctx, s.DB.Pool, sweepLimit)
	return errors.Join(err, eachOf(slices.Collect(maps.Keys(last)), func(order string) error {
		return settled(s.Reserve.SettleCallbacks(ctx, order, last[order]))
	}))
}

func (s *Service) sweepMessages(ctx context.Context) error {
	ids, err := postgres.DueMessages(ctx, s.DB.Pool, s.DB.Now(), sweepLimit)
	return errors.Join(err, eachOf(ids, func(id int64) error { return s.send(ctx, id) }))
}

// eachBudget bounds the time in which a sweep begins with items of a kind. The others wait for the next sweep: a provider that does not
// respond must not delay the other kinds.
const eachBudget = 10 * time.Second

// eachOf calls do for each item, several at a time, and joins the errors.
func eachOf[T any](list []T, do func(T) error) error {
	var (
		group errgroup.Group
		errs  = make([]error, len(list))
		began = time.Now()
	)
	group.SetLimit(sweepWorkers)
	for i, item := range list {
		if time.Since(began) > eachBudget {
			break
		}
		group.Go(func() error {
			errs[i] = do(item)
			return nil
		})
	}
	return errors.Join(group.Wait(), errors.Join(errs...))
}

// webhookTTL is the time applied callbacks are kept. The provider repeats a callback for less than four days.
const webhookTTL = 30 * 24 * time.Hour

// canaryTTL is the time the row of a process that writes no canaries any more is kept.
const canaryTTL = 30 * 24 * time.Hour

// intentTTL is the time the switching of air conditioners is kept.
const intentTTL = 90 * 24 * time.Hour

// purge deletes expired rows, and corrects those that a fast clock has left. Unless the clock is steady, it deletes only what a guest or
// an administrator gets again: sessions, codes, limits.
func (s *Service) purge(ctx context.Context) error {
	now := s.DB.Now()
	err := errors.Join(
		postgres.WatchClock(ctx, s.DB.Pool, now),
		postgres.ForgetFuture(ctx, s.DB.Pool, now),
		postgres.PurgeSessions(ctx, s.DB.Pool, now),
		postgres.PurgeLoginCodes(ctx, s.DB.Pool, now),
		postgres.PurgeRateLimits(ctx, s.DB.Pool, now.Add(-24*time.Hour)),
		postgres.ExpireHoldsEverywhere(ctx, s.DB.Pool, now.Add(-time.Minute)),
	)
	if steady, errClock := postgres.ClockSteady(ctx, s.DB.Pool, now); !steady {
		return errors.Join(err, errClock)
	}
	return errors.Join(
		err,
		s.DB.PurgeCanaries(ctx, now.Add(-canaryTTL)),
		postgres.PurgeIntents(ctx, s.DB.Pool, now.Add(-intentTTL)),
		postgres.PurgeDeliveries(ctx, s.DB.Pool, now.Add(-events.Retention)),
		postgres.PurgeEvents(ctx, s.DB.Pool, now.Add(-events.Retention)),
		postgres.PurgeProofs(ctx, s.DB.Pool, now.Add(-proof.Retention)),
		postgres.PurgeIdempotent(ctx, s.DB.Pool, now.Add(-postgres.IdempotencyTTL)),
		postgres.PurgeCallbacks(ctx, s.DB.Pool, now.Add(-webhookTTL)),
		postgres.PurgeReconciliations(ctx, s.DB.Pool, now.Add(-webhookTTL)),
	)
}

// reconcileTick is how often it is checked whether a comparison with the provider's books is due.
const reconcileTick = 30 * time.Second

// reconcile compares the provider's books with ours if that is due, or rebuilds the reservations that a restored backup lacks.
func (s *Service) reconcile(ctx context.Context) {
	s.lead(ctx, reconcileLock, func(ctx context.Context) error {
		rebuilt, err := s.Reserve.RebuildDue(ctx)
		if err != nil {
			return err
		}
		if rebuilt {
			return s.Office.EraseAgain(ctx) // it waited for the rebuild
		}
		complete, err := s.Reserve.ReconcileDue(ctx, s.ReconcileEvery)
		if err != nil || !complete {
			return err
		}
		return postgres.NoteSuccess(ctx, s.DB.Pool, postgres.WorkReconciliation, s.DB.Now())
	})
}

// feedInterval is the interval at which due calendars of partners are looked up.
const feedInterval = 30 * time.Second

// importFeeds settles conflicts whose cause has ended, and reads the due calendars of partners.
func (s *Service) importFeeds(ctx context.Context) {
	s.lead(ctx, feedLock, func(ctx context.Context) error {
		return errors.Join(s.Partner.FollowConflicts(ctx), s.Partner.ImportFeeds(ctx))
	})
}
