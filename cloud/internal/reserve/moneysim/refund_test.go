package moneysim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// intent models the type cancellation of package reserve.
type intent struct {
	by       string
	account  bool
	soon     bool      // the queue sends the refund
	forced   bool      // the reservation ends now, and its money follows
	lookedUp bool      // a purchase whose outcome is unknown may be ended
	policy   bool      // the refund policy applies
	at       time.Time // when the guest asked; zero: now
	keeps    int       // won that it leaves with the shop
}

func (t *modelService) startRefund(r *row, c intent, now time.Time) {
	account := c.account && r.State == booking.Done && r.Method == booking.VirtualAccount
	won := 0
	switch {
	case c.by == rule.ByAmount:
		won = r.Amount
	case !r.PaidAt.IsZero():
		won = r.left()
	}
	if err := r.openRefund(money.Refund{By: c.by, Amount: won - c.keeps, Part: c.keeps > 0, Account: sealed(account)}, cmp.Or(r.DoorlockKey, r.blocked)); err != nil {
		panic(err)
	}
	if c.keeps > 0 {
		r.payment.Retained = c.keeps
	}
	r.refundAt = now
	r.markCanceling()
	at := now.Add(watchdogDelay)
	if c.soon {
		at = now
	}
	r.scheduleCheck(at)
	r.asked = intent{by: c.by, account: c.account && slices.ContainsFunc(t.following(r), byDeposit), policy: c.policy, at: cmp.Or(c.at, now), forced: true}
	t.changed(r, "refund "+c.by)
}

// cancel models a cancellation by the customer (by is "customer") or by an administrator.
func (t *modelService) cancel(ctx context.Context, r *row, by string, account bool) error {
	err := t.cancelOnce(ctx, r, by, account, "")
	if !errors.Is(err, errUnclear) {
		return err
	}
	var seen booking.BookingStatus
	t.tx("seen", func(time.Time) { seen = r.BookingStatus() })
	if err := t.refresh(ctx, r); err != nil && !errors.Is(err, reserve.ErrPaymentPending) {
		return err
	}
	return t.cancelOnce(ctx, r, by, account, seen)
}

