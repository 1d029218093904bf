package moneysim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// part is what an administrator asked the provider to return while the stay was kept. No two parts of a run have the same amount, so
// the provider's books alone show which of them it returned, without any sum of the service.
type part struct {
	won      int
	told     error  // to the administrator
	order    string // of which the provider returned it; empty: it did not
	returned int    // how often the provider took it off the balance

	of    string // order of a compensation
	whole bool   // it returns everything
}

// refundParts models an administrator who returns parts of a payment one after the other. The bank rejects or delays some
// transfers, the account of some is corrected, and the stay may be canceled in between.
func (w *world) refundParts(row *row, method string, r *rand.Rand) {
	for range 1 + r.IntN(3) {
		if r.IntN(3) == 0 {
			fault := sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError}
			if r.IntN(2) == 0 {
				fault.Kind, fault.Delay = sandbox.FaultSlow, 2*time.Minute
			}
			if err := w.box.SetFault(fault); err != nil {
				panic(err)
			}
		}
		w.refundPart(row, method, r)
		time.Sleep(upTo(r, 2*time.Minute)) // the bank takes one or two
		if cancels := r.IntN(2) == 0; cancels && method == sandbox.MethodVirtualAccount {
			w.end(row, []string{"customer", "admin:kim"}[r.IntN(2)], r)
		}
		if r.IntN(3) > 0 {
			if r.IntN(3) == 0 { // the provider declines the corrected account
				if err := w.box.SetFault(sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "REFUND_REJECTED"}); err != nil {
					panic(err)
				}
			}
			err := w.process(r.IntN(2), "correct "+row.OrderID, func(ctx context.Context, t *modelService) error { return t.retryRefund(ctx, row, true) })
			w.note("account of %s is corrected: %v", row.OrderID, err)
		}
	}
}

func (w *world) refundPart(row *row, method string, r *rand.Rand) {
	w.mu.Lock()
	won := 1000*(1+r.IntN(5)) + len(w.parts) + 1
	w.mu.Unlock()
	w.refundWon(row, method, won, r)
}

func (w *world) refundWon(row *row, method string, won int, r *rand.Rand) {
	p := &part{won: won}
	w.mu.Lock()
	w.parts = append(w.parts, p)
	w.mu.Unlock()
	account := r.IntN(6) > 0
	p.told = w.process(r.IntN(2), fmt.Sprint("refund ", p.won), func(ctx context.Context, t *modelService) error { return t.refundPart(ctx, row, p.won, account) })
	w.note("%d won of %s are returned: %v", p.won, row.OrderID, p.told)
	if errors.Is(p.told, reserve.ErrAccountRequired) && (account || method != sandbox.MethodVirtualAccount) {
		w.violation("A6: the refund of %d won of %s demands an account, by %s, account named: %t", p.won, row.OrderID, method, account)
	}
}

// partOf returns the amount that a cancellation names; 0: it returns everything.
func partOf(body []byte) int {
	var cancel struct{ CancelAmount int }
	_ = json.Unmarshal(body, &cancel) // the provider judges malformed requests
	return cancel.CancelAmount
}

// isPart reports whether an amount of an order is that of a part.
func (w *world) isPart(order string, won int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.parts, func(p *part) bool { return p.is(order, won) })
}

// is reports whether a part may be won of an order. Those of an administrator have an amount of their own.
func (p *part) is(order string, won int) bool { return p.won == won && (p.of == "" || p.of == order) }

// cancels returns the number of cancellations of an order at the provider.
func (w *world) cancels(order string) (n int) {
	for _, p := range w.box.Payments(order) {
		n += len(p.Cancels)
	}
	return n
}

// partReturned records that the provider took won of an order off its balance.
func (w *world) partReturned(order string, won int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.parts, func(p *part) bool { return p.of == order && p.won == won && p.returned == 0 })
	if i < 0 {
		i = slices.IndexFunc(w.parts, func(p *part) bool { return p.is(order, won) })
	}
	if i < 0 {
		if w.counts["shares returned"]++; len(w.rows.policy) == 0 {
			w.violations = append(w.violations, fmt.Sprintf("M6: %d won of %s were returned, and no administrator asked for them", won, order))
		}
		return
	}
	w.parts[i].order = order
	w.parts[i].returned++
	w.counts["parts returned"]++
}

// partsOf returns the won of an order that the provider returned in parts, and their number.
func (w *world) partsOf(order string) (won, n int) {
	for _, p := range w.parts {
		if p.order == order {
			won, n = won+p.won*p.returned, n+p.returned
		}
	}
	return won, n
}

// checkParts checks that each part was returned at most once, and that its administrator received the outcome.
func (w *world) checkParts() {
	for _, p := range w.parts {
		open := errors.Is(p.told, reserve.ErrPaymentPending) || errors.Is(p.told, errGone)
		switch {
		case p.returned > 1:
			w.violation("M6: a part of %d won of %s was returned %d times", p.won, p.order, p.returned)
		case p.told == nil && p.returned == 0:
			w.violation("A6: an administrator received the answer that %d won were returned, and they were not", p.won)
		case p.told != nil && !open && p.returned > 0:
			w.violation("A6: an administrator received %q, and %d won of %s were returned", p.told, p.won, p.order)
		}
	}
}

// settleRest settles what the sweep would settle after the end of a run.
func (w *world) settleRest() {
	time.Sleep(5 * time.Minute)
	for _, r := range w.models[0].stuckDoors(time.Now()) {
		w.background(0, "compensate "+r.OrderID, func(ctx context.Context, t *modelService) error { return t.compensate(ctx, r) })
	}
	for _, r := range w.models[0].unsettled(time.Now()) {
		w.background(0, "sweep "+r.OrderID, func(ctx context.Context, t *modelService) error { return t.settleDue(ctx, r) })
	}
}

// administer ends what is left to an administrator: every failed refund is settled outside the provider, and every account
// without a deposit that the provider did not close is closed again.
func (w *world) administer() {
	for _, r := range slices.Clone(w.rows.list) {
		if r.refund == nil || r.refund.State != money.RefundFailed {
			continue
		}
		by := "customer" // who has ended it
		if r.refund.KeepsStay {
			by = "admin:kim"
		}
		w.asks(r.OrderID, by)
		err := w.process(0, "settle outside "+r.OrderID, func(_ context.Context, t *modelService) error { return t.settleOutside(r) })
		if errors.Is(err, reserve.ErrNothingToRefund) {
			err = w.process(0, "close "+r.OrderID, func(ctx context.Context, t *modelService) error { return t.retryRefund(ctx, r, false) })
			w.count("closed again")
		}
		w.note("%s is settled by an administrator: %v", r.OrderID, err)
		if err != nil {
			w.violation("no exit: %s, %s, refund %+v: %v", r.OrderID, r.State, r.refund, err)
		}
	}
}
