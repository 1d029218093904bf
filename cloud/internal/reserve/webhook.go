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
// applied by the sweep. transmission is the provider's id of the delivery, which tells repetitions; empty: this is told
// by what the callback says.
//
// Errors: ErrUnknownOrder, ErrWrongSecret, ErrPaymentPending (our own record is not that far yet: send it again).
func (s *Service) ReceiveCallback(ctx context.Context, c toss.Event, transmission string) error {
	if transmission == "" {
		transmission = c.Fingerprint()
	}
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
	id, err := postgres.SaveWebhook(ctx, s.DB.Pool, postgres.Webhook{TransmissionID: transmission, OrderID: c.OrderID, Status: c.Status})
	if err != nil || id == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callbackPatience)
	defer cancel()
	if err := s.settleCallback(ctx, r.ID, id); err != nil {
		s.Log.WarnContext(ctx, "callback stored, to be applied later", "reservation", r.ID, "error", err)
	}
	return nil
}

// callbackPatience is below the 10 seconds the provider waits for an answer.
const callbackPatience = 5 * time.Second

// settleCallback asks what is true. Callbacks about one order that come together share the question; if it had been
// asked before this one was stored, it is asked again.
func (s *Service) settleCallback(ctx context.Context, id booking.ReservationID, callback int64) error {
	for range 2 {
		_, err, _ := s.talks.Do(fmt.Sprintf("callback %d", id), func() (any, error) { return nil, s.Settle(ctx, id) })
		if err != nil {
			return err
		}
		if applied, err := postgres.WebhookApplied(ctx, s.DB.Pool, callback); err != nil || applied {
			return err
		}
	}
	return ErrPaymentPending
}

// SettleCallbacks acts on the callbacks of an order up to last that nobody has acted on yet.
func (s *Service) SettleCallbacks(ctx context.Context, orderID string, last int64) error {
	ctx, cancel := context.WithTimeout(ctx, backgroundLimit)
	defer cancel()
	r, err := postgres.ReservationByOrder(ctx, s.DB.Pool, orderID)
	if err == nil {
		err = s.Settle(ctx, r.ID)
	}
	if errors.Is(err, postgres.ErrNoReservation) {
		// The purchase was registered anew and its earlier order is dead.
		return postgres.MarkWebhooksApplied(ctx, s.DB.Pool, orderID, last, s.now())
	}
	return err
}
