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
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Transmission is one delivery of a callback.
type Transmission struct {
	ID      string // the provider's id, which repeated deliveries share; empty: the content identifies them
	Retried bool   // the provider has tried to deliver it before, so its content may be outdated
}

// callbackTimeout is below the 10 seconds after which the provider gives up on a delivery.
const callbackTimeout = 5 * time.Second

// ReceiveCallback checks and stores a callback of the provider, then looks the payment up at the provider. Only the result
// of the look-up changes the reservation; see [Service.doubtKey] for a callback that contradicts it. A callback that is
// stored but cannot be applied now is not an error: the sweep applies it later.
//
// Errors: ErrUnknownOrder, ErrWrongSecret, ErrPaymentPending (the secret is not stored yet: the provider has to deliver the
// callback again).
func (s *Service) ReceiveCallback(ctx context.Context, c toss.Event, delivery Transmission) error {
	if c.Kind == toss.OtherEvent {
		s.Log.InfoContext(ctx, "callback ignored", "event", c)
		return nil
	}
	r, err := postgres.ReservationByOrder(ctx, s.DB.Pool, c.OrderID)
	if errors.Is(err, booking.ErrNoReservation) {
		return s.unknownOrder(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("callback about order %s: %w", c.OrderID, err)
	}
	signed := c.Kind == toss.DepositCallback
	if err := s.checkSecret(ctx, c, r, signed); err != nil {
		return err
	}
	transmission := delivery.ID
	if transmission == "" {
		transmission = c.Fingerprint()
	}
	callback := money.Callback{TransmissionID: transmission, OrderID: c.OrderID, Status: c.Status, Unsigned: !signed}
	id, err := postgres.SaveCallback(ctx, s.DB.Pool, callback)
	if err != nil {
		return fmt.Errorf("store callback about order %s: %w", c.OrderID, err)
	}
	if id == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callbackTimeout)
	defer cancel()
	if err := s.applyCallback(ctx, c, r.ID, id, signed && !delivery.Retried); err != nil {
		s.Log.WarnContext(ctx, "callback stored, to be applied later", "order_id", c.OrderID, "error", err)
	}
	return nil
}

// unknownOrder handles a callback for an order that the database does not have. An order of ours was lost when a backup was
// restored: its reservation is rebuilt from the provider's answer. Every other one is rejected.
func (s *Service) unknownOrder(ctx context.Context, c toss.Event) error {
	s.Log.WarnContext(ctx, "callback about an unknown order", "order_id", c.OrderID, "status", c.Status)
	_, err := s.openOrderID(ctx, c.OrderID)
	if errors.Is(err, errForeignOrder) {
		return ErrUnknownOrder
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callbackTimeout)
	defer cancel()
	if err := s.rebuildOrder(ctx, c.OrderID, ""); err != nil {
		s.Log.WarnContext(ctx, "the lost order could not be rebuilt", "order_id", c.OrderID, "error", err)
		return ErrUnknownOrder // the provider repeats the callback
	}
	return nil
}

// checkSecret compares the secret of a signed callback, and checks that the reservation has a payment.
func (s *Service) checkSecret(ctx context.Context, c toss.Event, r booking.Reservation, signed bool) error {
	p, err := postgres.PaymentOf(ctx, s.DB.Pool, r.ID)
	if errors.Is(err, postgres.ErrNoPayment) || err == nil && signed && len(p.Secret) == 0 {
		if r.State == booking.Confirming {
			return ErrPaymentPending // the callback arrived before the response that contains the secret
		}
		return ErrWrongSecret
	}
	if err != nil || !signed {
		return err
	}
	secret, err := s.Keys.Open(secretPurpose, p.Secret)
	if err != nil {
		return fmt.Errorf("callback secret of order %s: %w", r.OrderID, err)
	}
	if !c.SecretMatches(string(secret)) {
		s.Log.WarnContext(ctx, "callback with a wrong secret", "order_id", r.OrderID)
		return ErrWrongSecret
	}
	return nil
}

