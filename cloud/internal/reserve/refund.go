package reserve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// startRefund records the intent to refund a payment, or to close an account, and revokes the key. The slot stays occupied
// until the provider confirms the refund. The extensions end only then (see endFollowing), because the provider may decline it.
func (c *change) startRefund(cancel cancellation) error {
	r := c.r()
	refund := money.Refund{
		Reservation: r.ID, Reason: cancel.reason, By: cancel.by, KeyRevoked: r.State == booking.Done, IdempotencyKey: newCancelKey(r.ID),
	}
	switch { // an account without a deposit has nothing to refund
	case cancel.by == rule.ByAmount:
		refund.Amount = r.Amount
	case !r.PaidAt.IsZero():
		refund.Amount = c.Left()
	}
	if cancel.keeps > 0 {
		refund.Amount, refund.Part = refund.Amount-cancel.keeps, true
		if err := postgres.SetRetained(c.ctx, c.tx, r.ID, cancel.keeps); err != nil {
			return err
		}
	}
	// If no deposit has arrived, the provider rejects a refund account.
	if cancel.account != nil && r.State == booking.Done && r.Method == booking.VirtualAccount {
		var err error
		if refund.Account, err = c.sealAccount(cancel.account); err != nil {
			return err
		}
	}
	if cancel.policy {
		refund.PolicyAt = cmp.Or(cancel.asked, c.now)
	}
	if err := c.keepAccount(&refund, cancel.account); err != nil {
		return err
	}
	if _, err := postgres.OpenRefund(c.ctx, c.tx, refund); err != nil {
		return err
	}
	if err := postgres.MarkCanceling(c.ctx, c.tx, r.ID); err != nil {
		return err
	}
	at := c.now.Add(watchdogDelay)
	if cancel.soon {
		at = c.now
	}
	if err := c.settleAt(at); err != nil {
		return err
	}
	return c.entry("cancel.requested", refund.Amount, "", map[string]any{"by": cancel.by})
}

// startLateRefund refunds money that arrived for a reservation that has ended, or closes its account. Without the payer's
// account the provider cannot refund a deposit, so that refund is stored as failed and listed until an administrator enters
// an account.
func (c *change) startLateRefund(p toss.Payment, by string, won int) error {
	r := c.r()
	id, err := postgres.OpenRefund(c.ctx, c.tx, money.Refund{
		Reservation: r.ID, Reason: "확정되지 않은 예약의 결제", Amount: won, By: by, IdempotencyKey: newCancelKey(r.ID), Part: won > 0 && won < p.BalanceAmount,
	})
	if err != nil {
		return err
	}
	if won > 0 && p.Method == toss.MethodVirtualAccount {
		return c.failRefund(id, won, accountRequired, "환불 계좌가 필요합니다.")
	}
	if won > 0 {
		if err := c.sendOutcomeAlways(notify.PaymentReturned, won); err != nil {
			return err
		}
	}
	return c.settleAt(c.now)
}

// failRefund marks a refund as failed, lists it for an administrator and notifies the guest.
func (c *change) failRefund(id int64, won int, code, message string) error {
	if err := postgres.AdvanceRefund(c.ctx, c.tx, id, money.RefundFailed, code, message); err != nil {
		return err
	}
	if err := c.report(refundKind, code+": "+message); err != nil {
		return err
	}
	if c.ByDeposit() {
		return c.askAccount(id, won)
	}
	return c.sendOutcomeAlways(notify.RefundFailed, won)
}

// accountRequired is the code of a refund that waits for the guest's account.
const accountRequired = "REFUND_ACCOUNT_REQUIRED"

// newCancelKey returns the idempotency key of one attempt to cancel. The provider executes a key once.
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

// overdue closes an account whose deposit did not arrive in time. The slot becomes free only after the provider has closed
// the account; if the deposit has arrived meanwhile, the reservation is confirmed.
func (s *Service) overdue(ctx context.Context, q question) error {
	err := s.locked(ctx, q.Reservation.ID, func(c *change) error {
		if c.r().State != booking.WaitingForDeposit || c.now.Before(c.r().ExpiresAt) {
			return nil
		}
		return c.startRefund(cancellation{by: rule.ByOverdue, reason: "입금 기한 초과"})
	})
	if err != nil {
		return fmt.Errorf("close the overdue account of order %s: %w", q.Reservation.OrderID, err)
	}
	return errOvertaken // continue with the refund
}

