package moneysim

import (
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// settleDue models the watchdog and the sweep.
func (t *modelService) settleDue(ctx context.Context, r *row) error {
	due := false
	t.tx("claim check", func(now time.Time) { due = r.claimCheck(now, checkLease) })
	if !due {
		return nil
	}
	return t.settleUnlessOvertaken(ctx, r, true)
}

// unsettled returns the rows that the sweep selects.
func (t *modelService) unsettled(now time.Time) (due []*row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.list {
		// Another request of a refused attempt may still reach the provider.
		refused := rule.GivenUp(r.State) && r.payment != nil && !r.closedAttempt && now.Sub(r.payment.AttemptedAt) < maxWatch
		open := refused || r.blocked != "" || r.State == booking.Confirming || r.State == booking.WaitingForDeposit ||
			r.refund != nil && (r.refund.State == money.RefundRequested || r.refund.State == money.RefundPending)
		if open && r.payment != nil && !r.checkAt.IsZero() && !now.Before(r.checkAt) {
			due = append(due, r)
		}
	}
	return due
}

func (t *modelService) settle(ctx context.Context, r *row) error {
	return t.settleUnlessOvertaken(ctx, r, false)
}

func (t *modelService) settleUnlessOvertaken(ctx context.Context, r *row, due bool) error {
	for range maxOvertaken {
		if err := t.settleOnce(ctx, r, due); !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return reserve.ErrPaymentPending
}

func (t *modelService) settleOnce(ctx context.Context, r *row, due bool) error {
	var (
		q       question
		charged bool
	)
	t.tx("ask", func(time.Time) { q, charged = t.ask(r), r.payment != nil })
	q.due = due
	if !charged {
		return nil
	}
	switch q.snapshot.Next(t.now()) {
	case rule.SendRefund:
		return t.sendRefund(ctx, q)
	case rule.CloseAccount:
		t.tx("overdue", func(now time.Time) {
			if r.State == booking.WaitingForDeposit && !now.Before(r.ExpiresAt) {
				t.startRefund(r, intent{by: rule.ByOverdue}, now)
			}
		})
		return errOvertaken
	}
	payment, err := t.lookUp(ctx, q, "")
	t.step("looked up")
	switch q.snapshot.Found(payment, err, t.now()) {
	case rule.Resend:
		return t.resend(ctx, q)
	case rule.Act:
		return t.apply(ctx, q, answer{payment: payment})
	case rule.Refusal:
		return t.apply(ctx, q, answer{refused: refusal(err), unknown: true})
	}
	return t.later(q)
}

// lookUp reads the payment by the order id, or the one that the provider lists. It follows another payment that the provider has processed.
func (t *modelService) lookUp(ctx context.Context, q question, listed string) (other toss.Payment, err error) {
	keys, key := toss.KeySet(q.snapshot.Payment.KeySet), q.snapshot.Payment.PaymentKey
	if listed == "" {
		other, err = t.payments.PaymentByOrder(ctx, keys, q.snapshot.Reservation.OrderID)
	} else {
		other, err = t.payments.Payment(ctx, keys, listed)
	}
	if err != nil || other.PaymentKey == key || key == "" && listed == "" {
		return other, err
	}
	if key != "" {
		own, err := t.payments.Payment(ctx, keys, key)
		if known := err == nil || toss.ClassOf(err) == toss.NotFound; !known || own.Processed() || !other.Processed() {
			return own, err
		}
	}
	t.tx("follow", func(time.Time) {
		if p := q.row.payment; p != nil && p.PaymentKey == key {
			p.PaymentKey = other.PaymentKey
		}
	})
	return other, nil
}

func (t *modelService) resend(ctx context.Context, q question) error {
	if t.now().Sub(q.snapshot.Payment.AttemptedAt) < watchdogDelay {
		return t.later(q)
	}
	payment, err := t.payments.Confirm(ctx, toss.Widget, q.snapshot.Payment.ConfirmKey, q.confirmRequest())
	t.step("resent")
	switch rule.Resent(err) {
	case rule.Act:
		return t.apply(ctx, q, answer{payment: payment})
	case rule.Refusal:
		return t.apply(ctx, q, answer{refused: refusal(err), unknown: toss.ClassOf(err) == toss.NotFound})
	}
	if rule.Answered(err) {
		t.tx("renew", func(time.Time) { q.row.renewConfirmKey(q.snapshot.Payment.ConfirmKey) })
	}
	return t.later(q)
}

func (t *modelService) later(q question) error {
	t.tx("later", func(now time.Time) { q.row.postponeCheck(now.Add(delay(retryDelays, q.snapshot.Payment.Checks))) })
	return reserve.ErrPaymentPending
}

func (t *modelService) act(ctx context.Context, q question, a answer) error {
	err := t.apply(ctx, q, a)
	if errors.Is(err, errOvertaken) {
		return t.settle(ctx, q.row)
	}
	return err
}

// apply brings a reservation in line with the provider's answer.
func (t *modelService) apply(_ context.Context, q question, a answer) (verdict error) {
	t.tx("apply", func(now time.Time) {
		r := t.byOrder(q.snapshot.Reservation.OrderID)
		if r.payment.Answers != q.snapshot.Payment.Answers {
			verdict = errOvertaken
			return
		}
		a.due = q.due
		verdict = t.transition(r, a, now)
		t.markWebhooksApplied(r.OrderID, q.callback)
	})
	return verdict
}
