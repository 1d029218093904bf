package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
)

// errUnclear is returned for a purchase that an administrator may end once the provider was asked again.
var errUnclear = errors.New("reserve: the outcome of the payment has been unknown for too long")

// Unclear reports whether the outcome of a purchase is unknown although the provider accepts no charge of it any more. An
// administrator may end such a purchase.
func Unclear(r booking.Reservation, p money.Payment, now time.Time) bool {
	return r.State == booking.Confirming && !p.AttemptedAt.IsZero() && rule.Snapshot{Payment: p}.SessionOver(now)
}

// unlessUnclear returns errUnclear for a purchase that is unclear, see Unclear.
func (c *change) unlessUnclear() error {
	if _, err := c.charged(); err != nil {
		return err
	}
	if Unclear(c.r(), c.Payment, c.now) {
		return errUnclear
	}
	return nil
}

// endUnclear releases the slot of a purchase whose outcome is unknown. The provider is still asked: a payment that turns out
// to be captured is refunded, and the guest is notified of the outcome in either case.
func (c *change) endUnclear() error {
	r := c.r()
	if err := postgres.AbandonOrder(c.ctx, c.tx, r, c.now); err != nil {
		return err
	}
	if r.Source == booking.Customer {
		if err := postgres.OweOutcome(c.ctx, c.tx, r, c.now); err != nil {
			return err
		}
	}
	if _, err := postgres.SetState(c.ctx, c.tx, r.ID, booking.Confirming, booking.Released); err != nil {
		return err
	}
	if err := postgres.SettleDiscrepancy(c.ctx, c.tx, r.OrderID, stuck, settled, c.now); err != nil {
		return err
	}
	return c.entry("confirm.abandoned", r.Amount, "", nil)
}

// undecided returns ErrPaymentPending if the guest of an ended purchase does not know the outcome, because the provider has
// not returned it: see endUnclear.
func undecided(ctx context.Context, q postgres.Querier, orderID string) error {
	order, err := postgres.OrderOf(ctx, q, orderID)
	if err != nil {
		return fmt.Errorf("outcome of order %s: %w", orderID, err)
	}
	if !order.PendingAt.IsZero() {
		return ErrPaymentPending
	}
	return nil
}
