package reserve

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// keepAfterRefusal is the minimum remaining time of a hold after the provider has refused a payment, so that the guest can
// try another card. It is limited to HoldTTL.
const keepAfterRefusal = 2 * time.Minute

// Purposes of the values that this package seals.
const (
	secretPurpose  = "callback-secret"
	accountPurpose = "refund-account"
)

// answer is the provider's answer about a payment: its state, the final refusal of a charge, or the refusal of a refund.
type answer struct {
	payment  toss.Payment
	refused  *PaymentRefused // a charge; payment is empty
	unknown  bool            // with refused: the provider has no such payment
	declined *PaymentRefused // a refund; payment is the provider's current state
	returned bool            // the provider has executed the refund that was requested
}

// transition applies an answer to the reservation. verdict is the error that the caller receives.
func (c *change) transition(a answer) (verdict, err error) {
	p := a.payment
	step := c.After(rule.Answer{Payment: p, Refused: a.refused != nil, Declined: a.declined != nil, Returned: a.returned}, c.now)
	switch {
	case a.refused != nil:
	case step.Kept():
		if err = c.saveProviderState(p); err == nil {
			err = c.reportReturnedTwice(p)
		}
	case step == rule.Lapse, step == rule.NoOp: // it may have been paid and returned at the provider
		err = c.book(p)
	}
	if err == nil && step.Trusts() {
		err = c.trustKey()
	}
	if err != nil {
		return nil, err
	}
	switch step {
	case rule.RefusalReported:
		return a.refused, c.closeAttempt(p)
	case rule.NoOp:
		return nil, c.closeAttempt(p)
	case rule.Open:
		return ErrPaymentPending, nil
	case rule.Lapse:
		return cmp.Or(a.refused, unpaid(p)), c.lapsed(p)
	case rule.Refuse:
		why := cmp.Or(a.refused, unpaid(p))
		return why, c.refused(p, why, !a.unknown)
	case rule.Confirm:
		return nil, c.confirmed(p)
	case rule.ConfirmIfFree:
		return nil, c.confirmIfFree(p)
	case rule.Late:
		return nil, c.late(p)
	case rule.Wait:
		return nil, c.issued(p)
	case rule.WaitOn:
		return nil, postgres.PostponeCheck(c.ctx, c.tx, c.r().ID, earlier(c.now.Add(depositPoll), c.r().ExpiresAt))
	case rule.Reverse:
		return nil, c.reversed(p)
	case rule.CloseReversed:
		return nil, c.closeReversed(p)
	case rule.Drop:
		return nil, c.dropped(p)
	case rule.Refunded:
		return nil, c.refunded(p)
	case rule.FollowPart:
		return nil, c.followPart(p, c.Unrecorded(p))
	case rule.Follow:
		return nil, c.followed(p)
	case rule.Restore, rule.Arrive, rule.ReturnDeposit, rule.Reopen, rule.Fail:
		return c.declined(step, p, a.declined)
	case rule.Returned:
		return nil, c.partReturned(p)
	case rule.NotReturned:
		return a.declined, c.partRefused(p, a.declined)
	case rule.Foreign, rule.ForeignRefuse, rule.ForeignReturn:
		return c.foreign(step, p)
	case rule.NeedsReview:
		return nil, c.report("status", "provider says "+p.Status)
	}
	return nil, nil
}

// closeAttempt stops the look-ups of an attempt that was given up once the provider can no longer charge it. A guest who does
// not know the outcome is notified.
func (c *change) closeAttempt(p toss.Payment) error {
	if !rule.GivenUp(c.r().State) || !c.SessionOver(c.now) {
		return nil
	}
	if err := c.sendUnpaid(p); err != nil {
		return err
	}
	return postgres.CloseAttempt(c.ctx, c.tx, c.r().ID, c.now)
}

// confirmIfFree confirms a paid reservation whose hold has expired, if its slot is still free.
func (c *change) confirmIfFree(p toss.Payment) error {
	outer := c.tx
	err := pgx.BeginFunc(c.ctx, outer, func(tx pgx.Tx) error {
		c.tx = tx
		return c.confirmed(p)
	})
	c.tx = outer
	if !postgres.IsExclusionViolation(err, "reservation_no_overlap") {
		return err
	}
	if c.Late() == rule.Late {
		return c.late(p)
	}
	return nil
}

