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
// another card. It is never more than a hold's whole life.
const keepAfterRefusal = 2 * time.Minute

// purpose names what sealed values of this package are for.
const (
	secretPurpose  = "callback-secret"
	accountPurpose = "refund-account"
)

// answer is what the provider says about a payment: it knows one, refuses it for good, or refuses to give back what
// it still holds.
type answer struct {
	payment  toss.Payment
	refused  *PaymentRefused // a charge; payment is empty
	declined *PaymentRefused // a refund; payment is what the provider still holds
}

// transition is the table of states against answers. The verdict is what the one who asked is told.
func (s *Service) transition(ctx context.Context, tx pgx.Tx, r booking.Reservation, before postgres.Payment, a answer, now time.Time) (verdict, err error) {
	if a.refused != nil {
		return s.refused(ctx, tx, r, a.refused, now)
	}
	p := a.payment
	if r.State != booking.Canceling && !ours(r, before, p) {
		return s.foreign(ctx, tx, r, p, now)
	}
	if err := s.saveProviderState(ctx, tx, r, p, now); err != nil {
		return nil, err
	}
	switch {
	case p.FullyCanceled(), p.Status == toss.StatusExpired, p.Status == toss.StatusAborted, accountClosed(p, now):
		return s.over(ctx, tx, r, before, p, now)
	case a.declined != nil:
		return s.declined(ctx, tx, r, p, a.declined, now)
	case p.Status == toss.StatusDone:
		return nil, s.captured(ctx, tx, r, p, now)
	case p.Status == toss.StatusWaitingForDeposit:
		return nil, s.awaited(ctx, tx, r, p, now)
	case unconfirmed(p.Status):
		return ErrPaymentPending, nil
	}
	// A partial cancellation is made by hand at the provider: the money is not settled, a person has to look.
	return nil, s.report(ctx, tx, r.OrderID, "status", "provider says "+p.Status)
}

// ours reports whether a payment is the one we asked for.
func ours(r booking.Reservation, before postgres.Payment, p toss.Payment) bool {
	return p.OrderID == r.OrderID && p.TotalAmount == r.Amount && (before.PaymentKey == "" || before.PaymentKey == p.PaymentKey)
}

// accountClosed: the account still waits by its status, but takes no money any more.
func accountClosed(p toss.Payment, now time.Time) bool {
	v := p.VirtualAccount
	return p.Status == toss.StatusWaitingForDeposit && v != nil && v.Expired && now.After(v.DueDate)
}

// captured: the provider has the money.
func (s *Service) captured(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	switch r.State {
	case booking.Hold, booking.Confirming, booking.WaitingForDeposit:
		return s.confirmed(ctx, tx, r, p, now)
	case booking.Expired:
		// Money moves forward: if the slot is still free it is the customer's.
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return s.confirmed(ctx, tx, r, p, now) })
		if postgres.IsExclusionViolation(err, "reservation_no_overlap") {
			return s.late(ctx, tx, r, p, now)
		}
		return err
	case booking.Released, booking.Canceled:
		return s.late(ctx, tx, r, p, now)
	}
	return nil // it stands, or the refund is under way
}

// confirmed makes the reservation stand: the key is made, the guest told and the partner channels blocked.
func (s *Service) confirmed(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	paidAt := now
	if !p.ApprovedAt.IsZero() {
		paidAt = p.ApprovedAt
	}
	key := uuid.New()
	err := postgres.MarkDone(ctx, tx, r.ID, postgres.Confirmation{Method: booking.Method(p.Method), Key: key, PaidAt: paidAt})
	if err != nil {
		return err
	}
	template, kind := notify.ReservationConfirmed, "confirm.done"
	if r.State == booking.WaitingForDeposit {
		template, kind = notify.DepositConfirmed, "deposit.done"
	}
	r.State, r.DoorlockKey = booking.Done, key.String()
	return errors.Join(s.ledger(ctx, tx, r, kind, p), s.tell(ctx, tx, r, template, nil), s.block(ctx, tx, r.ID))
}

// depositPoll is how often an account is looked at while it waits: a callback may be late by minutes, and the deposit
// is due in ten.
const depositPoll = 30 * time.Second

// awaited: a virtual account waits for its money.
func (s *Service) awaited(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	switch r.State {
	case booking.Hold, booking.Confirming:
		due, err := s.await(ctx, tx, r, p, now.Add(s.DepositDue), now)
		if err != nil {
			return err
		}
		return errors.Join(s.ledger(ctx, tx, r, "account.issued", p), s.tellAccount(ctx, tx, r, p, due), s.block(ctx, tx, r.ID))
	case booking.Done:
		// The bank has taken the deposit back (providers.md 1.2): the key is dead until it comes again.
		if _, err := s.await(ctx, tx, r, p, now.Add(s.DepositDue), now); err != nil {
			return err
		}
		r.DoorlockKey = ""
		return errors.Join(
			s.ledger(ctx, tx, r, "deposit.reversed", p),
			s.tell(ctx, tx, r, notify.DepositReversed, nil),
			s.report(ctx, tx, r.OrderID, "reversal", "the bank has taken the deposit back"),
		)
	case booking.WaitingForDeposit:
		return postgres.PostponeCheck(ctx, tx, r.ID, earlier(now.Add(depositPoll), r.ExpiresAt))
	}
	return nil
}

