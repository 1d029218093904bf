package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// question is a request to the provider with the snapshot of the reservation from which it was made. Its answer is applied
// only if no other answer was applied since: see apply.
type question struct {
	rule.Snapshot
	callback int64 // the latest stored callback, which the answer covers
	due      bool  // its time had come; others are caused by a callback or a request
}

func ask(ctx context.Context, q postgres.Querier, id booking.ReservationID) (asked question, err error) {
	r, err := postgres.Reservation(ctx, q, id)
	if err != nil {
		return asked, err
	}
	if asked.Snapshot, err = load(ctx, q, r); err != nil {
		return asked, err
	}
	asked.callback, err = postgres.LastCallback(ctx, q, r.OrderID)
	return asked, err
}

func (q question) keys() toss.KeySet { return toss.KeySet(q.Payment.KeySet) }

func (q question) confirmRequest() toss.ConfirmRequest {
	return toss.ConfirmRequest{PaymentKey: q.Payment.PaymentKey, OrderID: q.Reservation.OrderID, Amount: q.Reservation.Amount}
}

// checkLease is how long a due check belongs to the process that claimed it. backgroundTimeout bounds a check in the
// background, so that a request that hangs does not block the checks of other reservations.
var (
	checkLease        = failpoint.Shorten(45 * time.Second)
	backgroundTimeout = 20 * time.Second
)

// SettleDue settles a reservation in the background. It does nothing unless a check is due and unclaimed.
func (s *Service) SettleDue(ctx context.Context, id booking.ReservationID) error {
	due, err := postgres.ClaimCheck(ctx, s.DB.Pool, id, s.now(), checkLease)
	if err != nil || !due {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	return unlessOvertaken(func() error { return s.settle(ctx, id, true) })
}

// maxOvertaken bounds the repetitions of a request because another answer was applied first.
const maxOvertaken = 5

var errOvertaken = errors.New("reserve: another answer was acted on first")

// unlessOvertaken calls act, and repeats it while another answer was applied first. After maxOvertaken attempts it returns
// ErrPaymentPending.
func unlessOvertaken(act func() error) error {
	for range maxOvertaken {
		if err := act(); !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return ErrPaymentPending
}

// Settle looks up the payment of a reservation at the provider and applies the answer. Unknown outcomes, callbacks, jobs
// and the sweep all call it, possibly concurrently. It returns ErrPaymentPending if the outcome is still unknown.
func (s *Service) Settle(ctx context.Context, id booking.ReservationID) error {
	return unlessOvertaken(func() error { return s.settle(ctx, id, false) })
}

func (s *Service) settle(ctx context.Context, id booking.ReservationID, due bool) error {
	q, err := ask(ctx, s.DB.Pool, id)
	q.due = due
	if errors.Is(err, postgres.ErrNoPayment) {
		return nil // nothing at the provider
	}
	if err != nil {
		return fmt.Errorf("settle reservation %d: %w", id, err)
	}
	switch q.Next(s.now()) {
	case rule.SendRefund:
		return s.sendRefund(ctx, q)
	case rule.CloseAccount:
		return s.overdue(ctx, q)
	}
	payment, err := s.lookUp(ctx, q, "")
	failpoint.Hit("settle.answered")
	switch q.Found(payment, err, s.now()) {
	case rule.Resend:
		return s.resend(ctx, q)
	case rule.Act:
		return s.apply(ctx, q, answer{payment: payment})
	case rule.Refusal:
		return s.apply(ctx, q, answer{refused: refusal(err), unknown: true})
	}
	s.Log.WarnContext(ctx, "settle: the provider's answer is unknown", "order_id", q.Reservation.OrderID, "error", err)
	return s.later(ctx, q)
}

// lookUp reads the payment by the order id, or by its payment key if the order has several payments because the buyer went
// through the widget more than once. If the provider has processed another one, which it returns or lists among its transactions, the
// attempt that confirmed it is lost or was refused before, and its key replaces that of the attempt known here. listed may be empty.
func (s *Service) lookUp(ctx context.Context, q question, listed string) (toss.Payment, error) {
	other, err := s.payment(ctx, q.keys(), q.Reservation.OrderID, listed)
	key := q.Payment.PaymentKey
	if err != nil || other.PaymentKey == key || key == "" && listed == "" {
		return other, err
	}
	if key != "" {
		own, err := s.Payments.Payment(ctx, q.keys(), key)
		if known := err == nil || toss.ClassOf(err) == toss.NotFound; !known || own.Processed() || !other.Processed() {
			return own, err
		}
	}
	return other, postgres.ReplacePaymentKey(ctx, s.DB.Pool, q.Reservation.ID, key, other.PaymentKey)
}

// payment reads the payment that the provider lists for an order, or if listed is empty, the one that it returns by the order id. Which
// of several payments that is, is not documented.
func (s *Service) payment(ctx context.Context, keys toss.KeySet, order, listed string) (toss.Payment, error) {
	if listed == "" {
		return s.Payments.PaymentByOrder(ctx, keys, order)
	}
	return s.Payments.Payment(ctx, keys, listed)
}

// resend repeats a confirmation whose first request may not have reached the provider. It sends nothing while that request
// may still be in progress. The provider charges a payment key at most once, so a new Idempotency-Key cannot charge twice.
func (s *Service) resend(ctx context.Context, q question) error {
	if s.now().Sub(q.Payment.AttemptedAt) < watchdogDelay {
		return s.later(ctx, q)
	}
	payment, err := s.Payments.Confirm(ctx, q.keys(), q.Payment.ConfirmKey, q.confirmRequest())
	switch rule.Resent(err) {
	case rule.Act:
		return s.apply(ctx, q, answer{payment: payment})
	case rule.Refusal:
		return s.apply(ctx, q, answer{refused: refusal(err), unknown: unknownPayment(err)})
	}
	s.reportKeyRejected(ctx, q, err)
	if rule.Answered(err) {
		// The provider replays its error for the old key for 15 days.
		key := newConfirmKey(q.Reservation.OrderID)
		if err := postgres.RenewConfirmKey(ctx, s.DB.Pool, q.Reservation.ID, q.Payment.ConfirmKey, key); err != nil {
			return err
		}
	}
	return s.later(ctx, q)
}

// reportKeyRejected records that the provider rejects the secret key: no payment works until an operator corrects it.
func (s *Service) reportKeyRejected(ctx context.Context, q question, err error) {
	if !toss.KeyRejected(err) {
		return
	}
	if err := s.report(ctx, s.DB.Pool, q.Reservation.OrderID, providerKey, "the provider rejects our secret key: "+err.Error()); err != nil {
		s.Log.ErrorContext(ctx, "the provider rejects our secret key, and the discrepancy was not stored", "error", err)
	}
}

// retryDelays are the delays between look-ups of an unknown outcome.
var retryDelays = []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute}

func delay(delays []time.Duration, checks int) time.Duration {
	return delays[min(checks, len(delays)-1)]
}

// noteTimeout bounds the recording of an unknown outcome after the request itself has timed out.
const noteTimeout = 5 * time.Second

// later records that the outcome is unknown and schedules the next look-up.
func (s *Service) later(ctx context.Context, q question) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	at := s.now().Add(delay(retryDelays, q.Payment.Checks))
	if err := postgres.PostponeCheck(ctx, s.DB.Pool, q.Reservation.ID, at); err != nil {
		return fmt.Errorf("postpone the check of order %s: %w", q.Reservation.OrderID, err)
	}
	return ErrPaymentPending
}

