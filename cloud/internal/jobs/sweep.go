package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Keys of the advisory locks that have one replica do the work.
const (
	sweepLock     = 0x79656f6c_0001
	reconcileLock = 0x79656f6c_0002
)

// sweep looks at the rows themselves: reservations whose money is not settled, callbacks that were not acted on,
// messages that nobody sends. What the queue has done meanwhile is not found any more.
func (s *Service) sweep(ctx context.Context) {
	s.lead(ctx, sweepLock, func(ctx context.Context) error {
		return errors.Join(s.sweepMoney(ctx), s.sweepCallbacks(ctx), s.sweepMessages(ctx), s.purge(ctx))
	})
}

func (s *Service) sweepMoney(ctx context.Context) error {
	ids, err := postgres.Unsettled(ctx, s.DB.Pool, s.DB.Now(), sweepLimit)
	for _, id := range ids {
		err = errors.Join(err, s.settle(ctx, id))
	}
	return err
}

func (s *Service) sweepCallbacks(ctx context.Context) error {
	orders, err := postgres.UnappliedOrders(ctx, s.DB.Pool, sweepLimit)
	for _, order := range orders {
		r, findErr := postgres.ReservationByOrder(ctx, s.DB.Pool, order)
		if findErr != nil {
			err = errors.Join(err, findErr)
			continue
		}
		err = errors.Join(err, s.settle(ctx, r.ID))
	}
	return err
}

func (s *Service) sweepMessages(ctx context.Context) error {
	ids, err := postgres.DueMessages(ctx, s.DB.Pool, s.DB.Now(), sweepLimit)
	for _, id := range ids {
		err = errors.Join(err, s.send(ctx, id))
	}
	return err
}

// purge removes what has only been of use for a time.
func (s *Service) purge(ctx context.Context) error {
	now := s.DB.Now()
	return errors.Join(
		postgres.PurgeSessions(ctx, s.DB.Pool, now),
		postgres.PurgeLoginCodes(ctx, s.DB.Pool, now),
		postgres.PurgeRateLimits(ctx, s.DB.Pool, now.Add(-24*time.Hour)),
		postgres.ExpireHoldsEverywhere(ctx, s.DB.Pool, now.Add(-time.Minute)),
	)
}

// reconcile compares the provider's books with ours.
func (s *Service) reconcile(ctx context.Context) {
	s.lead(ctx, reconcileLock, s.Reserve.Reconcile)
}
