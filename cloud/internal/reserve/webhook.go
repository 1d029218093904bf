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

// ReceiveCallback checks a callback of the provider and stores it, then asks the provider what is true: the callback
// is a hint, nothing in it changes a state. It returns nil as soon as it is stored: what cannot be applied now is
// applied by the sweep. transmission, which may be empty, tells repetitions.
//
// Errors: ErrUnknownOrder, ErrWrongSecret, ErrPaymentPending (our own record is not that far yet: send it again).
func (s *Service) ReceiveCallback(ctx context.Context, c toss.Event, transmission string) error {
	if c.Kind == toss.OtherEvent {
		s.Log.InfoContext(ctx, "callback of no use to us", "event", c)
		return nil
	}
	r, err := postgres.ReservationByOrder(ctx, s.DB.Pool, c.OrderID)
	if errors.Is(err, postgres.ErrNoReservation) {
		return ErrUnknownOrder
	}
	if err != nil {
		return err
	}
	signed := c.Kind == toss.DepositCallback
	p, err := postgres.PaymentOf(ctx, s.DB.Pool, r.ID)
	if errors.Is(err, postgres.ErrNoPayment) || err == nil && signed && len(p.Secret) == 0 {
		if r.State == booking.Confirming {
			return ErrPaymentPending // it overtook the answer that carries the secret
		}
		return ErrWrongSecret
	}
	if err != nil {
		return err
	}
	if signed {
		secret, err := s.Keys.Open(secretPurpose, p.Secret)
		if err != nil {
			return fmt.Errorf("reserve: secret of reservation %d: %w", r.ID, err)
		}
		if !c.SecretMatches(string(secret)) {
			s.Log.WarnContext(ctx, "callback with a wrong secret", "reservation", r.ID)
			return ErrWrongSecret
		}
	}
	fresh, err := postgres.SaveWebhook(ctx, s.DB.Pool, postgres.Webhook{TransmissionID: transmission, OrderID: c.OrderID, Status: c.Status})
	if err != nil || !fresh {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callbackPatience)
	defer cancel()
	if err := s.Settle(ctx, r.ID); err != nil {
		s.Log.WarnContext(ctx, "callback stored, to be applied later", "reservation", r.ID, "error", err)
	}
	return nil
}

// callbackPatience is below the 10 seconds the provider waits for an answer.
const callbackPatience = 5 * time.Second
