package reserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// startRefund writes down the intent to give money back, or to close an account, and kills the key. The slot stays
// taken until the provider says that the money is out.
func (s *Service) startRefund(ctx context.Context, tx pgx.Tx, r booking.Reservation, c cancellation, now time.Time) error {
	refund := money.Refund{
		Reservation: r.ID, Reason: c.reason, Amount: r.Amount, By: c.by, RevokedKey: r.DoorlockKey,
		IdempotencyKey: newCancelKey(r.ID),
	}
	// A deposit that has not arrived needs no account to go back to; the provider refuses one.
	if c.account != nil && r.State == booking.Done && r.Method == booking.VirtualAccount {
		var err error
		if refund.Account, err = s.sealAccount(c.account); err != nil {
			return err
		}
	}
	if _, err := postgres.OpenRefund(ctx, tx, refund); err != nil {
		return err
	}
	return errors.Join(
		postgres.MarkCanceling(ctx, tx, r.ID),
		postgres.ScheduleCheck(ctx, tx, r.ID, now.Add(watchdogDelay)),
		s.Queue.Settle(ctx, tx, r.ID, now.Add(watchdogDelay)),
		postgres.AppendLedger(ctx, tx, money.LedgerEntry{
			Reservation: r.ID, OrderID: r.OrderID, Kind: "cancel.requested", Amount: r.Amount, Detail: map[string]any{"by": c.by},
		}),
	)
}

// startLateRefund has money sent back that came for a reservation that is over. Without the payer's account the
// provider cannot send a deposit back: then the refund waits, failed and visible, for a person to enter one.
func (s *Service) startLateRefund(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	id, err := postgres.OpenRefund(ctx, tx, money.Refund{
		Reservation: r.ID, Reason: "취소된 예약에 입금", Amount: p.BalanceAmount, By: rule.ByLate, IdempotencyKey: newCancelKey(r.ID),
	})
	if err != nil {
		return err
	}
	if p.Method == toss.MethodVirtualAccount {
		return s.failRefund(ctx, tx, r, id, "REFUND_ACCOUNT_REQUIRED", "환불 계좌가 필요합니다.")
	}
	return errors.Join(postgres.ScheduleCheck(ctx, tx, r.ID, now), s.Queue.Settle(ctx, tx, r.ID, now))
}

// failRefund leaves a refund to a person, and has guest and head quarters know.
func (s *Service) failRefund(ctx context.Context, tx pgx.Tx, r booking.Reservation, id int64, code, message string) error {
	return errors.Join(
		postgres.AdvanceRefund(ctx, tx, id, money.RefundFailed, code, message),
		s.report(ctx, tx, r.OrderID, "refund", code+": "+message),
		s.notifyGuest(ctx, tx, r, notify.RefundFailed, nil),
	)
}

// newCancelKey names one attempt to cancel: the provider executes a key once.
func newCancelKey(id booking.ReservationID) string {
	return fmt.Sprintf("cancel-%d-%s", id, uuid.NewString())
}

func (s *Service) sealAccount(account *toss.RefundAccount) ([]byte, error) {
	if _, ok := booking.BankByCode(account.Bank); !ok {
		return nil, ErrUnknownBank
	}
	plain, err := json.Marshal(account)
	if err != nil {
		return nil, err
	}
	return s.Keys.Seal(accountPurpose, plain), nil
}

func (s *Service) openAccount(sealed []byte) (*toss.RefundAccount, error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	plain, err := s.Keys.Open(accountPurpose, sealed)
	if err != nil {
		return nil, err
	}
	account := new(toss.RefundAccount)
	return account, json.Unmarshal(plain, account)
}

// overdue closes an account whose deposit did not come in time. The account is closed at the provider first; only
// then is the slot free, and if the money has come after all the reservation stands.
func (s *Service) overdue(ctx context.Context, q question) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, q.reservation.ID)
		if err != nil {
			return err
		}
		if r.State != booking.WaitingForDeposit || now.Before(r.ExpiresAt) {
			return nil
		}
		return s.startRefund(ctx, tx, r, cancellation{by: rule.ByOverdue, reason: "입금 기한 초과"}, now)
	})
	if err != nil {
		return err
	}
	failpoint.Hit("cancel.begun")
	return errOvertaken // and on with the refund
}

