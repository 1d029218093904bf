package moneysim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// Prices of changes differ from the price of a stay and from each other, so that no refund of one can pass for that of another.
const (
	extensionPrice = 7_000
	exchangePrice  = 15_000
)

// extend models a guest who extends a stay once it is confirmed, up to twice.
func (w *world) extend(root *row, order string, r *rand.Rand) {
	if !w.awaitState(root, booking.Done) {
		return
	}
	time.Sleep(upTo(r, 10*time.Minute))
	var wg sync.WaitGroup
	defer wg.Wait()
	for n := range 1 + r.IntN(2) {
		name := fmt.Sprintf("%s-longer%d", order, n)
		var held *row
		err := w.process(r.IntN(2), "extend "+name, func(_ context.Context, t *modelService) (err error) {
			held, err = t.extend(root, time.Duration(1+r.IntN(3))*10*time.Minute, name, w.newPrice(extensionPrice))
			return err
		})
		w.note("%s is held: %v", name, err)
		if err == nil {
			w.count("extension held")
			w.buyChange(held, r, &wg)
			w.endDuring(root, r, &wg)
		}
		time.Sleep(upTo(r, 10*time.Minute))
	}
}

// newPrice returns a price that nothing else of the run has.
func (w *world) newPrice(about int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prices++
	return about + 10*w.prices
}

// endDuring models a stay that ends while the payment of a change may be in progress.
func (w *world) endDuring(stay *row, r *rand.Rand, wg *sync.WaitGroup) {
	mine := rand.New(rand.NewPCG(r.Uint64(), 3))
	if mine.IntN(2) == 0 {
		return
	}
	decline := rand.New(rand.NewPCG(mine.Uint64(), 4)).IntN(3) == 0
	wg.Go(func() {
		time.Sleep(upTo(mine, 12*time.Minute))
		if decline { // the provider declines the refund of a stay that may have a paid extension
			if err := w.box.SetFault(sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "REFUND_REJECTED"}); err != nil {
				panic(err)
			}
		}
		w.end(stay, []string{"customer", "admin:kim"}[mine.IntN(2)], mine)
	})
}

// exchange models a guest who exchanges a confirmed stay for another time, sometimes twice.
func (w *world) exchange(old *row, order string, r *rand.Rand) {
	if !w.awaitState(old, booking.Done) {
		return
	}
	time.Sleep(upTo(r, 6*time.Minute))
	var wg sync.WaitGroup
	defer wg.Wait()
	for n := range 1 + r.IntN(2) {
		name, start := fmt.Sprintf("%s-other%d", order, n), w.start.Add(time.Duration(6+r.IntN(18))*10*time.Minute)
		account, won := r.IntN(4) > 0, w.newPrice(exchangePrice)
		var held *row
		err := w.process(r.IntN(2), "exchange "+name, func(_ context.Context, t *modelService) (err error) {
			held, err = t.exchange(old, booking.Interval{Start: start, End: start.Add(30 * time.Minute)}, account, name, won)
			return err
		})
		w.note("%s is held instead of %s: %v", name, order, err)
		if err == nil {
			w.count("exchange held")
			w.buyChange(held, r, &wg)
			if r.IntN(3) == 0 {
				w.endDuring(old, r, &wg)
			}
		}
		time.Sleep(upTo(r, 10*time.Minute))
	}
}

// buyChange models a guest who pays for a held change, and sometimes leaves, cancels it, or has its payment canceled by others.
func (w *world) buyChange(held *row, r *rand.Rand, wg *sync.WaitGroup) {
	method := []string{sandbox.MethodCard, sandbox.MethodVirtualAccount}[r.IntN(2)]
	order := held.OrderID
	key, err := w.box.Authenticate(sandbox.Checkout{OrderID: order, OrderName: "room", Amount: held.Amount, Method: method})
	if err != nil {
		w.violation("authenticate: %v", err)
		return
	}
	w.mu.Lock()
	w.owners[key] = order
	w.mu.Unlock()
	time.Sleep(upTo(r, 3*time.Minute))
	if r.IntN(8) == 0 {
		time.Sleep(5 * time.Minute) // the hold of an extension expires
	}
	later := func(chance int, within time.Duration, do func(r *rand.Rand)) {
		at, mine := upTo(r, within), rand.New(rand.NewPCG(r.Uint64(), 1))
		if r.IntN(chance) == 0 {
			wg.Go(func() {
				time.Sleep(at)
				do(mine)
			})
		}
	}
	mine := rand.New(rand.NewPCG(r.Uint64(), 2))
	wg.Go(func() { w.confirm(order, key, "0", mine) })
	later(5, 5*time.Minute, func(r *rand.Rand) { w.leave(held, r) })
	later(6, 60*time.Minute, func(r *rand.Rand) { w.dashboard(order, method, r) })
	later(4, 40*time.Minute, func(r *rand.Rand) { w.end(held, "admin:kim", r) })
	later(4, 40*time.Minute, func(r *rand.Rand) { w.refundParts(held, method, r) })
	later(6, 20*time.Minute, func(r *rand.Rand) { w.refundWon(held, method, held.Amount, r) })
	if method == sandbox.MethodVirtualAccount {
		deposit := upTo(r, 11*time.Minute)
		if r.IntN(5) > 0 {
			wg.Go(func() { w.deposit(order, deposit) })
		}
		later(6, 15*time.Minute, func(*rand.Rand) {
			w.bankActs(order, func() error { _, err := w.box.Reverse(order); return err }, "reverses")
		})
	}
}

