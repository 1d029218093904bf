package moneysim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// reconcile models a light comparison: it looks up the orders whose balance differs from the provider's transactions.
func (t *modelService) reconcile(ctx context.Context) error {
	now := t.now()
	list, err := t.payments.Transactions(ctx, toss.Widget, t.compared.Add(-reserve.LightSpan), now)
	t.step("transactions listed")
	if err != nil {
		return err
	}
	won, keys := map[string]int{}, map[string]string{}
	for _, m := range list {
		keys[m.OrderID] = m.PaymentKey
		amount := m.Amount
		if m.Status != toss.StatusDone {
			amount = -amount
		}
		won[m.OrderID] = max(0, won[m.OrderID]+amount)
	}
	differ := map[*row]int{} // with the balance
	t.tx("compare", func(time.Time) {
		for order, theirs := range won {
			if r := t.byOrder(order); r != nil && r.payment != nil && r.refund == nil && r.State != booking.Confirming && theirs != r.payment.Balance {
				differ[r] = r.payment.Balance
			}
		}
	})
	for _, r := range slices.SortedFunc(maps.Keys(differ), func(a, b *row) int { return strings.Compare(a.OrderID, b.OrderID) }) {
		var q question
		t.tx("ask", func(time.Time) { q = t.ask(r) })
		p, failed := t.lookUp(ctx, q, keys[r.OrderID])
		t.step("compared")
		if failed == nil && p.BalanceAmount != differ[r] {
			failed = t.settle(ctx, r)
		}
		err = errors.Join(err, failed)
	}
	if err == nil {
		t.tx("complete", func(time.Time) { t.compared = now })
	}
	return err
}

// callback models ReceiveCallback.
func (t *modelService) callback(ctx context.Context, c toss.Event, retried bool) error {
	var (
		r   *row
		err error
		id  int
	)
	t.tx("callback", func(time.Time) {
		r = t.byOrder(c.OrderID)
		switch {
		case r == nil:
			err = reserve.ErrUnknownOrder
		case r.payment == nil || len(r.payment.Secret) == 0:
			err = reserve.ErrWrongSecret
			if r.State == booking.Confirming {
				err = reserve.ErrPaymentPending
			}
		case !c.SecretMatches(string(r.payment.Secret)):
			err = reserve.ErrWrongSecret
		default:
			id = t.saveWebhook(c.Fingerprint(), c.OrderID)
		}
	})
	if err != nil || id == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err = t.settleCallback(ctx, r, id); err == nil && !retried {
		t.doubtKey(r, c)
	}
	return nil // the callback is stored, and the sweep applies it later if necessary
}

// settleCallback looks the payment up. If a shared look-up began before the callback was stored, it is repeated.
func (t *modelService) settleCallback(ctx context.Context, r *row, id int) error {
	for range 2 {
		if err := t.settle(ctx, r); err != nil {
			return err
		}
		applied := false
		t.tx("applied?", func(time.Time) { applied = t.webhooks[id-1].applied })
		if applied {
			return nil
		}
	}
	return reserve.ErrPaymentPending
}

// unapplied returns the rows with unapplied callbacks.
func (t *modelService) unapplied() (list []*row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.list {
		for _, h := range t.webhooks {
			if h.order == r.OrderID && !h.applied {
				list = append(list, r)
				break
			}
		}
	}
	return list
}

// doubtKey blocks the key after a callback that contradicts the provider's answer.
func (t *modelService) doubtKey(r *row, e toss.Event) {
	t.tx("doubt key", func(now time.Time) {
		old := !e.CreatedAt().IsZero() && !e.CreatedAt().After(r.PaidAt)
		if old || r.DoorlockKey == "" || t.ask(r).snapshot.Callback(e.Status) != rule.BlockDoor {
			return
		}
		r.blocked, r.DoorlockKey, r.BlockedUntil = r.DoorlockKey, "", now.Add(doubtFor)
		r.scheduleCheck(now.Add(doubtInterval))
		t.changed(r, "key blocked")
	})
}
