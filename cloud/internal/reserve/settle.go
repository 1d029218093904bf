package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// keepAfterRefusal is what is left of a hold, at least, when the provider has refused, so that the customer can try
// another card.
const keepAfterRefusal = 2 * time.Minute

// purpose names what sealed values of this package are for.
const (
	secretPurpose  = "callback-secret"
	accountPurpose = "refund-account"
)

// answer is what the provider says about a payment: it knows one, or refuses it for good.
type answer struct {
	payment toss.Payment
	refused *PaymentRefused
	asked   time.Time // before the question was sent: callbacks received by then are answered with it
}

// Settle asks the provider about a reservation and acts on the answer: the one way out of every state that waits for
// the provider. It is called after an unclear answer, by callbacks, by the watchdog and by the sweep, in any number
// at once. ErrPaymentPending means that the provider cannot tell yet.
func (s *Service) Settle(ctx context.Context, id booking.ReservationID) error {
	r, err := postgres.Reservation(ctx, s.DB.Pool, id)
	if err != nil {
		return err
	}
	switch f, err := postgres.CurrentRefund(ctx, s.DB.Pool, id); {
	case err == nil && f.State != postgres.RefundFailed:
		return s.settleRefund(ctx, r, f)
	case err != nil && !errors.Is(err, postgres.ErrNoRefund):
		return err
	}
	if r.State == booking.WaitingForDeposit && !s.now().Before(r.ExpiresAt) {
		return s.overdue(ctx, r)
	}
	p, err := postgres.PaymentOf(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoPayment) {
		return nil // nothing at the provider
	}
	if err != nil {
		return err
	}
	asked := s.now()
	payment, err := s.Payments.PaymentByOrder(ctx, toss.KeySet(p.KeySet), r.OrderID)
	switch {
	case err == nil && unconfirmed(payment.Status) && r.State == booking.Confirming:
		return s.resend(ctx, r, p)
	case err == nil:
		return s.apply(ctx, id, answer{payment: payment, asked: asked})
	case toss.ClassOf(err) == toss.NotFound:
		return s.apply(ctx, id, answer{refused: refusal(err), asked: asked})
	}
	s.Log.WarnContext(ctx, "settle: the provider cannot be asked", "reservation", id, "error", err)
	return s.later(ctx, p)
}

// unconfirmed reports that the customer has authenticated and the charge has not been made.
func unconfirmed(status string) bool {
	return status == toss.StatusReady || status == toss.StatusInProgress
}

// resend sends the confirmation again that an earlier attempt may or may not have got through. While that attempt's
// conversation may still be running nothing is sent. The provider charges a payment key once, so the key of the
// attempt may change when the provider has answered it.
func (s *Service) resend(ctx context.Context, r booking.Reservation, p postgres.Payment) error {
	if s.now().Sub(p.AttemptedAt) < watchdogDelay {
		return s.later(ctx, p)
	}
	asked := s.now()
	confirm := toss.ConfirmRequest{PaymentKey: p.PaymentKey, OrderID: r.OrderID, Amount: r.Amount}
	payment, err := s.Payments.Confirm(ctx, toss.KeySet(p.KeySet), p.ConfirmKey, confirm)
	if err == nil {
		return s.apply(ctx, r.ID, answer{payment: payment, asked: asked})
	}
	var e *toss.Error
	answered := errors.As(err, &e) && e.HTTPStatus != 0
	switch toss.ClassOf(err) {
	case toss.Unknown, toss.AlreadyProcessed, toss.RetryLater:
		if answered && e.HTTPStatus != 409 {
			// The provider replays its error for the old key for 15 days.
			if err := postgres.RenewConfirmKey(ctx, s.DB.Pool, r.ID, "confirm-"+r.OrderID+"-"+uuid.NewString()); err != nil {
				return err
			}
		}
		return s.later(ctx, p)
	}
	return s.apply(ctx, r.ID, answer{refused: refusal(err), asked: asked})
}

// later notes that the provider could not tell, and when to ask again: 5 s, 15 s, 30 s, 1, 2, 4 minutes.
func (s *Service) later(ctx context.Context, p postgres.Payment) error {
	delays := []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute}
	at := s.now().Add(delays[min(p.Checks, len(delays)-1)])
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.PostponeCheck(ctx, tx, p.Reservation, at); err != nil {
			return err
		}
		return s.Queue.Settle(ctx, tx, p.Reservation, at)
	})
	return errors.Join(err, ErrPaymentPending)
}

// apply brings a reservation in line with what the provider says. It decides under the row's lock from the state at
// that moment, so any number of answers may be applied in any order. The error is what the customer who asked is told.
func (s *Service) apply(ctx context.Context, id booking.ReservationID, a answer) error {
	var verdict error
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, id)
		if err != nil {
			return err
		}
		verdict, err = s.transition(ctx, tx, r, a, now)
		if err != nil {
			return err
		}
		return postgres.MarkWebhooksApplied(ctx, tx, r.OrderID, a.asked, now)
	})
	return errors.Join(err, verdict)
}

