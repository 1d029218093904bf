package reserve

import (
	"context"
	"encoding/json"
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

// startRefund writes down the intent to give money back, or to close an account, and kills the key. The slot stays
// taken until the provider says that the money is out.
func (s *Service) startRefund(ctx context.Context, tx pgx.Tx, r booking.Reservation, c cancellation, now time.Time) error {
	refund := postgres.Refund{
		Reservation: r.ID, Reason: c.reason, Amount: r.Amount, By: c.by, RevokedKey: r.DoorlockKey,
		IdempotencyKey: newCancelKey(r.ID),
	}
	// A deposit that has not arrived needs no account to go back to; the provider refuses one.
	if c.account != nil && r.State == booking.Done && r.Method == booking.VirtualAccount {
		account, err := json.Marshal(c.account)
		if err != nil {
			return err
		}
		refund.Account = s.Keys.Seal(accountPurpose, account)
	}
	if _, err := postgres.OpenRefund(ctx, tx, refund, now.Add(watchdogDelay)); err != nil {
		return err
	}
	return errors.Join(
		postgres.MarkCanceling(ctx, tx, r.ID),
		s.Queue.Settle(ctx, tx, r.ID, now.Add(watchdogDelay)),
		postgres.AppendLedger(ctx, tx, postgres.LedgerEntry{
			Reservation: r.ID, OrderID: r.OrderID, Kind: "cancel.requested", Amount: r.Amount, Detail: map[string]any{"by": c.by},
		}),
	)
}

// startLateRefund has money sent back that came for a reservation that is over. Without the payer's account the
// provider cannot send a deposit back: then the refund waits, failed and visible, for a person to enter one.
func (s *Service) startLateRefund(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment) error {
	if _, err := postgres.CurrentRefund(ctx, tx, r.ID); !errors.Is(err, postgres.ErrNoRefund) {
		return err // one is open already
	}
	id, err := postgres.OpenRefund(ctx, tx, postgres.Refund{
		Reservation: r.ID, Reason: "취소된 예약에 입금", Amount: p.BalanceAmount, By: "system:late", IdempotencyKey: newCancelKey(r.ID),
	}, s.now())
	if err != nil {
		return err
	}
	if p.Method == toss.MethodVirtualAccount {
		return errors.Join(
			postgres.AdvanceRefund(ctx, tx, id, postgres.RefundFailed, "REFUND_ACCOUNT_REQUIRED", "환불 계좌가 필요합니다.", s.now()),
			s.tell(ctx, tx, r, notify.RefundFailed, nil),
		)
	}
	return s.Queue.Settle(ctx, tx, r.ID, s.now())
}

func newCancelKey(id booking.ReservationID) string {
	return fmt.Sprintf("cancel-%d-%s", id, uuid.NewString())
}

// overdue closes an account whose deposit did not come in time. The account is closed at the provider first; only
// then is the slot free, and if the money has come after all the reservation stands.
func (s *Service) overdue(ctx context.Context, r booking.Reservation) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		locked, err := postgres.LockReservation(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		if locked.State != booking.WaitingForDeposit || now.Before(locked.ExpiresAt) {
			return nil
		}
		return s.startRefund(ctx, tx, locked, cancellation{by: "system:overdue", reason: "입금 기한 초과"}, now)
	})
	if err != nil {
		return err
	}
	f, err := postgres.CurrentRefund(ctx, s.DB.Pool, r.ID)
	if errors.Is(err, postgres.ErrNoRefund) {
		return nil // settled in between
	}
	if err != nil {
		return err
	}
	return s.settleRefund(ctx, r, f)
}

// settleRefund has the provider send the money back, once, and brings the reservation in line with what it says.
func (s *Service) settleRefund(ctx context.Context, r booking.Reservation, f postgres.Refund) error {
	p, err := postgres.PaymentOf(ctx, s.DB.Pool, r.ID)
	if err != nil {
		return err
	}
	if f.State == postgres.RefundPending {
		return s.refundStatus(ctx, r, p)
	}
	request := toss.CancelRequest{Reason: f.Reason}
	if len(f.Account) > 0 {
		plain, err := s.Keys.Open(accountPurpose, f.Account)
		if err != nil {
			return err
		}
		request.RefundAccount = new(toss.RefundAccount)
		if err := json.Unmarshal(plain, request.RefundAccount); err != nil {
			return err
		}
	}
	asked := s.now()
	payment, err := s.Payments.Cancel(ctx, toss.KeySet(p.KeySet), f.IdempotencyKey, p.PaymentKey, request)
	if err == nil {
		return s.apply(ctx, r.ID, answer{payment: payment, asked: asked})
	}
	return s.unclearRefund(ctx, r, p, f, err)
}