// awaitState waits for a state of a row, at most an hour.
func (w *world) awaitState(r *row, state booking.State) bool {
	for range 360 {
		w.rowMu.Lock()
		reached := r.State == state
		w.rowMu.Unlock()
		if reached {
			return true
		}
		time.Sleep(10 * time.Second)
	}
	return false
}

// checkStays checks at the end of a run that a stay and its changes agree: no extension is confirmed without the stay before it, no
// stay that was exchanged is confirmed, no reservation ended without a reason of its own, and no extension ended with a stay that remains.
func (w *world) checkStays() {
	exchanged := map[booking.ReservationID]int{}
	for _, r := range w.rows.list {
		confirmed := r.State == booking.Done
		if of := w.rows.byID(r.Extends); of != nil && confirmed {
			w.count("extended")
			if !w.follows(r, of) {
				w.violation("S1: %s is DONE, and %s is %s until %v", r.OrderID, of.OrderID, of.State, of.End.Sub(w.start))
			}
		}
		// The stay may continue if the bank reversed the deposit of the exchange before the stay was refunded.
		undone := w.reversed[r.OrderID] && !confirmed
		if old := w.rows.byID(r.Replaces); old != nil && r.told("confirmed") && !undone {
			w.count("exchanged")
			if old.State == booking.Done {
				w.violation("S2: %s was paid instead of %s, which is DONE", r.OrderID, old.OrderID)
			}
			exchanged[old.ID]++
			if n := exchanged[old.ID]; n > 1 {
				w.violation("S4: %s was exchanged %d times, at last for %s", old.OrderID, n, r.OrderID)
			}
		}
		if r.State == booking.Canceled && r.told("confirmed") && !w.endedBy(r) {
			w.violation("S3: %s is CANCELED without a request", r.OrderID)
		}
		if of := w.rows.byID(r.Extends); of != nil && of.State == booking.Done && r.State == booking.Canceled && r.told("confirmed") && !w.endedAlone(r) {
			w.violation("S5: %s is CANCELED, although %s is DONE", r.OrderID, of.OrderID)
		}
	}
}

// follows reports whether an extension lies side by side with its confirmed stay.
func (w *world) follows(e, root *row) bool {
	if root.State != booking.Done {
		return false
	}
	for _, r := range w.rows.list {
		if (r == root || r.Extends == root.ID && r.State == booking.Done) && r.End.Equal(e.Start) {
			return true
		}
	}
	return false
}

// endedAlone reports whether an extension, or one before it, has been asked to end, not only the stay that it extends.
func (w *world) endedAlone(r *row) bool {
	return slices.ContainsFunc(w.rows.list, func(e *row) bool { return e.Extends == r.Extends && !e.Start.After(r.Start) && w.ends[e.OrderID] })
}

// endedBy reports whether a guest, an administrator, the bank or the provider's dashboard has ended a reservation, the stay that it
// extends or an extension before it, or an exchange has replaced one of them.
func (w *world) endedBy(r *row) bool {
	if w.ends[r.OrderID] {
		return true
	}
	for _, other := range w.rows.list {
		switch {
		case other.Replaces == r.ID && other.told("confirmed"):
			return true
		case r.Extends != 0 && other.ID == r.Extends && w.endedBy(other):
			return true
		case r.Extends != 0 && other.Extends == r.Extends && other.End.Equal(r.Start) && w.ends[other.OrderID]:
			return true
		}
	}
	return false
}

// told reports whether the guest has received a message about the row's order.
func (r *row) told(template string) bool {
	for _, m := range r.messages {
		if m == (message{r.OrderID, template}) {
			return true
		}
	}
	return false
}

// asks records that a reservation is asked to end.
func (w *world) asks(order, by string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends[order] = true
	w.others[order] = w.others[order] || by != "customer"
}