// transition is the table of states against answers.
func (s *Service) transition(ctx context.Context, tx pgx.Tx, r booking.Reservation, a answer, now time.Time) (verdict, err error) {
	if a.refused != nil {
		return s.refused(ctx, tx, r, a.refused, now)
	}
	p := a.payment
	if p.OrderID != r.OrderID || p.TotalAmount != r.Amount {
		return s.foreign(ctx, tx, r, p, now)
	}
	if err := s.saveProviderState(ctx, tx, r, p, now); err != nil {
		return nil, err
	}
	switch {
	case p.Status == toss.StatusDone:
		return s.captured(ctx, tx, r, p, now)
	case p.Status == toss.StatusWaitingForDeposit && !accountExpired(p, now):
		return s.awaited(ctx, tx, r, p, now)
	case p.FullyCanceled(), p.Status == toss.StatusExpired, p.Status == toss.StatusAborted, p.Status == toss.StatusWaitingForDeposit:
		return s.over(ctx, tx, r, p, now)
	case unconfirmed(p.Status):
		return ErrPaymentPending, nil
	}
	// A partial cancellation is made by hand at the provider: the money is not settled, a person has to look.
	return nil, postgres.ReportDifference(ctx, tx, r.OrderID, "status", "provider says "+p.Status)
}

func accountExpired(p toss.Payment, now time.Time) bool {
	return p.VirtualAccount != nil && p.VirtualAccount.Expired && now.After(p.VirtualAccount.DueDate)
}

// captured: the provider has the money.
func (s *Service) captured(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) (verdict, err error) {
	switch r.State {
	case booking.Done:
		return nil, nil
	case booking.Confirming, booking.WaitingForDeposit:
		return nil, s.confirmed(ctx, tx, r, p, now)
	case booking.Canceling:
		return nil, nil // the refund is under way
	case booking.Hold:
		return nil, s.confirmed(ctx, tx, r, p, now)
	case booking.Expired, booking.Released, booking.Canceled:
		return nil, s.late(ctx, tx, r, p)
	}
	return nil, fmt.Errorf("reserve: money captured for reservation %d in state %s", r.ID, r.State)
}

// confirmed makes the reservation stand: the key is made, the guest told and the partner channels blocked.
func (s *Service) confirmed(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	method := booking.Method(p.Method)
	deposited := r.State == booking.WaitingForDeposit
	r.DoorlockKey = uuid.NewString()
	paidAt := now
	if !p.ApprovedAt.IsZero() {
		paidAt = p.ApprovedAt
	}
	if err := postgres.MarkDone(ctx, tx, r.ID, postgres.Confirmation{Method: method, Key: uuid.MustParse(r.DoorlockKey), PaidAt: paidAt}); err != nil {
		return err
	}
	template, kind := notify.ReservationConfirmed, "confirm.done"
	if deposited {
		template, kind = notify.DepositConfirmed, "deposit.done"
	}
	return errors.Join(
		s.ledger(ctx, tx, r, kind, p),
		s.tell(ctx, tx, r, template, nil),
		s.block(ctx, tx, r),
	)
}

// awaited: a virtual account waits for its money.
func (s *Service) awaited(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) (verdict, err error) {
	switch r.State {
	case booking.Confirming, booking.Hold:
		due := now.Add(s.DepositDue)
		if err := s.await(ctx, tx, r, p, due); err != nil {
			return nil, err
		}
		return nil, errors.Join(s.ledger(ctx, tx, r, "account.issued", p), s.tellAccount(ctx, tx, r, p, due), s.block(ctx, tx, r))
	case booking.Done:
		// The bank has taken the deposit back (providers.md 1.2): the key is dead until it comes again.
		if err := s.await(ctx, tx, r, p, now.Add(s.DepositDue)); err != nil {
			return nil, err
		}
		s.Log.WarnContext(ctx, "deposit reversed by the bank", "reservation", r.ID)
		return nil, errors.Join(s.ledger(ctx, tx, r, "deposit.reversed", p), s.tell(ctx, tx, r, notify.DepositReversed, nil))
	}
	return nil, nil
}

func (s *Service) await(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, due time.Time) error {
	if v := p.VirtualAccount; v != nil && !v.DueDate.IsZero() && v.DueDate.Before(due) && v.DueDate.After(s.now()) {
		due = v.DueDate
	}
	return errors.Join(
		postgres.MarkWaiting(ctx, tx, r.ID, due),
		postgres.SetAccountDue(ctx, tx, r.ID, due),
		s.Queue.Settle(ctx, tx, r.ID, due),
	)
}