// confirmed sets the reservation to DONE, creates its key, notifies the guest and blocks the time at partner channels.
func (c *change) confirmed(p toss.Payment) error {
	r, paidAt := c.r(), c.now
	if !p.ApprovedAt.IsZero() {
		paidAt = p.ApprovedAt
	}
	var key postgres.NewKey
	if r.Extends == 0 {
		key = c.newKey()
	}
	err := postgres.MarkDone(c.ctx, c.tx, r.ID, postgres.Confirmation{Method: booking.Method(p.Method), Key: key, PaidAt: paidAt})
	if err != nil {
		return err
	}
	template, kind := notify.ReservationConfirmed, "confirm.done"
	if r.State == booking.WaitingForDeposit || r.State == booking.Canceling {
		template, kind = notify.DepositConfirmed, "deposit.done"
	}
	r.State = booking.Done
	if r.Extends == 0 {
		r.DoorlockKey = key.Key.String()
	}
	if err := c.issuePass(); err != nil {
		return err
	}
	if err := c.ledger(kind, p); err != nil {
		return err
	}
	if kind == "deposit.done" { // again, if the bank had taken it back
		if err := postgres.SettleDiscrepancy(c.ctx, c.tx, r.OrderID, reversalKind, settled, c.now); err != nil {
			return err
		}
	}
	if r.Extends != 0 {
		err = c.notifyExtended()
	} else {
		err = c.notifyConfirmed(r, template)
	}
	if err != nil {
		return err
	}
	if err := c.refundReplaced(); err != nil {
		return err
	}
	if err := postgres.OutcomeSent(c.ctx, c.tx, r.OrderID); err != nil {
		return err
	}
	return c.block()
}

// issuePass gives the confirmed reservation a pass with a new PIN (docs/specification.md, Passes 1). The pass of a stay covers
// its extensions, so an extension lengthens it instead.
func (c *change) issuePass() error {
	if c.r().Extends != 0 {
		root, err := anchor(c.ctx, c.tx, c.r())
		if err != nil {
			return err
		}
		return c.on(root).extendPass()
	}
	return postgres.IssuePass(c.ctx, c.tx, c.Keys, c.r().ID, c.now)
}

// extendPass makes the pass of a stay end with it, with the same PIN.
func (c *change) extendPass() error {
	return postgres.ExtendPass(c.ctx, c.tx, c.Keys, c.r().ID, c.r().Stay().End)
}

// depositPoll is the interval between look-ups of an account that waits for its deposit. A callback may be minutes late,
// and the deposit is due in ten minutes.
const depositPoll = 30 * time.Second

// issued handles a new virtual account: the reservation waits for its deposit.
func (c *change) issued(p toss.Payment) error {
	due, err := c.await(p, rule.DepositDue(c.r().Interval, c.now.Add(c.DepositDue), c.now))
	if err != nil {
		return err
	}
	if err := c.ledger("account.issued", p); err != nil {
		return err
	}
	v := p.VirtualAccount
	if v == nil {
		return errors.New("reserve: a payment that waits for a deposit has no account")
	}
	if err := c.notifyAccount(money.DepositAccount{Bank: v.Bank, Number: v.Number, Holder: v.CustomerName}, due); err != nil {
		return err
	}
	if err := postgres.OutcomeSent(c.ctx, c.tx, c.r().OrderID); err != nil {
		return err
	}
	return c.block()
}

// reversed handles a deposit that the bank reversed: the key is revoked until the deposit arrives again. An extension has no key; its
// time does not count until then. A part of the deposit that was not sent is not owed any more.
func (c *change) reversed(p toss.Payment) error {
	if f := c.Refund; f != nil && f.KeepsStay && f.Unsent() {
		if err := c.dropPart(*f, noDeposit, noDepositMessage); err != nil {
			return err
		}
	}
	if _, err := c.await(p, rule.DepositDue(c.r().Interval, c.now.Add(c.DepositDue), c.now)); err != nil {
		return err
	}
	if err := c.ledger("deposit.reversed", p); err != nil {
		return err
	}
	template := notify.DepositReversed
	if c.r().Extends != 0 {
		template = notify.ExtensionReversed
	}
	if err := c.notifyGuest(c.withoutKey(), template, nil); err != nil {
		return err
	}
	return c.report(reversalKind, "the bank has taken the deposit back")
}

// closeReversed handles a deposit that the bank reversed after the reservation was over: nothing is left to return, so the refund
// that waits for an account or an administrator closes the account at the provider, or another one does. If there is none, the shop
// has kept the money or returned it by hand, and an administrator has to know.
func (c *change) closeReversed(p toss.Payment) error {
	if err := c.ledger("deposit.reversed", p); err != nil {
		return err
	}
	if c.Refund == nil {
		if err := c.report(reversalKind, "the bank has taken the deposit back after the reservation was over"); err != nil {
			return err
		}
		return c.startLateRefund(p, rule.ByLate, 0)
	}
	if err := postgres.RequestClosing(c.ctx, c.tx, c.Refund.ID, newCancelKey(c.r().ID)); err != nil {
		return err
	}
	return c.settleAt(c.now)
}