// sendRefund requests the refund from the provider and applies the answer. The idempotency key ensures that the money is
// returned at most once.
func (s *Service) sendRefund(ctx context.Context, q question) error {
	part := q.Refund.Part
	if q.Refund.Taken || part && q.Reservation.Method == booking.VirtualAccount {
		payment, ended, err := s.checkTransfers(ctx, q)
		if ended || err != nil {
			return err
		}
		part = part && !(q.Refund.Taken && payment.BalanceAmount == 0) // then the provider repeats all rejected transfers
	}
	request := toss.CancelRequest{Reason: q.Refund.Reason}
	if q.Payment.Status != toss.StatusWaitingForDeposit { // without a deposit the provider rejects an amount and an account
		if part {
			request.Amount = &q.Refund.Amount
		}
		if q.ByDeposit() { // earlier releases stored an account for other payments, too
			var err error
			if request.RefundAccount, err = s.openAccount(q.Refund.Account); err != nil {
				return fmt.Errorf("refund account of order %s: %w", q.Reservation.OrderID, err)
			}
		}
	}
	failpoint.Hit("cancel.begun")
	payment, err := s.Payments.Cancel(ctx, q.keys(), q.Refund.IdempotencyKey, q.Payment.PaymentKey, request)
	failpoint.Hit("cancel.answered")
	if err != nil {
		return s.unclearRefund(ctx, q, err)
	}
	err = s.apply(ctx, q, answer{payment: payment, returned: true})
	failpoint.Hit("cancel.finished")
	return err
}

// The codes of refunds that are not sent.
const (
	otherTransfer = "OTHER_TRANSFER_OPEN" // the bank works on one that was made at the provider, not by us, or has rejected it
	noDeposit     = "DEPOSIT_REVERSED"    // the bank has taken the deposit back
)

const noDepositMessage = "은행이 입금을 되돌려서 돌려드릴 돈이 없습니다."

// checkTransfers looks a deposit up before a part of it, or a transfer that the bank has rejected, is sent. ended reports that it is
// not to be sent.
func (s *Service) checkTransfers(ctx context.Context, q question) (payment toss.Payment, ended bool, err error) {
	payment, err = s.Payments.Payment(ctx, q.keys(), q.Payment.PaymentKey)
	if err != nil {
		s.Log.WarnContext(ctx, "refund: the state of the transfers is unknown", "order_id", q.Reservation.OrderID, "error", err)
		return payment, true, s.later(ctx, q)
	}
	switch q.Transfers(payment) {
	case rule.Act:
		return payment, true, s.apply(ctx, q, answer{payment: payment, returned: true})
	case rule.AskLater:
		return payment, true, s.later(ctx, q)
	case rule.Declined:
		why := &PaymentRefused{Code: otherTransfer, Message: "결제사에서 따로 보낸 환불이 끝나지 않아 보낼 수 없습니다. 결제사 상점관리자에서 확인해 주세요."}
		if payment.Status == toss.StatusWaitingForDeposit {
			why = &PaymentRefused{Code: noDeposit, Message: noDepositMessage}
		}
		return payment, true, s.apply(ctx, q, answer{payment: payment, declined: why})
	}
	return payment, false, nil
}

// unclearRefund looks up the payment after any reply but success, because the provider also rejects a refund that has
// already been made.
func (s *Service) unclearRefund(ctx context.Context, q question, cause error) error {
	payment, err := s.Payments.Payment(ctx, q.keys(), q.Payment.PaymentKey)
	switch q.Cancelled(cause, payment, err, s.now()) {
	case rule.Act:
		return s.apply(ctx, q, answer{payment: payment})
	case rule.Rephrase:
		if err := s.renewRefundKey(ctx, q, cause); err != nil {
			return err
		}
		if err := s.apply(ctx, q, answer{payment: payment}); err != nil {
			return err
		}
		return errOvertaken // continue with the other request
	case rule.AskLater:
		s.Log.WarnContext(ctx, "refund: asking again later", "order_id", q.Reservation.OrderID, "error", cause)
		s.reportKeyRejected(ctx, q, cause)
		return s.retryRefund(ctx, q, cause)
	}
	if toss.ClassOf(cause) == toss.Misconfigured {
		s.Log.ErrorContext(ctx, "refund: the provider does not accept our request", "order_id", q.Reservation.OrderID, "error", cause)
	}
	return s.apply(ctx, q, answer{payment: payment, declined: refusal(cause)})
}

// retryRefund schedules another attempt.
func (s *Service) retryRefund(ctx context.Context, q question, cause error) error {
	if err := s.renewRefundKey(ctx, q, cause); err != nil {
		return err
	}
	return s.later(ctx, q)
}

