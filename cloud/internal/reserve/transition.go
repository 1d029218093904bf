package reserve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
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

// transition carries out what an answer means for a reservation. The verdict is what the one who asked is told.
func (s *Service) transition(ctx context.Context, tx pgx.Tx, r booking.Reservation, before money.Payment, a answer, now time.Time) (verdict, err error) {
	f, err := currentRefund(ctx, tx, r.ID)
	if err != nil {
		return nil, err
	}
	p, snapshot := a.payment, rule.Snapshot{Reservation: r, Payment: before, Refund: f}
	step := snapshot.After(rule.Answer{Payment: p, Refused: a.refused != nil, Declined: a.declined != nil}, now)
	if a.refused == nil && step.Kept() {
		if err := s.saveProviderState(ctx, tx, r, p, now); err != nil {
			return nil, err
		}
	}
	switch step {
	case rule.RefusalReported:
		return a.refused, nil
	case rule.Open:
		return ErrPaymentPending, nil
	case rule.Refuse:
		why := cmp.Or(a.refused, unpaid(p))
		return why, s.refused(ctx, tx, r, why, now)
	case rule.Confirm:
		return nil, s.confirmed(ctx, tx, r, p, now)
	case rule.ConfirmIfFree:
		return nil, s.confirmIfFree(ctx, tx, snapshot, p, now)
	case rule.Late:
		return nil, s.late(ctx, tx, r, p, now)
	case rule.Wait:
		return nil, s.issued(ctx, tx, r, p, now)
	case rule.WaitOn:
		return nil, postgres.PostponeCheck(ctx, tx, r.ID, earlier(now.Add(depositPoll), r.ExpiresAt))
	case rule.Reverse:
		return nil, s.reversed(ctx, tx, r, p, now)
	case rule.Drop:
		return nil, s.dropped(ctx, tx, r, p, now)
	case rule.Refunded:
		return nil, s.refunded(ctx, tx, r, before, f, p, now)
	case rule.Follow:
		return nil, s.advanceRefund(ctx, tx, r, before, *f, p, now)
	case rule.Restore, rule.Arrive, rule.Reopen, rule.Fail:
		return s.declined(ctx, tx, step, r, *f, p, a.declined, now)
	case rule.Foreign, rule.ForeignRefuse, rule.ForeignReturn:
		return s.foreign(ctx, tx, step, r, p, now)
	case rule.NeedsReview: // a partial cancellation for instance: the money is not settled
		return nil, s.report(ctx, tx, r.OrderID, "status", "provider says "+p.Status)
	}
	return nil, nil
}

func currentRefund(ctx context.Context, q postgres.Querier, id booking.ReservationID) (*money.Refund, error) {
	f, err := postgres.CurrentRefund(ctx, q, id)
	if errors.Is(err, postgres.ErrNoRefund) {
		return nil, nil
	}
	return &f, err
}

// confirmIfFree confirms a reservation whose hold has run out: money moves forward, and if its slot is still free it is
// the customer's.
func (s *Service) confirmIfFree(ctx context.Context, tx pgx.Tx, snapshot rule.Snapshot, p toss.Payment, now time.Time) error {
	r := snapshot.Reservation
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return s.confirmed(ctx, tx, r, p, now) })
	if !postgres.IsExclusionViolation(err, "reservation_no_overlap") {
		return err
	}
	if snapshot.Late() == rule.Late {
		return s.late(ctx, tx, r, p, now)
	}
	return nil
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
	return errors.Join(s.ledger(ctx, tx, r, kind, p), s.notifyGuest(ctx, tx, r, template, nil), s.block(ctx, tx, r.ID))
}

// depositPoll is how often an account is looked at while it waits: a callback may be late by minutes, and the deposit
// is due in ten.
const depositPoll = 30 * time.Second

// issued: a virtual account waits for its money.
func (s *Service) issued(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	due, err := s.await(ctx, tx, r, p, now.Add(s.DepositDue), now)
	if err != nil {
		return err
	}
	return errors.Join(s.ledger(ctx, tx, r, "account.issued", p), s.notifyAccount(ctx, tx, r, p, due), s.block(ctx, tx, r.ID))
}