// lookUpInterval is the minimum interval between look-ups of an order that unsigned callbacks cause.
const lookUpInterval = 2 * time.Second

// applyCallback looks the payment up at the provider. prompt is true if the callback is signed and delivered for the first
// time.
func (s *Service) applyCallback(ctx context.Context, c toss.Event, id booking.ReservationID, callback int64, prompt bool) error {
	if c.Kind != toss.DepositCallback {
		ok, err := postgres.ClaimCallbackLookUp(ctx, s.DB.Pool, id, s.now(), lookUpInterval)
		if err != nil || !ok {
			return err // the sweep applies it
		}
	}
	if err := s.settleCallback(ctx, id, callback); err != nil || !prompt {
		return err
	}
	return s.doubtKey(ctx, id, c)
}

// doubtFor is how long a key is blocked after a callback that contradicts the provider's answer.
const doubtFor = time.Minute

// doubtKey blocks the key of a confirmed reservation if a callback reports that the money was withdrawn but the provider's
// answer does not; for an extension, which has no key of its own, it blocks the time that it adds. Look-ups repeat until
// doubtFor has passed; the reservation follows their results and keeps its slot. A callback that is older than the deposit is
// ignored.
func (s *Service) doubtKey(ctx context.Context, id booking.ReservationID, e toss.Event) error {
	return s.locked(ctx, id, func(c *change) (err error) {
		r := c.r()
		if c.Payment, err = postgres.PaymentOf(c.ctx, c.tx, id); err != nil {
			return err
		}
		old := !e.CreatedAt().IsZero() && !e.CreatedAt().After(r.PaidAt)
		if old || r.KeysBlocked || c.Callback(e.Status) != rule.BlockDoor {
			return nil
		}
		s.Log.WarnContext(ctx, "the provider's callback contradicts its answer: the key is blocked", "order_id", r.OrderID, "callback", e.Status)
		if err := postgres.BlockKeys(c.ctx, c.tx, r.ID, c.now.Add(doubtFor)); err != nil {
			return err
		}
		return c.settleAt(c.now.Add(doubtInterval))
	})
}

// doubtInterval is the interval between look-ups while a key is blocked.
const doubtInterval = 5 * time.Second

// trustKey unblocks a blocked key or extension after doubtFor, if the provider's answer has not changed.
func (c *change) trustKey() error {
	switch {
	case !c.r().KeysBlocked:
		return nil
	case c.now.Before(c.r().BlockedUntil):
		return postgres.PostponeCheck(c.ctx, c.tx, c.r().ID, c.now.Add(doubtInterval))
	}
	if err := postgres.UnblockKeys(c.ctx, c.tx, c.r().ID); err != nil || c.r().Extends == 0 {
		return err
	}
	return c.issuePass() // the block had shortened the pass of the stay
}

// settleCallback looks the payment up at the provider. Concurrent callbacks about one order share a look-up; if the shared
// one began before this callback was stored, it is repeated.
func (s *Service) settleCallback(ctx context.Context, id booking.ReservationID, callback int64) error {
	for range 2 {
		_, err, _ := s.calls.Do(fmt.Sprintf("callback %d", id), func() (any, error) { return nil, s.Settle(ctx, id) })
		if err != nil {
			return err
		}
		if applied, err := postgres.CallbackApplied(ctx, s.DB.Pool, callback); err != nil || applied {
			return err
		}
	}
	return ErrPaymentPending
}

// SettleCallbacks applies the stored callbacks of an order up to the id last.
func (s *Service) SettleCallbacks(ctx context.Context, orderID string, last int64) error {
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	r, err := postgres.ReservationByOrder(ctx, s.DB.Pool, orderID)
	if err == nil {
		err = s.Settle(ctx, r.ID)
	}
	if errors.Is(err, booking.ErrNoReservation) { // an order of an earlier release, which did not store replaced orders
		return postgres.MarkCallbacksApplied(ctx, s.DB.Pool, orderID, last, s.now())
	}
	return err
}