// renewRefundKey gives the next attempt a new idempotency key if the provider has answered, because it would replay its
// answer for the old one. A refund of a part gets one only after a rejection, because the key is all that prevents a second
// one.
func (s *Service) renewRefundKey(ctx context.Context, q question, cause error) error {
	if !rule.Answered(cause) || q.Refund.Part && !rule.Rejected(cause) {
		return nil
	}
	err := postgres.RenewRefundKey(ctx, s.DB.Pool, q.Refund.ID, q.Refund.IdempotencyKey, newCancelKey(q.Reservation.ID))
	if err != nil {
		return fmt.Errorf("renew the refund key of order %s: %w", q.Reservation.OrderID, err)
	}
	return nil
}

// declined handles a refund that the provider rejected. The reservation is confirmed again, with its old key. If a deposit
// arrived while its account was being closed, the deposit confirms the reservation, provided the stay can still be used.
func (c *change) declined(step rule.Step, p toss.Payment, why *PaymentRefused) (verdict, err error) {
	f := c.Refund
	switch step {
	case rule.Fail:
		if err := c.restate(p.Held()); err != nil {
			return nil, err
		}
		won := p.BalanceAmount
		if f.Taken {
			won = f.Amount
		}
		if c.r().State == booking.Canceling { // the reservation does not continue
			if err := c.endFollowing(); err != nil {
				return nil, err
			}
		}
		return why, c.failRefund(f.ID, won, why.Code, why.Message)
	case rule.ReturnDeposit:
		return ErrAccountRequired, c.returnDeposit(p, why)
	case rule.Restore:
		if err := postgres.RestoreKeys(c.ctx, c.tx, c.r().ID, f.ID); err != nil {
			return nil, err
		}
		if err := c.issuePass(); err != nil {
			return nil, err
		}
		verdict, err = why, c.report(declinedKind, why.Code+": "+why.Message)
	case rule.Arrive:
		if err = c.confirmed(p); f.By != rule.ByOverdue {
			verdict = ErrAccountRequired // the deposit has arrived, so a cancellation now needs a refund account
		}
	case rule.Reopen:
		verdict = why
		_, err = c.await(p, c.now.Add(time.Minute))
	}
	if err != nil {
		return nil, err
	}
	// The reservation continues, so the refund policy leaves nothing with the shop yet.
	if err := postgres.SetRetained(c.ctx, c.tx, c.r().ID, 0); err != nil {
		return nil, err
	}
	return verdict, c.refundRefused(why)
}

func (c *change) refundRefused(why *PaymentRefused) error {
	if err := postgres.AdvanceRefund(c.ctx, c.tx, c.Refund.ID, money.RefundRefused, why.Code, why.Message); err != nil {
		return err
	}
	return c.entry("cancel.refused", c.Refund.Amount, why.Code, nil)
}

// returnDeposit handles a deposit that arrived while its account was being closed, when the stay can no longer be used. The
// reservation ends, and the refund waits for the guest's account.
func (c *change) returnDeposit(p toss.Payment, why *PaymentRefused) error {
	if err := c.endFollowing(); err != nil {
		return err
	}
	if err := c.refundRefused(why); err != nil {
		return err
	}
	c.Refund = nil
	return c.late(p)
}

// refunded handles a payment of which the provider holds no money: the slot becomes free. A deposit is transferred by the
// bank, which takes days and may fail, so its refund stays open until then.
func (c *change) refunded(p toss.Payment) error {
	if c.Refund == nil {
		return postgres.ErrNoRefund // CANCELING implies a refund
	}
	won := refundedNow(*c.Refund, p)
	if err := postgres.SetRefundAmount(c.ctx, c.tx, c.Refund.ID, won); err != nil {
		return err
	}
	if c.Refund.Part {
		if err := postgres.SetRetained(c.ctx, c.tx, c.r().ID, p.Held()); err != nil {
			return err
		}
	}
	if err := c.ledgerOf("cancel.done", won, p); err != nil {
		return err
	}
	if err := c.advanceRefund(p); err != nil {
		return err
	}
	if c.Refund.By != rule.ByOverdue || c.r().Extends != 0 {
		return c.end(won)
	}
	if err := postgres.MarkCanceled(c.ctx, c.tx, c.r().ID, c.now); err != nil {
		return err
	}
	if err := c.notifyGuest(c.withoutKey(), notify.DepositOverdue, nil); err != nil {
		return err
	}
	if err := c.unblock(); err != nil {
		return err
	}
	return c.endFollowing()
}

