package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Transmission is one delivery of a callback.
type Transmission struct {
	ID      string // the provider's, which tells repetitions; empty: this is told by what the callback says
	Retried bool   // it was tried before, so what it says may be old
}

// ReceiveCallback checks a callback of the provider and stores it, then asks the provider what is true. Money is only
// believed of the provider's answer; a loss of it also of a prompt callback that carries the secret: see applyCallback.
// It returns nil as soon as the callback is stored: what cannot be applied now is applied by the sweep.
//
// Errors: ErrUnknownOrder, ErrWrongSecret, ErrPaymentPending (our own record is not that far yet: send it again).
func (s *Service) ReceiveCallback(ctx context.Context, c toss.Event, delivery Transmission) error {
	transmission := delivery.ID
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
	id, err := postgres.SaveCallback(ctx, s.DB.Pool, money.Callback{TransmissionID: transmission, OrderID: c.OrderID, Status: c.Status})
	if err != nil || id == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callbackPatience)
	defer cancel()
	if err = s.settleCallback(ctx, r.ID, id); err == nil && signed && !delivery.Retried {
		err = unlessOvertaken(func() error { return s.applyCallback(ctx, r.ID, c.Status) })
	}
	if err != nil {
		s.Log.WarnContext(ctx, "callback stored, to be applied later", "reservation", r.ID, "error", err)
	}
	return nil
}

// applyCallback acts on a callback with the right secret that takes away what the provider's answer leaves: the deposit was
// taken back, or the account is cancelled (docs/specification.md, Payment 13). No door stays open because what the provider answers lags
// behind what it has told. Whatever the provider still holds is found by the next look: a deposit makes the reservation
// stand again, or is late money for a cancelled one.
func (s *Service) applyCallback(ctx context.Context, id booking.ReservationID, status string) error {
	q, err := ask(ctx, s.DB.Pool, id)
	if err != nil {
		return err
	}
	switch (rule.Snapshot{Reservation: q.reservation}).Callback(status) {
	case rule.Nothing:
		return nil
	case rule.Close:
		return s.closeAccount(ctx, q)
	}
	payment, err := s.lookUp(ctx, q)
	if err != nil {
		return err
	}
	s.Log.WarnContext(ctx, "the provider's callback is ahead of its answer", "reservation", id, "callback", status, "answer", payment.Status)
	payment.Status = status
	if err := s.apply(ctx, q, answer{payment: payment}); err != nil || status == toss.StatusWaitingForDeposit {
		return err
	}
	return s.Settle(ctx, id)
}

// closeAccount makes sure that the provider takes no more money for a reservation before its slot is free.
func (s *Service) closeAccount(ctx context.Context, q question) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, q.reservation.ID)
		if err != nil || r.State != booking.WaitingForDeposit {
			return err
		}
		return s.startRefund(ctx, tx, r, cancellation{by: rule.ByCallback, reason: "가상계좌 취소"}, now)
	})
	if err != nil {
		return err
	}
	return s.Settle(ctx, q.reservation.ID)
}

// callbackPatience is below the 10 seconds the provider waits for an answer.
const callbackPatience = 5 * time.Second

// settleCallback asks what is true. Callbacks about one order that come together share the question; if it had been
// asked before this one was stored, it is asked again.
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
		return postgres.MarkCallbacksApplied(ctx, s.DB.Pool, orderID, last, s.now())
	}
	return err
}