// await sets the reservation to wait for its deposit until due, or until the provider closes the account if that is earlier.
// It returns the earlier time.
func (c *change) await(p toss.Payment, due time.Time) (time.Time, error) {
	if v := p.VirtualAccount; v != nil && v.DueDate.After(c.now) {
		due = earlier(due, v.DueDate)
	}
	if err := postgres.MarkWaiting(c.ctx, c.tx, c.r().ID, due); err != nil {
		return due, err
	}
	if err := postgres.SetAccountDue(c.ctx, c.tx, c.r().ID, due); err != nil {
		return due, err
	}
	if err := postgres.ScheduleCheck(c.ctx, c.tx, c.r().ID, earlier(c.now.Add(depositPoll), due)); err != nil {
		return due, err
	}
	return due, c.Queue.Settle(c.ctx, c.tx, c.r().ID, due)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// dropped handles a payment that ended at the provider, by cancellation or expiry, without a request of ours. A part that was not sent
// ends with it.
func (c *change) dropped(p toss.Payment) error {
	if f := c.Refund; f != nil && f.KeepsStay && f.Unsent() {
		if err := c.dropPart(*f, supersededCode, "취소로 함께 환불됩니다."); err != nil {
			return err
		}
		c.Payment.Returned -= f.Amount
		c.Refund = nil
	}
	if err := c.ledger("canceled.by-provider", p); err != nil {
		return err
	}
	won := max(0, returned(p)-c.Payment.Returned)
	switch {
	case c.Joined(p) > 0:
		if err := c.followed(p); err != nil {
			return err
		}
	case rule.AtBank(p.RefundStatus()) != money.RefundCompleted && c.Refund == nil:
		if err := c.followCanceled(p, won); err != nil {
			return err
		}
	}
	return c.end(won)
}

// followCanceled records the refund of a payment that was canceled at the provider, not by us.
func (c *change) followCanceled(p toss.Payment, won int) error {
	return c.followTransfer(p, money.Refund{Reason: "결제사에서 취소", Amount: won, KeyRevoked: true})
}

// followPart records the refund of a part of a payment that was made at the provider, not by us. The reservation stays.
func (c *change) followPart(p toss.Payment, won int) error {
	return c.followTransfer(p, money.Refund{Reason: "결제사에서 일부 환불", Amount: won, KeepsStay: true, Part: true})
}

// followTransfer records a refund that was made at the provider. The bank may reject the transfer of a deposit, and then an
// administrator has to repeat it.
func (c *change) followTransfer(p toss.Payment, f money.Refund) error {
	f.Reservation, f.State, f.By, f.IdempotencyKey = c.r().ID, money.RefundRequested, rule.ByProvider, newCancelKey(c.r().ID)
	var err error
	if f.ID, err = postgres.OpenRefund(c.ctx, c.tx, f); err != nil {
		return err
	}
	c.Refund = &f
	return c.advanceRefund(p)
}

// end cancels the reservation, frees its slot and notifies the guest of the refunded won.
func (c *change) end(returned int) error {
	if err := postgres.MarkCanceled(c.ctx, c.tx, c.r().ID, c.now); err != nil {
		return err
	}
	if err := c.notifyCanceled(returned); err != nil {
		return err
	}
	if err := c.unblock(); err != nil {
		return err
	}
	return c.endFollowing()
}

// returned returns the won that the provider has refunded or is refunding; 0 for an account without a deposit.
func returned(p toss.Payment) int {
	if p.ApprovedAt.IsZero() {
		return 0
	}
	return p.CanceledAmount()
}

// unpaid returns the refusal for a payment that ended without a charge.
func unpaid(p toss.Payment) *PaymentRefused {
	if p.Failure != nil {
		return &PaymentRefused{Code: p.Failure.Code, Message: p.Failure.Message}
	}
	return &PaymentRefused{Code: cmp.Or(p.Status, "NOT_PAID"), Message: "결제가 완료되지 않았습니다. 다시 시도해 주세요."}
}

// refused handles a charge that the provider rejected. The guest keeps the hold and may try again. The hold is extended at
// most once, and only if the provider has the payment.
func (c *change) refused(p toss.Payment, why *PaymentRefused, known bool) error {
	keep := c.now.Add(min(keepAfterRefusal, c.HoldTTL))
	extend := known && c.r().Source == booking.Customer
	if err := postgres.CountRefusal(c.ctx, c.tx, c.r().ID); err != nil {
		return err
	}
	if err := postgres.MarkHeld(c.ctx, c.tx, c.r().ID, extend, keep); err != nil {
		return err
	}
	if err := c.entry("confirm.refused", c.r().Amount, why.Code, map[string]any{"message": why.Message}); err != nil {
		return err
	}
	return c.sendUnpaid(p)
}

// lapsed ends an attempt without a charge, because the guest abandoned it or the stay can no longer be used.
func (c *change) lapsed(p toss.Payment) error {
	to := booking.Expired
	if c.Order.Abandoned() {
		to = booking.Released
	}
	if err := postgres.CountRefusal(c.ctx, c.tx, c.r().ID); err != nil {
		return err
	}
	if _, err := postgres.SetState(c.ctx, c.tx, c.r().ID, c.r().State, to); err != nil {
		return err
	}
	if err := c.entry("confirm.lapsed", c.r().Amount, "", nil); err != nil {
		return err
	}
	return c.sendUnpaid(p)
}

// sendUnpaid notifies a guest whose last response was "pending" that nothing was charged, or that it was charged and has been
// returned at the provider.
func (c *change) sendUnpaid(p toss.Payment) error {
	if won := returned(p); won > 0 {
		return c.sendOutcome(notify.PaymentReturned, map[string]string{"amount": notify.Won(won)})
	}
	return c.sendOutcome(notify.PaymentFailed, nil)
}

// foreign handles a payment that does not match the request. A captured amount is refunded, and no key is created.
func (c *change) foreign(step rule.Step, p toss.Payment) (verdict, err error) {
	r := c.r()
	c.Log.ErrorContext(c.ctx, "the provider's payment is not the order's", "reservation", r.ID, "order_id", r.OrderID,
		"provider_order_id", p.OrderID, "amount", r.Amount, "provider_amount", p.TotalAmount, "currency", p.Currency)
	why := &PaymentRefused{Code: "INVALID_REQUEST", Message: "결제 정보가 주문과 일치하지 않습니다."}
	err = c.report("amount", fmt.Sprintf("order %s, %d %s at the provider, %d won here", p.OrderID, p.TotalAmount, p.Currency, r.Amount))
	switch {
	case err != nil:
	case step == rule.ForeignRefuse:
		err = c.refused(p, why, false)
	case step == rule.ForeignReturn:
		err = c.startRefund(cancellation{by: rule.ByAmount, reason: "결제 금액 불일치"})
	}
	return why, err
}

// late handles a payment, or an open virtual account, of a reservation that has ended. The slot may belong to another guest,
// so the money is refunded if the provider can send it, and the guest is notified once.
func (c *change) late(p toss.Payment) error {
	if err := postgres.MarkCanceled(c.ctx, c.tx, c.r().ID, c.now); err != nil {
		return err
	}
	if err := c.unblock(); err != nil {
		return err
	}
	if err := c.endFollowing(); err != nil {
		return err
	}
	by := c.LateBy(c.now)
	if p.Status == toss.StatusWaitingForDeposit { // nothing was paid, so only the account is closed
		if err := c.ledger("account.late", p); err != nil {
			return err
		}
		if err := c.startLateRefund(p, by, 0); err != nil {
			return err
		}
		return c.sendOutcome(notify.PaymentFailed, nil)
	}
	if err := c.ledger("deposit.late", p); err != nil {
		return err
	}
	detail := fmt.Sprintf("%d won arrived after the reservation was over (%s, %s)", p.BalanceAmount, c.r().State, by)
	if err := c.report(lateDepositKind, detail); err != nil {
		return err
	}
	return c.startLateRefund(p, by, p.BalanceAmount)
}

// reportReturnedTwice reports money that the provider's dashboard has returned although an administrator had returned it by hand.
func (c *change) reportReturnedTwice(p toss.Payment) error {
	won := c.ReturnedTwice(p)
	if won == 0 {
		return nil
	}
	return c.report("amount", fmt.Sprintf("%d won were returned by hand and at the provider", won))
}

func (c *change) saveProviderState(p toss.Payment) error {
	state := money.ProviderState{
		PaymentKey: p.PaymentKey, Status: p.Status, Total: p.TotalAmount, Balance: p.BalanceAmount,
		ApprovedAt: p.ApprovedAt, ReceiptURL: p.ReceiptURL,
	}
	if p.Secret != "" {
		state.Secret = c.Keys.Seal(secretPurpose, []byte(p.Secret))
	}
	var deposited time.Time
	if v := p.VirtualAccount; v != nil {
		state.Account = money.DepositAccount{Bank: v.Bank, Number: v.Number, Holder: v.CustomerName}
		c.Payment.Account.Number = cmp.Or(c.Payment.Account.Number, v.Number) // of a lost order, it was not known: see ByDeposit
		if p.Status == toss.StatusDone || !p.ApprovedAt.IsZero() && (p.Status == toss.StatusCanceled || p.Status == toss.StatusPartialCanceled) {
			deposited = c.now
		}
	}
	if err := postgres.SaveProviderState(c.ctx, c.tx, c.r().ID, state, deposited, c.now); err != nil {
		return err
	}
	return c.book(p)
}
