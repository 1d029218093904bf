package moneysim

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

func (t *modelService) transition(r *row, a answer, now time.Time) error {
	before, p, refused := t.ask(r).snapshot, a.payment, a.refused
	step := before.After(rule.Answer{Payment: p, Refused: refused != nil, Declined: a.declined != nil, Returned: a.returned}, now)
	if refused == nil && step.Kept() {
		r.saveProviderState(p, p.Secret)
	}
	if refused == nil && (step.Kept() || step == rule.Lapse || step == rule.NoOp) {
		t.book(r, p, now)
	}
	defer t.changed(r, string(step))
	if step.Trusts() {
		r.trustKey(now)
	}
	switch step {
	case rule.RefusalReported, rule.NoOp:
		if rule.GivenUp(r.State) && before.SessionOver(now) {
			r.closedAttempt = true
			r.sendUnpaid(p)
		}
		if refused != nil {
			return refused
		}
		return nil
	case rule.Open:
		return reserve.ErrPaymentPending
	case rule.Lapse:
		r.countRefusal()
		r.State = booking.Expired
		if r.order.Abandoned() {
			r.State = booking.Released
		}
		r.sendUnpaid(p)
		return cmp.Or(refused, unpaid(p))
	case rule.Refuse, rule.ForeignRefuse:
		if step == rule.ForeignRefuse {
			refused, a.unknown = &reserve.PaymentRefused{Code: "INVALID_REQUEST"}, true
		}
		refused = cmp.Or(refused, unpaid(p))
		r.refusal = refused.Code
		r.countRefusal()
		r.markHeld(!a.unknown, now.Add(keepAfterRefusal))
		r.sendUnpaid(p)
		return refused
	case rule.Confirm:
		return t.confirmed(r, p)
	case rule.ConfirmIfFree:
		if t.confirmed(r, p) != nil && before.Late() == rule.Late {
			return t.late(r, before, p, now)
		}
	case rule.Late:
		return t.late(r, before, p, now)
	case rule.Wait, rule.Reverse:
		if f := r.refund; step == rule.Reverse && f != nil && f.KeepsStay && f.Unsent() {
			r.payment.Returned -= f.Amount
			r.advanceRefund(money.RefundRefused, "DEPOSIT_REVERSED")
		}
		if step == rule.Wait {
			r.sent("virtual-account-issued")
			r.order.PendingAt = time.Time{}
		}
		return t.await(r, p, rule.DepositDue(r.Interval, now.Add(depositDue), now), now)
	case rule.CloseReversed:
		if r.refund == nil {
			t.startLateRefund(r, rule.ByLate, p, 0, now)
			break
		}
		r.refund.Account, r.refundAt = nil, now
		r.reopenRefund(false)
		r.scheduleCheck(now)
	case rule.WaitOn:
		r.postponeCheck(earlier(now.Add(depositPoll), r.ExpiresAt))
	case rule.Drop:
		recorded := before.Payment.Returned
		if f := r.refund; f != nil && f.KeepsStay && f.Unsent() {
			recorded -= f.Amount
			r.payment.Returned -= f.Amount
			r.advanceRefund(money.RefundRefused, "CANCELED_WITH_RESERVATION")
		}
		won := 0
		if !p.ApprovedAt.IsZero() {
			won = max(0, p.CanceledAmount()-recorded)
		}
		switch {
		case before.Joined(p) > 0:
			t.followed(r, before, a, now)
		case rule.AtBank(p.RefundStatus()) != money.RefundCompleted && r.refund == nil:
			if err := r.openRefund(money.Refund{By: rule.ByProvider, Amount: won}, "revoked"); err != nil {
				return err
			}
			t.bank(r, before, a, now)
		}
		t.end(r, won, now)
	case rule.FollowPart:
		if err := r.openRefund(money.Refund{By: rule.ByProvider, Amount: before.Unrecorded(p), KeepsStay: true, Part: true}, ""); err != nil {
			return err
		}
		t.bank(r, before, a, now)
	case rule.Refunded:
		if r.refund == nil {
			return postgres.ErrNoRefund
		}
		won, overdue := r.refundedNow(p), r.refund.By == rule.ByOverdue && r.Extends == 0
		r.refund.Amount = won
		if r.refund.Part {
			r.payment.Retained = p.Held()
		}
		t.bank(r, before, a, now)
		if overdue {
			c := r.ending()
			r.markCanceled()
			r.sent("canceled")
			t.endExtensions(r, c, now)
			break
		}
		t.end(r, won, now)
	case rule.Follow:
		t.followed(r, before, a, now)
	case rule.Returned:
		t.partReturned(r, before, a, now)
	case rule.NotReturned:
		t.partRefused(r, before, a, now)
		return a.declined
	case rule.Restore:
		if slices.ContainsFunc(t.following(r), func(e *row) bool { return e.State == booking.Done }) {
			t.changed(r, "restored with an extension")
		}
		r.restoreKey()
		r.payment.Retained = 0
		r.advanceRefund(money.RefundRefused, a.declined.Code)
		return a.declined
	case rule.Arrive:
		by := r.refund.By
		err := t.confirmed(r, p)
		r.payment.Retained = 0
		r.advanceRefund(money.RefundRefused, a.declined.Code)
		if by != rule.ByOverdue {
			err = errors.Join(err, reserve.ErrAccountRequired)
		}
		return err
	case rule.ReturnDeposit:
		r.advanceRefund(money.RefundRefused, a.declined.Code)
		return errors.Join(t.late(r, before, p, now), reserve.ErrAccountRequired)
	case rule.Reopen:
		err := t.await(r, p, now.Add(time.Minute), now)
		r.payment.Retained = 0
		r.advanceRefund(money.RefundRefused, a.declined.Code)
		return errors.Join(err, a.declined)
	case rule.Fail:
		r.restate(p.Held())
		if r.State == booking.Canceling {
			t.endExtensions(r, r.ending(), now)
		}
		r.failRefund(a.declined.Code)
		return a.declined
	case rule.ForeignReturn:
		t.startRefund(r, intent{by: rule.ByAmount}, now)
		return &reserve.PaymentRefused{Code: "INVALID_REQUEST"}
	case rule.Foreign:
		return &reserve.PaymentRefused{Code: "INVALID_REQUEST"}
	}
	return nil
}