// unclearRefund looks at the payment after anything but a plain yes: the provider also declines what is done already.
func (s *Service) unclearRefund(ctx context.Context, r booking.Reservation, p postgres.Payment, f postgres.Refund, cause error) error {
	asked := s.now()
	payment, err := s.Payments.PaymentByOrder(ctx, toss.KeySet(p.KeySet), r.OrderID)
	if err != nil {
		s.Log.WarnContext(ctx, "refund: outcome unknown", "reservation", r.ID, "error", cause)
		return s.retryRefund(ctx, f, cause)
	}
	if payment.FullyCanceled() || payment.Status == toss.StatusExpired || payment.Status == toss.StatusAborted {
		return s.apply(ctx, r.ID, answer{payment: payment, asked: asked})
	}
	switch toss.ClassOf(cause) {
	case toss.Unknown, toss.RetryLater, toss.AlreadyCanceled:
		return s.retryRefund(ctx, f, cause)
	case toss.Misconfigured:
		s.Log.ErrorContext(ctx, "refund: the provider does not accept our request", "reservation", r.ID, "error", cause)
	}
	return s.declined(ctx, r, f, payment, refusal(cause))
}

// retryRefund tries again later: with the same key while nobody has answered it, with a new one after an answer, which
// the provider would only replay.
func (s *Service) retryRefund(ctx context.Context, f postgres.Refund, cause error) error {
	key := f.IdempotencyKey
	var e *toss.Error
	if errors.As(cause, &e) && e.HTTPStatus != 0 && e.HTTPStatus != 409 {
		key = newCancelKey(f.Reservation)
	}
	delay := min(5*time.Second<<min(f.Attempt-1, 8), 10*time.Minute)
	at := s.now().Add(delay)
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return errors.Join(
			postgres.RetryRefund(ctx, tx, f.ID, key, at),
			s.Queue.Settle(ctx, tx, f.Reservation, at),
		)
	})
	return errors.Join(err, ErrPaymentPending)
}

// declined: the provider will not give the money back as asked, and has not. The reservation stands again, with the
// key it had. A deposit that came in while its account was being closed confirms the reservation.
func (s *Service) declined(ctx context.Context, r booking.Reservation, f postgres.Refund, p toss.Payment, why *PaymentRefused) error {
	var verdict error = why
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		locked, err := postgres.LockReservation(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		current, err := postgres.CurrentRefund(ctx, tx, r.ID)
		if errors.Is(err, postgres.ErrNoRefund) || err == nil && (current.ID != f.ID || current.State != postgres.RefundRequested) {
			verdict = nil // someone else has brought it to an end
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.saveProviderState(ctx, tx, locked, p, now); err != nil {
			return err
		}
		switch {
		case locked.State != booking.Canceling, f.RevokedKey == "" && f.By == "system:amount":
			return errors.Join(
				postgres.AdvanceRefund(ctx, tx, f.ID, postgres.RefundFailed, why.Code, why.Message, now),
				s.tell(ctx, tx, locked, notify.RefundFailed, nil),
			)
		case f.RevokedKey != "":
			err = postgres.RestoreKey(ctx, tx, r.ID, f.RevokedKey)
		case p.Status == toss.StatusDone:
			locked.State = booking.WaitingForDeposit
			err = s.confirmed(ctx, tx, locked, p, now)
			if verdict = nil; f.By != "system:overdue" {
				verdict = ErrAccountRequired // whoever cancels now has to say where the deposit goes
			}
		default:
			err = s.await(ctx, tx, locked, p, now.Add(time.Minute)) // the provider keeps the account open: ask again
		}
		return errors.Join(err,
			postgres.AdvanceRefund(ctx, tx, f.ID, postgres.RefundRefused, why.Code, why.Message, now),
			postgres.AppendLedger(ctx, tx, postgres.LedgerEntry{
				Reservation: r.ID, OrderID: r.OrderID, Kind: "cancel.refused", Amount: f.Amount, Code: why.Code,
			}),
		)
	})
	return errors.Join(err, verdict)
}

