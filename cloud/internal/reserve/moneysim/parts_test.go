package moneysim

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// refundPart models an administrator who returns a part of a payment, or all of it, while the stay is kept.
func (t *modelService) refundPart(ctx context.Context, r *row, won int, account bool) (err error) {
	var refund int64
	t.tx("refund part", func(now time.Time) {
		if err = r.checkPart(won, account); err != nil {
			return
		}
		f := money.Refund{By: "admin:kim", Amount: won, KeepsStay: true, Part: true}
		if r.Method == booking.VirtualAccount {
			f.Account = sealed(account)
		}
		if err = r.openRefund(f, ""); err != nil {
			panic(err)
		}
		refund = r.refund.ID
		r.scheduleCheck(now.Add(watchdogDelay))
		t.changed(r, "refund part")
	})
	if err != nil {
		return err
	}
	return t.runRefund(ctx, r, refund)
}

func (r *row) checkPart(won int, account bool) error {
	switch {
	case r.payment == nil, r.PaidAt.IsZero():
		return reserve.ErrNothingToRefund
	case r.refund != nil:
		return reserve.ErrRefundOpen
	case r.State != booking.Done && r.State != booking.Canceled, min(r.left(), r.payment.Balance) <= 0:
		return reserve.ErrNothingToRefund
	case won > min(r.left(), r.payment.Balance):
		return reserve.ErrExceedsBalance
	case r.Method == booking.VirtualAccount && !account:
		return reserve.ErrAccountRequired
	}
	return nil
}

// left returns the won of a paid reservation that are not refunded.
func (r *row) left() int {
	switch p := r.payment; p.Status {
	case toss.StatusDone, toss.StatusPartialCanceled:
		return p.Balance + p.Rejected - p.SettledOutside
	case toss.StatusCanceled:
		return max(0, p.Rejected-p.SettledOutside)
	}
	return r.Amount
}

func (t *modelService) partReturned(r *row, before rule.Snapshot, a answer, now time.Time) {
	if !before.Refund.Taken {
		r.sent("part-refunded")
	}
	t.bank(r, before, a, now)
}

func (t *modelService) partRefused(r *row, before rule.Snapshot, a answer, now time.Time) {
	r.payment.Returned -= r.refund.Amount
	r.advanceRefund(money.RefundRefused, a.declined.Code)
	r.scheduleCheck(now)
	won, kept := before.CanceledBeside(a.payment), r.payment.Retained > 0
	if won == 0 {
		t.returnRest(r, before, a.payment, now)
		return
	}
	revoked := "revoked"
	if kept {
		revoked = ""
	}
	if err := r.openRefund(money.Refund{By: rule.ByProvider, Amount: won, KeepsStay: kept, Part: kept}, revoked); err != nil {
		panic(err)
	}
	t.bank(r, before, a, now)
	t.changed(r, "canceled beside a part")
}

// returnRest refunds what the provider still holds of a reservation that ended while the refund of a part was open.
func (t *modelService) returnRest(r *row, before rule.Snapshot, p toss.Payment, now time.Time) {
	if !before.Owes(p) {
		return
	}
	by, won := before.LateBy(now), p.BalanceAmount-r.payment.Retained
	if f := before.Refund; f.Rest {
		if err := r.openRefund(money.Refund{By: by, Amount: won, Part: r.payment.Retained > 0, Account: f.Account}, ""); err != nil {
			panic(err)
		}
		r.refundAt = now
		r.scheduleCheck(now)
	} else {
		t.startLateRefund(r, by, p, won, now)
	}
	t.changed(r, "rest")
}

// lookUpTransfer looks up the part that the bank is transferring, so that a cancellation knows its outcome.
func (t *modelService) lookUpTransfer(ctx context.Context, r *row) error {
	pending := false
	t.tx("transfer?", func(time.Time) { pending = r.partPending() })
	if !pending {
		return nil
	}
	err := t.refresh(ctx, r)
	if errors.Is(err, reserve.ErrPaymentPending) {
		return nil
	}
	return err
}

func (r *row) partPending() bool {
	return r.refund != nil && r.refund.KeepsStay && r.refund.State == money.RefundPending
}

// cancelPaid models the cancellation of a paid reservation whose part is open, or of which nothing is left to refund. It reports
// whether the reservation has ended without a refund of its own.
func (t *modelService) cancelPaid(r *row, c *intent, now time.Time) (ended bool, err error) {
	part, left := r.refund, r.left()
	if c.policy {
		c.keeps = left - r.policy.Refund(left, r.Start, cmp.Or(c.at, now))
	}
	won := left - c.keeps
	deposit := r.Method == booking.VirtualAccount
	switch {
	case part != nil && !part.AtBank() && !c.forced:
		return false, reserve.ErrRefundOpen
	case part == nil && won > 0:
		return false, nil
	case won > 0 && deposit && !c.account && !c.forced:
		return false, reserve.ErrAccountRequired
	case t.extensionRefunds(r, *c):
		return false, reserve.ErrRefundOpen
	}
	what := "canceled with a part at the bank"
	r.payment.Retained = c.keeps
	switch {
	case part == nil:
		won, what = 0, "canceled without a refund"
	case !part.AtBank(): // the balance may still include it
		won = r.Amount - r.payment.Returned - r.payment.SettledOutside
	case c.account && deposit:
		if part.State == money.RefundFailed {
			r.reopenRefund(false)
		}
		part.Rest, part.Account = true, sealed(true)
		r.scheduleCheck(now)
	}
	t.endExtensions(r, *c, now)
	t.end(r, won, now)
	t.changed(r, what)
	return true, nil
}

// sealed returns the stored form of an account; nil: there is none.
func sealed(account bool) []byte {
	if account {
		return []byte("account")
	}
	return nil
}