// over: the provider holds no money and will not get any.
func (s *Service) over(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) (verdict, err error) {
	switch r.State {
	case booking.Confirming:
		refused := &PaymentRefused{Code: p.Status, Message: "결제가 완료되지 않았습니다. 다시 시도해 주세요."}
		if p.Failure != nil {
			refused = &PaymentRefused{Code: p.Failure.Code, Message: p.Failure.Message}
		}
		return s.refused(ctx, tx, r, refused, now)
	case booking.WaitingForDeposit, booking.Done:
		return nil, errors.Join(
			postgres.MarkCanceled(ctx, tx, r.ID, now),
			s.ledger(ctx, tx, r, "canceled.by-provider", p),
			s.tellCanceled(ctx, tx, r),
			s.unblock(ctx, tx, r),
		)
	case booking.Canceling:
		return nil, s.refunded(ctx, tx, r, p, now)
	}
	f, err := postgres.CurrentRefund(ctx, tx, r.ID) // of money that came too late
	if errors.Is(err, postgres.ErrNoRefund) {
		return nil, nil
	}
	return nil, errors.Join(err, s.advanceRefund(ctx, tx, r, f, p, now))
}

// refused: the provider will not charge. Nothing was taken; the customer keeps the hold and may try again.
func (s *Service) refused(ctx context.Context, tx pgx.Tx, r booking.Reservation, why *PaymentRefused, now time.Time) (verdict, err error) {
	if r.State != booking.Confirming {
		return why, nil
	}
	if r.Source == booking.Admin {
		// An account that could not be issued: the administrator's hold goes on as it was.
		err = postgres.MarkHeld(ctx, tx, r.ID, now)
	} else {
		err = postgres.MarkHeld(ctx, tx, r.ID, now.Add(keepAfterRefusal))
	}
	return why, errors.Join(err, postgres.AppendLedger(ctx, tx, postgres.LedgerEntry{
		Reservation: r.ID, OrderID: r.OrderID, Kind: "confirm.refused", Amount: r.Amount, Code: why.Code,
	}))
}

// foreign: the provider's order or amount is not ours. What was captured goes back; nobody gets a key.
func (s *Service) foreign(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) (verdict, err error) {
	s.Log.ErrorContext(ctx, "the provider's payment is not the order's", "reservation", r.ID, "order_id", r.OrderID,
		"provider_order_id", p.OrderID, "amount", r.Amount, "provider_amount", p.TotalAmount)
	verdict = &PaymentRefused{Code: "INVALID_REQUEST", Message: "결제 정보가 주문과 일치하지 않습니다."}
	if err := postgres.ReportDifference(ctx, tx, r.OrderID, "amount", fmt.Sprintf("order %s, %d won at the provider", p.OrderID, p.TotalAmount)); err != nil {
		return verdict, err
	}
	if r.State != booking.Confirming || p.OrderID != r.OrderID {
		return verdict, nil
	}
	return verdict, s.startRefund(ctx, tx, r, cancellation{by: "system:amount", reason: "결제 금액 불일치"}, now)
}

// late: money came for a reservation that is over. Its slot may belong to someone else; the money goes back if the
// provider can send it, and the head quarters is told in any case.
func (s *Service) late(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment) error {
	s.Log.ErrorContext(ctx, "money arrived for a reservation that is over", "reservation", r.ID, "state", r.State)
	return errors.Join(
		s.ledger(ctx, tx, r, "deposit.late", p),
		postgres.ReportDifference(ctx, tx, r.OrderID, "late-deposit",
			fmt.Sprintf("%d won arrived after the reservation was %s", p.TotalAmount, r.State)),
		s.startLateRefund(ctx, tx, r, p),
	)
}

func (s *Service) saveProviderState(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	state := postgres.ProviderState{
		PaymentKey: p.PaymentKey, Status: p.Status, Total: p.TotalAmount, Balance: p.BalanceAmount,
		ApprovedAt: p.ApprovedAt, ReceiptURL: p.ReceiptURL,
	}
	if p.Secret != "" {
		state.Secret = s.Keys.Seal(secretPurpose, []byte(p.Secret))
	}
	var deposited time.Time
	if v := p.VirtualAccount; v != nil {
		state.Account = postgres.Account{Bank: v.Bank, Number: v.Number, Holder: v.CustomerName}
		if p.Status == toss.StatusDone || p.Status == toss.StatusCanceled && !p.ApprovedAt.IsZero() {
			deposited = now
		}
	}
	return postgres.SaveProviderState(ctx, tx, r.ID, state, deposited, now)
}

func (s *Service) ledger(ctx context.Context, tx pgx.Tx, r booking.Reservation, kind string, p toss.Payment) error {
	return postgres.AppendLedger(ctx, tx, postgres.LedgerEntry{
		Reservation: r.ID, OrderID: r.OrderID, Kind: kind, Amount: p.TotalAmount, Code: p.Status,
		Detail: map[string]any{"method": p.Method, "balance": p.BalanceAmount},
	})
}