// sendRefund has the provider send the money back, once, and brings the reservation in line with what it says.
func (s *Service) sendRefund(ctx context.Context, q question, f money.Refund) error {
	request := toss.CancelRequest{Reason: f.Reason}
	var err error
	if request.RefundAccount, err = s.openAccount(f.Account); err != nil {
		return err
	}
	payment, err := s.Payments.Cancel(ctx, q.keys(), f.IdempotencyKey, q.payment.PaymentKey, request)
	failpoint.Hit("cancel.answered")
	if err != nil {
		return s.unclearRefund(ctx, q, f, err)
	}
	err = s.apply(ctx, q, answer{payment: payment})
	failpoint.Hit("cancel.finished")
	return err
}

// unclearRefund looks at the payment after anything but a plain yes: the provider also declines what is done already.
func (s *Service) unclearRefund(ctx context.Context, q question, f money.Refund, cause error) error {
	payment, err := s.Payments.Payment(ctx, q.keys(), q.payment.PaymentKey)
	switch rule.Cancelled(cause, payment, err) {
	case rule.Act:
		return s.apply(ctx, q, answer{payment: payment})
	case rule.AskLater:
		s.Log.WarnContext(ctx, "refund: outcome unknown", "reservation", q.reservation.ID, "error", cause)
		return s.retryRefund(ctx, q, f, cause)
	}
	if toss.ClassOf(cause) == toss.Misconfigured {
		s.Log.ErrorContext(ctx, "refund: the provider does not accept our request", "reservation", q.reservation.ID, "error", cause)
	}
	return s.apply(ctx, q, answer{payment: payment, declined: refusal(cause)})
}

// retryRefund tries again later: with the same key while nobody has answered it, with a new one after an answer, which
// the provider would only replay.
func (s *Service) retryRefund(ctx context.Context, q question, f money.Refund, cause error) error {
	if rule.Answered(cause) {
		if err := postgres.RenewRefundKey(ctx, s.DB.Pool, f.ID, f.IdempotencyKey, newCancelKey(f.Reservation)); err != nil {
			return err
		}
	}
	return s.later(ctx, q)
}

// declined: the provider will not give the money back as asked, and has not. The reservation stands again, with the
// key it had. A deposit that came in while its account was being closed confirms the reservation.
func (s *Service) declined(ctx context.Context, tx pgx.Tx, step rule.Step, r booking.Reservation, f money.Refund, p toss.Payment, why *PaymentRefused, now time.Time) (verdict, err error) {
	verdict = why
	switch step {
	case rule.Fail:
		return why, s.failRefund(ctx, tx, r, f.ID, why.Code, why.Message)
	case rule.Restore:
		err = postgres.RestoreKey(ctx, tx, r.ID, f.RevokedKey)
	case rule.Arrive:
		r.State = booking.WaitingForDeposit
		err = s.confirmed(ctx, tx, r, p, now)
		if verdict = nil; f.By != rule.ByOverdue {
			verdict = ErrAccountRequired // whoever cancels now has to say where the deposit goes
		}
	case rule.Reopen:
		_, err = s.await(ctx, tx, r, p, now.Add(time.Minute), now)
	}
	return verdict, errors.Join(err,
		postgres.AdvanceRefund(ctx, tx, f.ID, money.RefundRefused, why.Code, why.Message),
		postgres.AppendLedger(ctx, tx, money.LedgerEntry{
			Reservation: r.ID, OrderID: r.OrderID, Kind: "cancel.refused", Amount: f.Amount, Code: why.Code,
		}),
	)
}

// refunded: the provider holds nothing any more. The slot is free from here on. A deposit goes back through the bank,
// which takes days and may fail; until then the refund stays open.
func (s *Service) refunded(ctx context.Context, tx pgx.Tx, r booking.Reservation, before money.Payment, f *money.Refund, p toss.Payment, now time.Time) error {
	if f == nil {
		return postgres.ErrNoRefund // a cancellation without a refund is none
	}
	told := s.notifyCanceled(ctx, tx, r)
	if f.By == rule.ByOverdue {
		told = s.notifyGuest(ctx, tx, r, notify.DepositOverdue, nil)
	}
	return errors.Join(told,
		postgres.MarkCanceled(ctx, tx, r.ID, now),
		s.advanceRefund(ctx, tx, r, before, *f, p, now),
		s.ledger(ctx, tx, r, "cancel.done", p),
		s.unblock(ctx, tx, r.ID),
	)
}

