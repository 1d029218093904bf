package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// question is what stands here before the provider is asked. Its answer is acted on only if no other answer was in
// between: see apply.
type question struct {
	reservation booking.Reservation
	payment     money.Payment
	callback    int64 // the latest one stored by now: the answer covers it
}

func ask(ctx context.Context, q postgres.Querier, id booking.ReservationID) (asked question, err error) {
	if asked.reservation, err = postgres.Reservation(ctx, q, id); err != nil {
		return asked, err
	}
	if asked.payment, err = postgres.PaymentOf(ctx, q, id); err != nil {
		return asked, err
	}
	asked.callback, err = postgres.LastCallback(ctx, q, asked.reservation.OrderID)
	return asked, err
}

func (q question) keys() toss.KeySet { return toss.KeySet(q.payment.KeySet) }

func (q question) confirmRequest() toss.ConfirmRequest {
	return toss.ConfirmRequest{PaymentKey: q.payment.PaymentKey, OrderID: q.reservation.OrderID, Amount: q.reservation.Amount}
}

// How long a question that is due belongs to the one who found it due, and how long it may take in the background. A
// provider that hangs must not keep the background from other rows.
var (
	checkLease      = failpoint.Shorten(45 * time.Second)
	backgroundLimit = 20 * time.Second
)

// SettleDue is Settle for the background: it does nothing unless it is time to ask, and nobody else does.
func (s *Service) SettleDue(ctx context.Context, id booking.ReservationID) error {
	due, err := postgres.ClaimCheck(ctx, s.DB.Pool, id, s.now(), checkLease)
	if err != nil || !due {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, backgroundLimit)
	defer cancel()
	return s.Settle(ctx, id)
}

// maxOvertaken bounds how often a question is asked again because another one's answer came first.
const maxOvertaken = 5

var errOvertaken = errors.New("reserve: another answer was acted on first")

// unlessOvertaken asks and acts, again when another answer came first. ErrPaymentPending means that it always did.
func unlessOvertaken(act func() error) error {
	for range maxOvertaken {
		if err := act(); !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return ErrPaymentPending
}

// Settle asks the provider about a reservation and acts on the answer: the one way out of every state that waits for
// the provider. It is called after an unclear answer, by callbacks, by the watchdog and by the sweep, in any number
// at once. ErrPaymentPending means that the provider cannot tell yet.
func (s *Service) Settle(ctx context.Context, id booking.ReservationID) error {
	return unlessOvertaken(func() error { return s.settle(ctx, id) })
}

func (s *Service) settle(ctx context.Context, id booking.ReservationID) error {
	q, err := ask(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoPayment) {
		return nil // nothing at the provider
	}
	if err != nil {
		return err
	}
	f, err := currentRefund(ctx, s.DB.Pool, id)
	if err != nil {
		return err
	}
	snapshot := rule.Snapshot{Reservation: q.reservation, Payment: q.payment, Refund: f}
	switch snapshot.Next(s.now()) {
	case rule.SendRefund:
		return s.sendRefund(ctx, q, *f)
	case rule.CloseAccount:
		return s.overdue(ctx, q)
	}
	payment, err := s.lookUp(ctx, q)
	failpoint.Hit("settle.answered")
	switch snapshot.Found(payment, err, s.inFlight(q)) {
	case rule.Resend:
		return s.resend(ctx, q)
	case rule.Act:
		return s.apply(ctx, q, answer{payment: payment})
	case rule.Refusal:
		return s.apply(ctx, q, answer{refused: refusal(err)})
	}
	s.Log.WarnContext(ctx, "settle: the provider cannot tell", "reservation", id, "error", err)
	return s.later(ctx, q)
}

// inFlight reports whether a request of the attempt may still be on its way to the provider, or at work there: then
// "not found" means "not yet".
func (s *Service) inFlight(q question) bool {
	return s.now().Sub(q.payment.AttemptedAt) < providerLimit
}

// lookUp reads the payment by our order id, or by its key if the order has another one too: a buyer may have gone
// through the widget twice.
func (s *Service) lookUp(ctx context.Context, q question) (toss.Payment, error) {
	payment, err := s.Payments.PaymentByOrder(ctx, q.keys(), q.reservation.OrderID)
	if err == nil && q.payment.PaymentKey != "" && payment.PaymentKey != q.payment.PaymentKey {
		return s.Payments.Payment(ctx, q.keys(), q.payment.PaymentKey)
	}
	return payment, err
}

// resend sends the confirmation again that an earlier attempt may or may not have got through. While that attempt's
// conversation may still be running nothing is sent. The provider charges a payment key once, so the key of the
// attempt may change when the provider has answered it.
func (s *Service) resend(ctx context.Context, q question) error {
	if s.now().Sub(q.payment.AttemptedAt) < watchdogDelay {
		return s.later(ctx, q)
	}
	payment, err := s.Payments.Confirm(ctx, q.keys(), q.payment.ConfirmKey, q.confirmRequest())
	switch rule.Resent(err) {
	case rule.Act:
		return s.apply(ctx, q, answer{payment: payment})
	case rule.Refusal:
		return s.apply(ctx, q, answer{refused: refusal(err)})
	}
	if rule.Answered(err) {
		// The provider replays its error for the old key for 15 days.
		key := newConfirmKey(q.reservation.OrderID)
		if err := postgres.RenewConfirmKey(ctx, s.DB.Pool, q.reservation.ID, q.payment.ConfirmKey, key); err != nil {
			return err
		}
	}
	return s.later(ctx, q)
}

// retryPauses are how long to wait before the provider is asked again that could not tell.
var retryPauses = []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute}

func pause(pauses []time.Duration, checks int) time.Duration {
	return pauses[min(checks, len(pauses)-1)]
}

// noteLimit is how long a note about a conversation may take that has run out of time itself.
const noteLimit = 5 * time.Second

// later notes that the provider could not tell, and when to ask again.
func (s *Service) later(ctx context.Context, q question) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
	defer cancel()
	at := s.now().Add(pause(retryPauses, q.payment.Checks))
	return errors.Join(postgres.PostponeCheck(ctx, s.DB.Pool, q.reservation.ID, at), ErrPaymentPending)
}

// act is apply for the answer to a request, not to a question: overtaken, it cannot be asked again but looked up.
func (s *Service) act(ctx context.Context, q question, a answer) error {
	err := s.apply(ctx, q, a)
	if errors.Is(err, errOvertaken) {
		return s.Settle(ctx, q.reservation.ID)
	}
	return err
}

// apply brings a reservation in line with what the provider says. It decides under the row's lock from the state at
// that moment. An answer whose question was asked before another answer was acted on is not acted on (errOvertaken):
// it may be the older one of the two, whichever arrives first. The error is what the one who asked is told.
func (s *Service) apply(ctx context.Context, q question, a answer) error {
	var verdict error
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, q.reservation.ID)
		if err != nil {
			return err
		}
		p, err := postgres.PaymentOf(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		if p.Answers != q.payment.Answers {
			verdict = errOvertaken
			return nil
		}
		verdict, err = s.transition(ctx, tx, r, p, a, now)
		if err != nil {
			return err
		}
		return postgres.MarkCallbacksApplied(ctx, tx, r.OrderID, q.callback, now)
	})
	failpoint.Hit("settle.applied")
	return errors.Join(err, verdict)
}