// refresh looks a payment up and applies the answer.
func (t *modelService) refresh(ctx context.Context, r *row) error {
	for range maxOvertaken {
		var q question
		t.tx("ask", func(time.Time) { q = t.ask(r) })
		payment, err := t.lookUp(ctx, q, "")
		t.step("looked up")
		if err != nil {
			return reserve.ErrPaymentPending
		}
		err = t.apply(ctx, q, answer{payment: payment})
		if refused := (*reserve.PaymentRefused)(nil); errors.As(err, &refused) {
			return nil
		}
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return reserve.ErrPaymentPending
}

// cancelOnce cancels a reservation. seen is the state that an administrator saw before the last look-up; empty: there was
// none, and errUnclear is returned if one is needed.
func (t *modelService) cancelOnce(ctx context.Context, r *row, by string, account bool, seen booking.BookingStatus) (err error) {
	var (
		refund  int64 // in progress
		before  booking.BookingStatus
		pending bool
	)
	t.tx("seen", func(time.Time) { before, pending = r.BookingStatus(), r.partPending() })
	if err := t.lookUpTransfer(ctx, r); err != nil {
		return err
	}
	t.tx("cancel", func(now time.Time) {
		if by == "customer" && r.Method == "" {
			err = reserve.ErrNotFound
			return
		}
		if by == "customer" && r.State != booking.Canceled && r.State != booking.Canceling {
			if err = r.CanCancel(now); err != nil {
				return
			}
		}
		if seen != "" && (r.State.Live() || r.State == booking.Canceled) && r.BookingStatus() != seen {
			err = reserve.ErrStatusMismatch
			return
		}
		if by != "customer" && pending && !rule.GivenUp(r.State) && (before == "" || r.BookingStatus() != before) {
			err = reserve.ErrStatusMismatch
			return
		}
		if by != "customer" && (!r.State.Live() || r.State == booking.Hold && !r.Occupies(now)) {
			err = reserve.ErrNotFound
			return
		}
		var refunding bool
		refunding, err = t.cancelRow(r, intent{by: by, account: account, lookedUp: seen != "", policy: by == "customer"}, now)
		if refunding && err == nil && r.refund != nil && !r.refund.KeepsStay {
			refund = r.refund.ID
		}
	})
	if err != nil || refund == 0 {
		return err
	}
	return t.runRefund(ctx, r, refund)
}

// cancelRow cancels a reservation in a transaction, and reports whether a refund is in progress.
func (t *modelService) cancelRow(r *row, c intent, now time.Time) (refunding bool, err error) {
	if r.State == booking.Done && !c.account && !c.forced && t.extendedByDeposit(r) {
		return false, reserve.ErrAccountRequired
	}
	if r.State == booking.Done && r.payment != nil {
		if ended, err := t.cancelPaid(r, &c, now); ended || err != nil {
			return false, err
		}
	}
	switch rule.Cancel(r.Reservation, r.payment != nil, c.account) {
	case rule.Release:
		r.State = booking.Released
	case rule.Pending:
		switch {
		case c.by == "customer" || !reserve.Unclear(r.Reservation, *r.payment, now):
			return false, reserve.ErrPaymentPending
		case !c.lookedUp:
			return false, errUnclear
		}
		t.endUnclear(r, now)
	case rule.NeedAccount:
		return false, reserve.ErrAccountRequired
	case rule.End:
		t.end(r, 0, now)
	case rule.Refund:
		if t.extensionRefunds(r, c) {
			return false, reserve.ErrRefundOpen
		}
		t.startRefund(r, c, now)
		return true, nil
	case rule.Join:
		return true, nil
	}
	return false, nil
}

// runRefund sends a recorded refund, which another process may settle meanwhile.
func (t *modelService) runRefund(ctx context.Context, r *row, id int64) error {
	err := t.settle(ctx, r)
	t.tx("refund outcome", func(time.Time) { err = r.refundOutcome(id, err) })
	return err
}

// endUnclear models an administrator who ends a purchase whose outcome is unknown.
func (t *modelService) endUnclear(r *row, now time.Time) {
	if r.order.AbandonedAt.IsZero() {
		r.order.AbandonedAt = now
	}
	if r.order.PendingAt.IsZero() {
		r.order.PendingAt = now
	}
	r.State = booking.Released
	t.changed(r, "unclear ended")
}

func (t *modelService) sendRefund(ctx context.Context, q question) error {
	f, keys, key := q.snapshot.Refund, toss.KeySet(q.snapshot.Payment.KeySet), q.snapshot.Payment.PaymentKey
	part := f.Part
	if f.Taken || part && q.snapshot.Reservation.Method == booking.VirtualAccount {
		payment, err := t.payments.Payment(ctx, keys, key)
		t.step("transfers looked up")
		if err != nil {
			return t.later(q)
		}
		switch q.snapshot.Transfers(payment) {
		case rule.Act:
			return t.apply(ctx, q, answer{payment: payment, returned: true})
		case rule.AskLater:
			return t.later(q)
		case rule.Declined:
			why := &reserve.PaymentRefused{Code: "OTHER_TRANSFER_OPEN"}
			if payment.Status == toss.StatusWaitingForDeposit {
				why.Code = "DEPOSIT_REVERSED"
			}
			return t.apply(ctx, q, answer{payment: payment, declined: why})
		}
		part = part && !(f.Taken && payment.BalanceAmount == 0)
	}
	request, waits := toss.CancelRequest{Reason: "취소"}, q.snapshot.Payment.Status == toss.StatusWaitingForDeposit
	if part && !waits {
		request.Amount = &f.Amount
	}
	if len(f.Account) > 0 && !waits {
		request.RefundAccount = refundAccount
	}
	t.step("send refund")
	payment, cause := t.payments.Cancel(ctx, keys, f.IdempotencyKey, key, request)
	t.step("refund answered")
	if cause == nil {
		return t.apply(ctx, q, answer{payment: payment, returned: true})
	}
	payment, err := t.payments.Payment(ctx, keys, key)
	t.step("refund looked up")
	reading := q.snapshot.Cancelled(cause, payment, err, time.Now())
	if (reading == rule.AskLater || reading == rule.Rephrase) && rule.Answered(cause) && (!f.Part || rule.Rejected(cause)) {
		t.tx("renew refund", func(time.Time) { q.row.renewRefundKey(f.ID, f.IdempotencyKey) })
	}
	switch reading {
	case rule.Act:
		return t.apply(ctx, q, answer{payment: payment})
	case rule.Rephrase:
		t.tx("rephrase", func(time.Time) { t.changed(q.row, "rephrased") })
		if err := t.apply(ctx, q, answer{payment: payment}); err != nil {
			return err
		}
		return errOvertaken
	case rule.AskLater:
		return t.later(q)
	}
	return t.apply(ctx, q, answer{payment: payment, declined: refusal(cause)})
}

// retryRefund models an administrator who sends a failed refund again, to an account if there is one.
func (t *modelService) retryRefund(ctx context.Context, r *row, account bool) error {
	var refund int64
	t.tx("retry refund", func(now time.Time) {
		if r.refund != nil && r.refund.State == money.RefundFailed {
			refund = r.refund.ID
			r.reopenRefund(account && t.ask(r).snapshot.ByDeposit())
			r.refundAt = now
			r.scheduleCheck(now.Add(watchdogDelay))
		}
	})
	if refund == 0 {
		return reserve.ErrNotFound
	}
	return t.runRefund(ctx, r, refund)
}

// settleOutside models an administrator who returns the money of a failed refund outside the provider.
func (t *modelService) settleOutside(r *row) (err error) {
	t.tx("settle outside", func(now time.Time) {
		f := r.refund
		if f == nil || f.State != money.RefundFailed {
			err = reserve.ErrPaymentPending
			return
		}
		if r.payment.Status == toss.StatusWaitingForDeposit {
			err = reserve.ErrNothingToRefund
			return
		}
		won, rejected := r.payment.Balance+r.payment.Rejected-r.payment.SettledOutside, 0
		if f.AtBank() {
			rejected = f.Amount // the bank rejected the transfer, so the provider holds the money again
		}
		won += rejected
		left := won
		if won -= r.payment.Retained; f.KeepsStay {
			won = max(won, min(left, f.Amount))
		}
		if won <= 0 {
			err = reserve.ErrNothingToRefund
			return
		}
		if f.KeepsStay {
			r.payment.Returned -= f.Amount
		}
		f.Amount = won
		r.advanceRefund(money.RefundCompleted, "")
		r.payment.SettledOutside += won
		r.payment.Rejected += rejected
		r.payment.Answers++
		if r.State != booking.Canceled {
			t.end(r, won, now)
		}
		t.changed(r, "settled outside")
	})
	return err
}