// reversed: the bank has taken the deposit back (docs/specification.md, Payment provider 2), and the key is dead until it comes again.
func (s *Service) reversed(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	if _, err := s.await(ctx, tx, r, p, now.Add(s.DepositDue), now); err != nil {
		return err
	}
	r.DoorlockKey = ""
	return errors.Join(
		s.ledger(ctx, tx, r, "deposit.reversed", p),
		s.notifyGuest(ctx, tx, r, notify.DepositReversed, nil),
		s.report(ctx, tx, r.OrderID, "reversal", "the bank has taken the deposit back"),
	)
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

// dropped: the provider holds no money and will not get any, and nobody here has asked for that.
func (s *Service) dropped(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	return errors.Join(
		postgres.MarkCanceled(ctx, tx, r.ID, now),
		s.ledger(ctx, tx, r, "canceled.by-provider", p),
		s.notifyCanceled(ctx, tx, r),
		s.unblock(ctx, tx, r.ID),
	)
}

// unpaid is the refusal that a payment stands for which has ended without money.
func unpaid(p toss.Payment) *PaymentRefused {
	if p.Failure != nil {
		return &PaymentRefused{Code: p.Failure.Code, Message: p.Failure.Message}
	}
	return &PaymentRefused{Code: p.Status, Message: "결제가 완료되지 않았습니다. 다시 시도해 주세요."}
}

// refused: the provider will not charge. Nothing was taken; the customer keeps the hold and may try again.
func (s *Service) refused(ctx context.Context, tx pgx.Tx, r booking.Reservation, why *PaymentRefused, now time.Time) error {
	keep := now
	if r.Source == booking.Customer {
		keep = now.Add(min(keepAfterRefusal, s.HoldTTL))
	}
	return errors.Join(
		postgres.CountRefusal(ctx, tx, r.ID),
		postgres.MarkHeld(ctx, tx, r.ID, keep),
		postgres.AppendLedger(ctx, tx, money.LedgerEntry{
			Reservation: r.ID, OrderID: r.OrderID, Kind: "confirm.refused", Amount: r.Amount, Code: why.Code,
			Detail: map[string]any{"message": why.Message},
		}),
	)
}

// foreign: the provider's payment is not the one we asked for. What was captured for us goes back; nobody gets a key.
func (s *Service) foreign(ctx context.Context, tx pgx.Tx, step rule.Step, r booking.Reservation, p toss.Payment, now time.Time) (verdict, err error) {
	s.Log.ErrorContext(ctx, "the provider's payment is not the order's", "reservation", r.ID, "order_id", r.OrderID,
		"provider_order_id", p.OrderID, "amount", r.Amount, "provider_amount", p.TotalAmount)
	why := &PaymentRefused{Code: "INVALID_REQUEST", Message: "결제 정보가 주문과 일치하지 않습니다."}
	err = s.report(ctx, tx, r.OrderID, "amount", fmt.Sprintf("order %s, %d won at the provider, %d here", p.OrderID, p.TotalAmount, r.Amount))
	switch {
	case err != nil:
	case step == rule.ForeignRefuse:
		err = s.refused(ctx, tx, r, why, now)
	case step == rule.ForeignReturn:
		err = s.startRefund(ctx, tx, r, cancellation{by: rule.ByAmount, reason: "결제 금액 불일치"}, now)
	}
	return why, err
}

// late: money came for a reservation that is over. Its slot may belong to someone else; the money goes back if the
// provider can send it, and the head quarters is told in any case.
func (s *Service) late(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	return errors.Join(
		s.ledger(ctx, tx, r, "deposit.late", p),
		s.report(ctx, tx, r.OrderID, "late-deposit", fmt.Sprintf("%d won arrived after the reservation was %s", p.BalanceAmount, r.State)),
		s.startLateRefund(ctx, tx, r, p, now),
	)
}

// report lists something that a person has to look at, and sounds the alarm the first time.
func (s *Service) report(ctx context.Context, q postgres.Querier, orderID, kind, detail string) error {
	fresh, err := postgres.ReportDiscrepancy(ctx, q, orderID, kind, detail)
	if fresh {
		s.Log.ErrorContext(ctx, "money needs a person", "order_id", orderID, "kind", kind, "detail", detail)
	}
	return err
}

func (s *Service) saveProviderState(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	state := money.ProviderState{
		PaymentKey: p.PaymentKey, Status: p.Status, Total: p.TotalAmount, Balance: p.BalanceAmount,
		ApprovedAt: p.ApprovedAt, ReceiptURL: p.ReceiptURL,
	}
	if p.Secret != "" {
		state.Secret = s.Keys.Seal(secretPurpose, []byte(p.Secret))
	}
	var deposited time.Time
	if v := p.VirtualAccount; v != nil {
		state.Account = money.DepositAccount{Bank: v.Bank, Number: v.Number, Holder: v.CustomerName}
		if p.Status == toss.StatusDone || p.Status == toss.StatusCanceled && !p.ApprovedAt.IsZero() {
			deposited = now
		}
	}
	return postgres.SaveProviderState(ctx, tx, r.ID, state, deposited, now)
}

func (s *Service) ledger(ctx context.Context, tx pgx.Tx, r booking.Reservation, kind string, p toss.Payment) error {
	return postgres.AppendLedger(ctx, tx, money.LedgerEntry{
		Reservation: r.ID, OrderID: r.OrderID, Kind: kind, Amount: p.TotalAmount, Code: p.Status,
		Detail: map[string]any{"method": p.Method, "balance": p.BalanceAmount},
	})
}