// await has the reservation wait for its deposit until due, or until the provider closes the account if that is
// earlier, and returns which.
func (s *Service) await(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, due, now time.Time) (time.Time, error) {
	if v := p.VirtualAccount; v != nil && v.DueDate.After(now) {
		due = earlier(due, v.DueDate)
	}
	return due, errors.Join(
		postgres.MarkWaiting(ctx, tx, r.ID, due),
		postgres.SetAccountDue(ctx, tx, r.ID, due),
		postgres.ScheduleCheck(ctx, tx, r.ID, earlier(now.Add(depositPoll), due)),
		s.Queue.Settle(ctx, tx, r.ID, due),
	)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// over: the provider holds no money and will not get any.
func (s *Service) over(ctx context.Context, tx pgx.Tx, r booking.Reservation, before postgres.Payment, p toss.Payment, now time.Time) (verdict, err error) {
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
			s.unblock(ctx, tx, r.ID),
		)
	case booking.Canceling:
		return nil, s.refunded(ctx, tx, r, before, p, now)
	}
	f, err := postgres.CurrentRefund(ctx, tx, r.ID) // still under way at the bank, or of money that came too late
	if errors.Is(err, postgres.ErrNoRefund) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, s.advanceRefund(ctx, tx, r, before, f, p, now)
}

// refused: the provider will not charge. Nothing was taken; the customer keeps the hold and may try again.
func (s *Service) refused(ctx context.Context, tx pgx.Tx, r booking.Reservation, why *PaymentRefused, now time.Time) (verdict, err error) {
	if r.State != booking.Confirming {
		return why, nil
	}
	keep := now
	if r.Source == booking.Customer {
		keep = now.Add(min(keepAfterRefusal, s.HoldTTL))
	}
	return why, errors.Join(
		postgres.CountRefusal(ctx, tx, r.ID),
		postgres.MarkHeld(ctx, tx, r.ID, keep),
		postgres.AppendLedger(ctx, tx, postgres.LedgerEntry{
			Reservation: r.ID, OrderID: r.OrderID, Kind: "confirm.refused", Amount: r.Amount, Code: why.Code,
			Detail: map[string]any{"message": why.Message},
		}),
	)
}

// foreign: the provider's payment is not the one we asked for. What was captured for us goes back; nobody gets a key.
func (s *Service) foreign(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) (verdict, err error) {
	s.Log.ErrorContext(ctx, "the provider's payment is not the order's", "reservation", r.ID, "order_id", r.OrderID,
		"provider_order_id", p.OrderID, "amount", r.Amount, "provider_amount", p.TotalAmount)
	why := &PaymentRefused{Code: "INVALID_REQUEST", Message: "결제 정보가 주문과 일치하지 않습니다."}
	err = s.report(ctx, tx, r.OrderID, "amount", fmt.Sprintf("order %s, %d won at the provider, %d here", p.OrderID, p.TotalAmount, r.Amount))
	switch {
	case err != nil, r.State != booking.Confirming:
		return why, err
	case unconfirmed(p.Status), p.FullyCanceled(), p.Status == toss.StatusAborted, p.Status == toss.StatusExpired:
		return s.refused(ctx, tx, r, why, now)
	}
	return why, s.startRefund(ctx, tx, r, cancellation{by: byAmount, reason: "결제 금액 불일치"}, now)
}

// late: money came for a reservation that is over. Its slot may belong to someone else; the money goes back if the
// provider can send it, and the head quarters is told in any case.
func (s *Service) late(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	if _, err := postgres.CurrentRefund(ctx, tx, r.ID); !errors.Is(err, postgres.ErrNoRefund) {
		return err // it is known, and on its way back
	}
	return errors.Join(
		s.ledger(ctx, tx, r, "deposit.late", p),
		s.report(ctx, tx, r.OrderID, "late-deposit", fmt.Sprintf("%d won arrived after the reservation was %s", p.BalanceAmount, r.State)),
		s.startLateRefund(ctx, tx, r, p, now),
	)
}

// report lists something that a person has to look at, and sounds the alarm the first time.
func (s *Service) report(ctx context.Context, q postgres.Querier, orderID, kind, detail string) error {
	fresh, err := postgres.ReportDifference(ctx, q, orderID, kind, detail)
	if fresh {
		s.Log.ErrorContext(ctx, "money needs a person", "order_id", orderID, "kind", kind, "detail", detail)
	}
	return err
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