// refundedNow returns the won that a refund returned: the provider's last cancellation, or 0 for an account without a
// deposit.
func refundedNow(f money.Refund, p toss.Payment) int {
	switch {
	case p.ApprovedAt.IsZero():
		return 0
	case len(p.Cancels) == 0:
		return f.Amount
	}
	return p.Cancels[len(p.Cancels)-1].Amount
}

func (c *change) ledgerOf(kind string, won int, p toss.Payment) error {
	return c.entry(kind, won, p.Status, map[string]any{"method": p.Method, "balance": p.BalanceAmount})
}

// followed applies the progress of a refund, and adds to it the won that were returned at the provider meanwhile.
func (c *change) followed(p toss.Payment) error {
	if won := c.Joined(p); won > 0 {
		if err := postgres.JoinRefund(c.ctx, c.tx, c.Refund.ID, won); err != nil {
			return err
		}
		c.Refund.Amount += won
	}
	if c.Refund.State == money.RefundRequested {
		if err := c.restate(refundedNow(*c.Refund, p)); err != nil {
			return err
		}
	}
	return c.advanceRefund(p)
}

// restate corrects the amount of a refund of everything: the deposit arrived while its account was to be closed, or the bank
// reversed it before it was returned.
func (c *change) restate(won int) error {
	if f := c.Refund; f.Taken || f.Part && won > 0 || won == f.Amount {
		return nil
	}
	c.Refund.Amount = won
	return postgres.SetRefundAmount(c.ctx, c.tx, c.Refund.ID, won)
}

// refundPolls are the delays between look-ups of a refund that the bank is transferring. The bank takes days.
var refundPolls = []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// refundDays is the legal maximum for a refund in business days.
const refundDays = 3

// advanceRefund applies the state of the bank's transfer to the refund of a deposit.
func (c *change) advanceRefund(p toss.Payment) error {
	f, status := c.Refund, p.RefundStatus()
	to := rule.AtBank(status)
	if to == money.RefundFailed && f.State == to && (f.AtBank() || c.Payment.SettledOutside > 0) {
		return nil // known, or that of a transfer that was returned by hand
	}
	if f.HeldBack() { // the provider's dashboard has returned it, to another account
		if err := postgres.WithdrawApproval(c.ctx, c.tx, f.ID, true); err != nil {
			return err
		}
	}
	switch {
	case to == money.RefundPending && f.State == to && !c.due:
		return nil // the next look-up stays where it is: callbacks would move it away
	case to == money.RefundPending && f.State == to:
		return postgres.PostponeCheck(c.ctx, c.tx, c.r().ID, c.now.Add(delay(refundPolls, c.Payment.Checks)))
	case to == money.RefundPending:
		if err := postgres.AdvanceRefund(c.ctx, c.tx, f.ID, to, "", ""); err != nil {
			return err
		}
		if err := postgres.SetRefundDue(c.ctx, c.tx, f.ID, booking.BusinessDaysAfter(c.now, refundDays)); err != nil {
			return err
		}
		return postgres.ScheduleCheck(c.ctx, c.tx, c.r().ID, c.now.Add(refundPolls[0]))
	case to == money.RefundFailed:
		return c.failRefund(f.ID, f.Amount, status, "은행 환불에 실패했습니다.")
	}
	if err := postgres.AdvanceRefund(c.ctx, c.tx, f.ID, money.RefundCompleted, "", ""); err != nil {
		return err
	}
	if f.State == money.RefundPending && f.Amount > 0 { // a refund that is complete at once is announced by the cancellation
		if err := c.renotifyGuest(c.withoutKey(), notify.RefundCompleted, map[string]string{"amount": notify.Won(f.Amount)}); err != nil {
			return err
		}
	}
	for _, kind := range []string{refundKind, declinedKind, lateDepositKind, refundOverdueKind} { // close the discrepancies of failed attempts
		if err := postgres.SettleDiscrepancy(c.ctx, c.tx, c.r().OrderID, kind, settled, c.now); err != nil {
			return err
		}
	}
	return c.returnRest(p)
}

// RetryRefundRequest is an administrator's request to send a failed refund again.
type RetryRefundRequest struct {
	ID      booking.ReservationID
	Account *toss.RefundAccount // the corrected account; nil: unchanged
	By      account.Principal
}