// act applies the answer to a charge or a refund. If another answer was applied first, act looks up the payment.
func (s *Service) act(ctx context.Context, q question, a answer) error {
	err := s.apply(ctx, q, a)
	if errors.Is(err, errOvertaken) {
		return s.Settle(ctx, q.Reservation.ID)
	}
	return err
}

// apply brings the reservation in line with the provider's answer, under the row's lock. If another answer was applied since
// the request was made, this one may be older, so apply returns errOvertaken. Any other error is the verdict for the caller
// or an internal error.
func (s *Service) apply(ctx context.Context, q question, a answer) error {
	var verdict error
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockOrder(ctx, tx, q.Reservation.OrderID)
		if err != nil {
			return err
		}
		c := s.change(ctx, tx, r, now)
		c.due = q.due
		if c.Snapshot, err = load(ctx, tx, r); err != nil {
			return err
		}
		if c.Payment.Answers != q.Payment.Answers {
			verdict = errOvertaken
			return nil
		}
		if verdict, err = c.transition(a); err != nil {
			return err
		}
		if err := c.wakeReceipt(); err != nil {
			return err
		}
		return postgres.MarkCallbacksApplied(ctx, tx, r.OrderID, q.callback, now)
	})
	failpoint.Hit("settle.applied")
	if err != nil {
		return fmt.Errorf("act on the provider's answer about order %s: %w", q.Reservation.OrderID, err)
	}
	return verdict
}
