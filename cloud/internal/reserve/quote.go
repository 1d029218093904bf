package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Quote is what a customer's cancellation returns at this moment.
type Quote struct {
	Amount      int // won
	Percent     int
	Policy      booking.RefundPolicy
	CancelUntil time.Time
}

// RefundQuote returns what a cancellation by the customer returns now, under the policy that was fixed at the payment.
//
// Errors: ErrNotFound, ErrNotPayer, account.ErrBranchForbidden, booking.ErrTooLateToCancel.
func (s *Service) RefundQuote(ctx context.Context, id booking.ReservationID, by account.Principal) (quote Quote, err error) {
	err = s.locked(ctx, id, func(c *change) error {
		r := c.r()
		if by.Administrator() {
			if _, err := c.reachable(by); err != nil {
				return err
			}
		} else if !r.BelongsTo(by.LoginType, by.LoginID) {
			return ErrNotPayer
		}
		if r.Method == "" || r.State != booking.Done && r.State != booking.WaitingForDeposit {
			return ErrNotFound
		}
		if err := r.CanCancel(c.now); err != nil {
			return err
		}
		if c.Payment, err = postgres.PaymentOf(c.ctx, c.tx, id); err != nil && !errors.Is(err, postgres.ErrNoPayment) {
			return err
		}
		policy, err := postgres.RefundPolicyOf(c.ctx, c.tx, id)
		if err != nil {
			return err
		}
		quote = Quote{Percent: policy.Percent(r.Start, c.now), Policy: policy.OrDefault(), CancelUntil: r.RefundDeadline()}
		if !r.PaidAt.IsZero() {
			quote.Amount = policy.Refund(c.left(), r.Start, c.now)
		}
		return nil
	})
	return quote, err
}