func (t *modelService) confirmed(r *row, p toss.Payment) error {
	if err := t.markDone(r, p.Method); err != nil {
		return err
	}
	if r.PaidAt = t.now(); !p.ApprovedAt.IsZero() {
		r.PaidAt = p.ApprovedAt
	}
	r.sent("confirmed")
	t.refundReplaced(r, t.now())
	r.order.PendingAt = time.Time{}
	return nil
}

func (t *modelService) late(r *row, before rule.Snapshot, p toss.Payment, now time.Time) error {
	c := r.ending()
	r.markCanceled()
	t.endExtensions(r, c, now)
	won := p.BalanceAmount
	if p.Status == toss.StatusWaitingForDeposit {
		won = 0
	}
	t.startLateRefund(r, before.LateBy(now), p, won, now)
	if won == 0 {
		r.sendOutcome("payment-failed") // an account without a deposit is only closed
	}
	return nil
}

func (t *modelService) startLateRefund(r *row, by string, p toss.Payment, won int, now time.Time) {
	if err := r.openRefund(money.Refund{By: by, Amount: won, Part: won > 0 && won < p.BalanceAmount}, ""); err != nil {
		panic(err) // each step that leads here demands that none is open
	}
	r.refundAt = now
	switch {
	case won > 0 && p.Method == toss.MethodVirtualAccount:
		r.failRefund("REFUND_ACCOUNT_REQUIRED")
		return
	case won > 0:
		r.sent("payment-returned")
		r.order.PendingAt = time.Time{}
	}
	r.scheduleCheck(now)
}

func (t *modelService) await(r *row, p toss.Payment, due, now time.Time) error {
	if v := p.VirtualAccount; v != nil && v.DueDate.After(now) {
		due = earlier(due, v.DueDate)
	}
	r.scheduleCheck(earlier(now.Add(depositPoll), due))
	return t.markWaiting(r, due)
}

// followed applies the progress of a refund, and adds to it the won that were returned in the provider's dashboard meanwhile.
func (t *modelService) followed(r *row, before rule.Snapshot, a answer, now time.Time) {
	if won := before.Joined(a.payment); won > 0 {
		r.refund.Amount += won
		if r.refund.KeepsStay {
			r.payment.Returned += won
		}
	}
	if r.refund.State == money.RefundRequested {
		r.restate(r.refundedNow(a.payment))
	}
	t.bank(r, before, a, now)
}

// bank applies the state of the bank's transfer to a refund.
func (t *modelService) bank(r *row, before rule.Snapshot, a answer, now time.Time) {
	status := a.payment.RefundStatus()
	switch to := rule.AtBank(status); {
	case to == money.RefundPending && r.refund.State == to:
		if a.due {
			r.postponeCheck(now.Add(delay(refundPolls, before.Payment.Checks)))
		}
	case to == money.RefundPending:
		r.advanceRefund(to, "")
		r.scheduleCheck(now.Add(refundPolls[0]))
	case r.refund.State == to && (r.refund.AtBank() || before.Payment.SettledOutside > 0):
	case to == money.RefundFailed:
		r.failRefund(status)
	default:
		r.advanceRefund(to, "")
		t.returnRest(r, before, a.payment, now)
	}
}