// refundPolls are how long to wait before a refund at the bank is asked about again. It takes days.
var refundPolls = []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// advanceRefund follows the bank's part of giving a deposit back.
func (s *Service) advanceRefund(ctx context.Context, tx pgx.Tx, r booking.Reservation, before money.Payment, f money.Refund, p toss.Payment, now time.Time) error {
	status := ""
	if p.VirtualAccount != nil {
		status = p.VirtualAccount.RefundStatus
	}
	switch to := rule.AtBank(status); {
	case to == money.RefundPending && f.State == to:
		return postgres.PostponeCheck(ctx, tx, r.ID, now.Add(pause(refundPolls, before.Checks)))
	case to == money.RefundPending:
		return errors.Join(
			postgres.AdvanceRefund(ctx, tx, f.ID, to, "", ""),
			postgres.ScheduleCheck(ctx, tx, r.ID, now.Add(refundPolls[0])),
		)
	case to == money.RefundFailed && f.State == to:
		return nil
	case to == money.RefundFailed:
		return s.failRefund(ctx, tx, r, f.ID, status, "은행 환불에 실패했습니다.")
	}
	return errors.Join(
		postgres.AdvanceRefund(ctx, tx, f.ID, money.RefundCompleted, "", ""),
		postgres.SettleDiscrepancy(ctx, tx, r.OrderID, "refund", "settled", now), // of an attempt that had failed
	)
}

// RetryRefundRequest has a failed refund sent again.
type RetryRefundRequest struct {
	ID      booking.ReservationID
	Account *toss.RefundAccount                 // corrected; nil: as before
	By      string                              // login id
	Scope   func(branch booking.BranchID) error // nil error: the administrator may act there
	Audit   audit.Entry                         // actor, action and detail
}

// RetryRefund sends a failed refund again, to a corrected account.
//
// Errors: ErrNotFound (no refund of the reservation has failed), Scope's, ErrUnknownBank, *PaymentRefused,
// ErrPaymentPending.
func (s *Service) RetryRefund(ctx context.Context, req RetryRefundRequest) error {
	var sealed []byte
	if req.Account != nil {
		var err error
		if sealed, err = s.sealAccount(req.Account); err != nil {
			return err
		}
	}
	var refund money.Refund
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, req.ID)
		if errors.Is(err, postgres.ErrNoReservation) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		if err := req.Scope(r.Branch); err != nil {
			return err
		}
		if err := s.audit(ctx, tx, req.Audit, r); err != nil {
			return err
		}
		f, err := postgres.CurrentRefund(ctx, tx, req.ID)
		if errors.Is(err, postgres.ErrNoRefund) || err == nil && f.State != money.RefundFailed {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		refund = f
		refund.IdempotencyKey = newCancelKey(req.ID)
		return errors.Join(
			postgres.ReopenRefund(ctx, tx, f.ID, sealed, refund.IdempotencyKey),
			postgres.ScheduleCheck(ctx, tx, req.ID, now.Add(watchdogDelay)),
			s.Queue.Settle(ctx, tx, req.ID, now.Add(watchdogDelay)),
			postgres.AppendLedger(ctx, tx, money.LedgerEntry{
				Reservation: req.ID, OrderID: r.OrderID, Kind: "cancel.retried", Amount: f.Amount, Detail: map[string]any{"by": "admin:" + req.By},
			}),
		)
	})
	if err != nil {
		return err
	}
	return s.runRefund(ctx, refund)
}

// runRefund carries a refund out that has been written down, as one conversation however many ask for it.
func (s *Service) runRefund(ctx context.Context, f money.Refund) error {
	_, err := detached(ctx, s, f.IdempotencyKey, func(ctx context.Context) (struct{}, error) {
		failpoint.Hit("cancel.begun")
		err := s.Settle(ctx, f.Reservation)
		if err == nil {
			err = s.refundOutcome(ctx, f.ID)
		}
		if err != nil {
			err = s.pending(ctx, f.IdempotencyKey, err)
		}
		return struct{}{}, err
	})
	return err
}

// refundOutcome is what the one who asked for a refund is told when there is nothing left to settle: another one, a
// callback for example, may have acted on the provider's no.
func (s *Service) refundOutcome(ctx context.Context, id int64) error {
	f, err := postgres.RefundByID(ctx, s.DB.Pool, id)
	if err != nil || f.State != money.RefundRefused {
		return err
	}
	r, err := postgres.Reservation(ctx, s.DB.Pool, f.Reservation)
	switch {
	case err != nil:
		return err
	case f.RevokedKey == "" && r.State != booking.WaitingForDeposit: // the deposit had come in: see declined
		return ErrAccountRequired
	}
	return &PaymentRefused{Code: f.ErrorCode, Message: f.ErrorMessage}
}
