package jobs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Keys of the advisory locks that have one replica do the work.
const (
	sweepLock     = 0x79656f6c_0001
	reconcileLock = 0x79656f6c_0002
	feedLock      = 0x79656f6c_0003
)

// sweepWorkers bounds how many rows of a kind are worked on at a time: a provider that hangs keeps each for seconds.
const sweepWorkers = 16

// sweep looks at the rows themselves: reservations whose money is not settled, callbacks that were not acted on,
// messages that nobody sends. What the queue has done meanwhile is not found any more. The kinds do not wait for each
// other: messages go out while the payment provider hangs.
func (s *Service) sweep(ctx context.Context) {
	s.lead(ctx, sweepLock, func(ctx context.Context) error {
		var group errgroup.Group
		for _, part := range []func(context.Context) error{
			s.sweepMoney, s.sweepCallbacks, s.sweepMessages, s.Reserve.ReportStuck, s.Partner.Sweep, s.purge,
		} {
			group.Go(func() error { return part(ctx) })
		}
		return group.Wait()
	})
}

func (s *Service) sweepMoney(ctx context.Context) error {
	ids, err := postgres.Unsettled(ctx, s.DB.Pool, s.DB.Now(), sweepLimit)
	return errors.Join(err, eachOf(ids, func(id booking.ReservationID) error { return s.settle(ctx, id) }))
}

func (s *Service) sweepCallbacks(ctx context.Context) error {
	last, err := postgres.UnappliedOrders(ctx, s.DB.Pool, sweepLimit)
	return errors.Join(err, eachOf(slices.Collect(maps.Keys(last)), func(order string) error {
		return settled(s.Reserve.SettleCallbacks(ctx, order, last[order]))
	}))
}

func (s *Service) sweepMessages(ctx context.Context) error {
	ids, err := postgres.DueMessages(ctx, s.DB.Pool, s.DB.Now(), sweepLimit)
	return errors.Join(err,
		postgres.GiveUpMessages(ctx, s.DB.Pool, s.DB.Now()),
		eachOf(ids, func(id int64) error { return s.send(ctx, id) }))
}

// eachOf does the same to all of a list, several at a time, and returns what went wrong.
func eachOf[T any](list []T, do func(T) error) error {
	var (
		group errgroup.Group
		errs  = make([]error, len(list))
	)
	group.SetLimit(sweepWorkers)
	for i, item := range list {
		group.Go(func() error {
			errs[i] = do(item)
			return nil
		})
	}
	return errors.Join(group.Wait(), errors.Join(errs...))
}

// webhookLife is how long callbacks are kept that were acted on. The provider repeats one for less than four days.
const webhookLife = 30 * 24 * time.Hour

// purge removes what has only been of use for a time.
func (s *Service) purge(ctx context.Context) error {
	now := s.DB.Now()
	return errors.Join(
		postgres.PurgeSessions(ctx, s.DB.Pool, now),
		postgres.PurgeLoginCodes(ctx, s.DB.Pool, now),
		postgres.PurgeRateLimits(ctx, s.DB.Pool, now.Add(-24*time.Hour)),
		postgres.ExpireHoldsEverywhere(ctx, s.DB.Pool, now.Add(-time.Minute)),
		postgres.PurgeCallbacks(ctx, s.DB.Pool, now.Add(-webhookLife)),
	)
}

// reconcile compares the provider's books with ours.
func (s *Service) reconcile(ctx context.Context) {
	s.lead(ctx, reconcileLock, func(ctx context.Context) error {
		_, err := s.Reserve.Reconcile(ctx)
		return err
	})
}

// feedTick is how often it is looked whether a partner's calendar is due to be read.
const feedTick = 30 * time.Second

// importFeeds reads the calendars of partners.
func (s *Service) importFeeds(ctx context.Context) { s.lead(ctx, feedLock, s.Partner.ImportFeeds) }
