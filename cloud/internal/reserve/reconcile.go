package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// reconcileSpan covers the longest time after which the provider still sends a callback, 3 days and 19 hours.
const reconcileSpan = 7 * 24 * time.Hour

// settling is how long a difference may last: until then it is work under way.
const settling = 10 * time.Minute

// Reconcile compares the provider's books of the last days with ours, in both directions. What it can settle it
// settles; what is left is listed for the head quarters.
func (s *Service) Reconcile(ctx context.Context) error {
	now := s.now()
	theirs := map[string]int{} // order id -> won the provider holds
	for _, keys := range []toss.KeySet{toss.Widget, toss.API} {
		transactions, err := s.Payments.Transactions(ctx, keys, now.Add(-reconcileSpan), now)
		if err != nil {
			return fmt.Errorf("reserve: reconcile: %w", err)
		}
		for _, t := range transactions {
			if now.Sub(t.At) > settling {
				theirs[t.OrderID] += moved(t)
			} else {
				delete(theirs, t.OrderID)
				theirs[t.OrderID] = underWay
			}
		}
	}
	ours, err := postgres.Holdings(ctx, s.DB.Pool, now.Add(-reconcileSpan), now.Add(-settling))
	if err != nil {
		return err
	}
	for order, won := range theirs {
		if won < 0 || won == ours[order].Won {
			continue
		}
		err = errors.Join(err, s.difference(ctx, order, ours[order].Reservation, fmt.Sprintf("%d won at the provider, %d here", won, ours[order].Won)))
	}
	for order, held := range ours {
		if _, known := theirs[order]; !known && held.Won > 0 {
			err = errors.Join(err, s.difference(ctx, order, held.Reservation, fmt.Sprintf("unknown at the provider, %d won here", held.Won)))
		}
	}
	return err
}

// underWay marks an order whose money moved too short a time ago to be judged.
const underWay = -1 << 40

func moved(t toss.Transaction) int {
	switch t.Status {
	case toss.StatusDone, toss.StatusCanceled, toss.StatusPartialCanceled:
		return t.Amount
	}
	return 0
}

// difference settles what differs if the provider's answer can, and lists it otherwise.
func (s *Service) difference(ctx context.Context, order string, id booking.ReservationID, detail string) error {
	if id != 0 {
		if err := s.Settle(ctx, id); err != nil {
			s.Log.WarnContext(ctx, "reconcile: not settled", "order_id", order, "error", err)
		}
	}
	s.Log.ErrorContext(ctx, "reconcile: difference", "order_id", order, "detail", detail)
	return postgres.ReportDifference(ctx, s.DB.Pool, order, "balance", detail)
}
