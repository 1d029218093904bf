package moneysim

import (
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// confirm models the confirmation of a guest who returns from the widget. If the outcome is still pending, the guest must
// receive a message about it.
func (t *modelService) confirm(ctx context.Context, req reserve.ConfirmRequest) error {
	err := t.confirmOnce(ctx, req)
	if !errors.Is(err, reserve.ErrPaymentPending) {
		return err
	}
	t.tx("owe outcome", func(now time.Time) {
		r := t.byOrder(req.OrderID)
		switch {
		case r.State == booking.Confirming || r.State == booking.Canceling:
			if r.order.PendingAt.IsZero() {
				r.order.PendingAt = now
			}
		case rule.GivenUp(r.State):
			err = r.lastRefusal()
		default:
			err = r.receipt()
		}
	})
	return err
}

func (t *modelService) confirmOnce(ctx context.Context, req reserve.ConfirmRequest) (err error) {
	var (
		q    question
		ours bool
	)
	t.tx("begin", func(now time.Time) {
		r := t.byOrder(req.OrderID)
		switch {
		case r == nil || !r.order.ReplacedAt.IsZero():
			err = reserve.ErrUnknownOrder
		case req.Amount != r.Amount:
			err = reserve.ErrAmountMismatch
		case r.State == booking.Released && !r.order.PendingAt.IsZero():
			err = reserve.ErrPaymentPending
		case r.State == booking.Released:
			err = r.receipt()
		case r.State == booking.Hold || r.State == booking.Expired:
			ours, err = true, t.startConfirm(r, req, now)
		case r.payment == nil || r.payment.PaymentKey != req.PaymentKey:
			err = &reserve.PaymentRefused{Code: "ALREADY_PROCESSED_PAYMENT"}
		}
		if err == nil {
			q = t.ask(r)
		}
	})
	switch {
	case err != nil:
		return err
	case ours:
		err = t.sendConfirm(ctx, q)
	case q.snapshot.Reservation.State == booking.Confirming:
		err = t.follow(ctx, q)
	}
	if err != nil {
		return err
	}
	t.tx("receipt", func(time.Time) { err = q.row.receipt() })
	return err
}

func (t *modelService) startConfirm(r *row, req reserve.ConfirmRequest, now time.Time) error {
	if !now.Before(r.LastUnlock()) {
		return reserve.ErrHoldExpired
	}
	if t.ask(r).snapshot.Obsolete(now) {
		return reserve.ErrHoldExpired
	}
	if !r.Occupies(now) {
		if booking.CheckStart(r.Interval, now) != nil {
			return reserve.ErrHoldExpired
		}
		t.expireHolds(r, now)
		if !t.free(r) {
			return reserve.ErrHoldExpired
		}
	}
	if err := t.startAttempt(r, req.PaymentKey, now, now.Add(watchdogDelay)); err != nil {
		return &reserve.PaymentRefused{Code: "INVALID_REQUEST"} // the service rolls the transaction back, so the model checks this first
	}
	if err := t.set(r, booking.Confirming); err != nil {
		panic(err) // the slot was free
	}
	t.changed(r, "confirming")
	return nil
}

func (t *modelService) sendConfirm(ctx context.Context, q question) error {
	t.step("send confirm")
	payment, err := t.payments.Confirm(ctx, toss.Widget, q.snapshot.Payment.ConfirmKey, q.confirmRequest())
	t.step("confirm answered")
	switch rule.Confirmed(err) {
	case rule.Act:
		return t.act(ctx, q, answer{payment: payment})
	case rule.AskAgain:
		return t.settle(ctx, q.row)
	case rule.AskLater:
		t.tx("renew", func(time.Time) { q.row.renewConfirmKey(q.snapshot.Payment.ConfirmKey) })
		return t.later(q)
	}
	return t.act(ctx, q, answer{refused: refusal(err), unknown: toss.ClassOf(err) == toss.NotFound})
}

// follow waits for the outcome of another process's attempt.
func (t *modelService) follow(ctx context.Context, q question) error {
	for ctx.Err() == nil {
		if t.now().Sub(q.snapshot.Payment.AttemptedAt) >= watchdogDelay {
			return t.settle(ctx, q.row)
		}
		confirming, verdict := false, error(nil)
		t.tx("look", func(time.Time) {
			confirming = q.row.State == booking.Confirming
			if rule.GivenUp(q.row.State) {
				verdict = q.row.lastRefusal()
			}
		})
		if !confirming {
			return verdict
		}
		time.Sleep(100 * time.Millisecond)
	}
	return reserve.ErrPaymentPending
}

// release releases the hold of a guest who leaves, or abandons a purchase whose outcome is unknown.
func (t *modelService) release(r *row) {
	t.tx("release", func(now time.Time) { t.giveUp(r, now) })
}

func (t *modelService) giveUp(r *row, now time.Time) {
	switch r.State {
	case booking.Hold:
		r.State = booking.Released
		t.changed(r, "released")
	case booking.Confirming:
		if r.order.AbandonedAt.IsZero() {
			r.order.AbandonedAt = now
		}
		t.changed(r, "abandoned")
	}
}

// registerAgain gives a live hold a new order, and reports whether it succeeded.
func (t *modelService) registerAgain(r *row, order string) (ok bool) {
	t.tx("register", func(now time.Time) {
		if ok = r.State == booking.Hold && r.Occupies(now); ok {
			t.replaceOrder(r, order, now)
			t.changed(r, "registered again")
		}
	})
	return ok
}