// refunded: the provider holds nothing any more. The slot is free from here on. A deposit goes back through the bank,
// which takes days and may fail; until then the refund stays open.
func (s *Service) refunded(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, now time.Time) error {
	f, err := postgres.CurrentRefund(ctx, tx, r.ID)
	if err != nil && !errors.Is(err, postgres.ErrNoRefund) {
		return err
	}
	told := s.tellCanceled(ctx, tx, r)
	if f.By == "system:overdue" {
		told = s.tell(ctx, tx, r, notify.DepositOverdue, nil)
	}
	return errors.Join(told,
		postgres.MarkCanceled(ctx, tx, r.ID, now),
		s.advanceRefund(ctx, tx, r, f, p, now),
		s.ledger(ctx, tx, r, "cancel.done", p),
		s.unblock(ctx, tx, r),
	)
}

// advanceRefund follows the bank's part of giving a deposit back.
func (s *Service) advanceRefund(ctx context.Context, tx pgx.Tx, r booking.Reservation, f postgres.Refund, p toss.Payment, now time.Time) error {
	if f.ID == 0 {
		return nil
	}
	status := ""
	if p.VirtualAccount != nil {
		status = p.VirtualAccount.RefundStatus
	}
	switch status {
	case "PENDING":
		at := now.Add(refundPoll)
		return errors.Join(postgres.AdvanceRefund(ctx, tx, f.ID, postgres.RefundPending, "", "", at), s.Queue.Settle(ctx, tx, r.ID, at))
	case "FAILED", "PARTIAL_FAILED":
		s.Log.ErrorContext(ctx, "the bank could not give a deposit back", "reservation", r.ID, "refund", f.ID)
		return errors.Join(
			postgres.AdvanceRefund(ctx, tx, f.ID, postgres.RefundFailed, status, "은행 환불에 실패했습니다.", now),
			s.tell(ctx, tx, r, notify.RefundFailed, nil),
		)
	}
	return postgres.AdvanceRefund(ctx, tx, f.ID, postgres.RefundCompleted, "", "", now)
}

// refundPoll is how often a refund at the bank is asked about.
const refundPoll = time.Minute

// refundStatus asks how far the bank has come with a refund.
func (s *Service) refundStatus(ctx context.Context, r booking.Reservation, p postgres.Payment) error {
	payment, err := s.Payments.PaymentByOrder(ctx, toss.KeySet(p.KeySet), r.OrderID)
	if err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		f, err := postgres.CurrentRefund(ctx, tx, r.ID)
		if errors.Is(err, postgres.ErrNoRefund) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.advanceRefund(ctx, tx, r, f, payment, now)
	})
}

// RetryFailedRefund sends a failed refund again, to a corrected account.
func (s *Service) RetryFailedRefund(ctx context.Context, id booking.ReservationID, account *toss.RefundAccount, by string) error {
	if account != nil {
		if _, ok := booking.BankByCode(account.Bank); !ok {
			return ErrUnknownBank
		}
	}
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, id)
		if errors.Is(err, postgres.ErrNoReservation) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		f, err := postgres.CurrentRefund(ctx, tx, id)
		if errors.Is(err, postgres.ErrNoRefund) || err == nil && f.State != postgres.RefundFailed {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		var sealed []byte
		if account != nil {
			plain, err := json.Marshal(account)
			if err != nil {
				return err
			}
			sealed = s.Keys.Seal(accountPurpose, plain)
		}
		return errors.Join(
			postgres.ReopenRefund(ctx, tx, f.ID, sealed, newCancelKey(id), now),
			s.Queue.Settle(ctx, tx, id, now),
			postgres.AppendLedger(ctx, tx, postgres.LedgerEntry{
				Reservation: id, OrderID: r.OrderID, Kind: "cancel.retried", Amount: f.Amount, Detail: map[string]any{"by": "admin:" + by},
			}),
		)
	})
	if err != nil {
		return err
	}
	return s.Settle(ctx, id)
}