// RetryRefund sends a failed refund again, to a corrected account.
//
// Errors: ErrNotFound (no refund of the reservation has failed), account.ErrBranchForbidden, ErrUnknownBank,
// *PaymentRefused, ErrPaymentPending.
func (s *Service) RetryRefund(ctx context.Context, req RetryRefundRequest) error {
	var sealed []byte
	if req.Account != nil {
		var err error
		if sealed, err = s.sealAccount(req.Account); err != nil {
			return err
		}
	}
	var (
		refund money.Refund
		waits  bool
	)
	err := s.locked(ctx, req.ID, func(c *change) (err error) {
		refund, waits, err = c.reopenRefund(req, sealed)
		return err
	})
	if err != nil || waits {
		return err
	}
	return s.runRefund(ctx, refund)
}

// failedRefund returns the failed refund of the reservation, or ErrNotFound.
func (c *change) failedRefund(by account.Principal) (f money.Refund, err error) {
	if _, err := c.reachable(by); err != nil {
		return f, err
	}
	c.Snapshot, err = load(c.ctx, c.tx, c.r())
	if errors.Is(err, postgres.ErrNoPayment) {
		return f, ErrNotFound
	}
	if err != nil {
		return f, err
	}
	if c.Refund == nil || c.Refund.State != money.RefundFailed {
		return f, ErrNotFound
	}
	return *c.Refund, nil
}

// reopenRefund requests a failed refund again, under another key. waits: another administrator has to approve the account or the amount.
func (c *change) reopenRefund(req RetryRefundRequest, sealed []byte) (f money.Refund, waits bool, err error) {
	if f, err = c.failedRefund(req.By); err != nil {
		return f, false, err
	}
	if req.Account == nil && f.AccountBy != "" {
		return f, false, ErrSameAdministrator // an account that waits for approval must be approved or replaced
	}
	if !c.ByDeposit() { // the provider accepts an account for nothing else
		req.Account, sealed = nil, nil
	}
	f.IdempotencyKey = newCancelKey(req.ID)
	if err := postgres.ReopenRefund(c.ctx, c.tx, f.ID, sealed, f.IdempotencyKey); err != nil {
		return f, false, err
	}
	if err := c.settleAt(c.now.Add(watchdogDelay)); err != nil {
		return f, false, err
	}
	if err := c.entry("cancel.retried", f.Amount, "", map[string]any{"by": req.By.Actor()}); err != nil {
		return f, false, err
	}
	if waits, err = c.noteAccount(f.ID, req.Account, req.By.Actor()); err != nil {
		return f, waits, err
	}
	// Another account does not replace the approval of an amount.
	if !waits && f.KeepsStay && f.HeldBack() && c.above(c.r().Amount-c.Left()+f.Amount) {
		waits = true
		if err := c.awaitApproval(f.ID, req.By.Actor(), money.AmountApprovalRequired); err != nil {
			return f, waits, err
		}
	}
	return f, waits, c.audited(req.By, "reservation.refund", accountDetail(req.Account, waits))
}

// runRefund sends a recorded refund. Concurrent requests share one call.
func (s *Service) runRefund(ctx context.Context, f money.Refund) error {
	_, err := detached(ctx, s, f.IdempotencyKey, func(ctx context.Context) (struct{}, error) {
		err := s.refundOutcome(ctx, f.ID, s.Settle(ctx, f.Reservation))
		if err != nil {
			err = s.pending(ctx, f.IdempotencyKey, err)
		}
		return struct{}{}, err
	})
	return err
}

// refundOutcome returns the error to report for a refund after an attempt to settle it. A callback, the sweep or another replica
// may have settled it first. The attempt has then looked the payment up again, and its result is about that look-up.
func (s *Service) refundOutcome(ctx context.Context, id int64, settled error) error {
	f, err := postgres.RefundByID(ctx, s.DB.Pool, id)
	switch {
	case err != nil:
		return errors.Join(settled, err)
	case f.State == money.RefundCompleted, f.State == money.RefundPending, f.TransferRejected():
		return nil // the provider has executed it
	case f.State == money.RefundRequested:
		return cmp.Or(settled, ErrPaymentPending)
	case f.State == money.RefundFailed:
		return &PaymentRefused{Code: f.ErrorCode, Message: f.ErrorMessage}
	}
	r, err := postgres.Reservation(ctx, s.DB.Pool, f.Reservation)
	switch {
	case err != nil:
		return err
	case !f.KeepsStay && !f.KeyRevoked && r.State != booking.WaitingForDeposit: // the deposit arrived meanwhile: see declined
		return ErrAccountRequired
	}
	return &PaymentRefused{Code: f.ErrorCode, Message: f.ErrorMessage}
}
