package reserve

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Callback is what the provider's webhook says. It is a hint that something happened: nothing in it changes a state.
type Callback struct {
	TransmissionID string
	OrderID        string
	Status         string
	Secret         string // of a deposit callback; the enveloped kind carries none
	Signed         bool   // the callback is of the kind that carries a secret
}

// ReceiveCallback checks a callback and stores it, then asks the provider what is true. It returns nil as soon as it
// is stored: what cannot be applied now is applied by the sweep.
//
// Errors: ErrUnknownOrder, ErrWrongSecret, ErrPaymentPending (our own record is not that far yet: send it again).
func (s *Service) ReceiveCallback(ctx context.Context, c Callback) error {
	r, err := postgres.ReservationByOrder(ctx, s.DB.Pool, c.OrderID)
	if errors.Is(err, postgres.ErrNoReservation) {
		return ErrUnknownOrder
	}
	if err != nil {
		return err
	}
	p, err := postgres.PaymentOf(ctx, s.DB.Pool, r.ID)
	if errors.Is(err, postgres.ErrNoPayment) || err == nil && c.Signed && len(p.Secret) == 0 {
		if r.State == booking.Confirming {
			return ErrPaymentPending // it overtook the answer that carries the secret
		}
		return ErrWrongSecret
	}
	if err != nil {
		return err
	}
	if c.Signed {
		secret, err := s.Keys.Open(secretPurpose, p.Secret)
		if err != nil {
			return fmt.Errorf("reserve: secret of reservation %d: %w", r.ID, err)
		}
		if subtle.ConstantTimeCompare(secret, []byte(c.Secret)) != 1 {
			s.Log.WarnContext(ctx, "callback with a wrong secret", "reservation", r.ID)
			return ErrWrongSecret
		}
	}
	fresh, err := postgres.SaveWebhook(ctx, s.DB.Pool, postgres.Webhook{TransmissionID: c.TransmissionID, OrderID: c.OrderID, Status: c.Status})
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
