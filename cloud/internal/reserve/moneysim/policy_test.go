package moneysim

import (
	"math/rand/v2"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// drawPolicy returns the refund policy of a run, from a random source of its own; nil: the default, which keeps nothing. Its
// deadlines are 30 minutes or more before the start, as those of a branch.
func drawPolicy(seed uint64) (p booking.RefundPolicy) {
	r := rand.New(rand.NewPCG(seed, 0x9011C3))
	if seed == calm || r.IntN(2) == 0 {
		return nil
	}
	percent := 100
	for minutes := 130; minutes > 30; minutes -= 1 + r.IntN(60) {
		percent -= r.IntN(percent/2 + 1)
		p = append(p, booking.RefundTier{UntilMinutesBefore: minutes, Percent: percent})
	}
	return p
}

// request is a guest's request to cancel, from its start to its answer.
type request struct{ from, to time.Time }

// requested does what a person requests, and records the request of a guest to cancel.
func (w *world) requested(order, by string, do func()) {
	if by != "customer" {
		do()
		return
	}
	from := time.Now()
	w.mu.Lock()
	n := len(w.requests[order])
	w.requests[order] = append(w.requests[order], request{from, from.Add(length)})
	w.mu.Unlock()
	do()
	w.mu.Lock()
	w.requests[order][n].to = time.Now()
	w.mu.Unlock()
}

// percent returns the share that the policy of the run returns at a time.
func (w *world) percent(start, at time.Time) int {
	if w.rows.policy == nil {
		return 100
	}
	best := 0
	for _, tier := range w.rows.policy {
		if start.Sub(at) >= time.Duration(tier.UntilMinutesBefore)*time.Minute {
			best = max(best, tier.Percent)
		}
	}
	return best
}

// mayKeep reports whether the shop may keep won of an order that has ended. The policy decides if the guest has canceled it, or the
// stay or an extension before it; otherwise everything is returned. Requests of several persons may have come together, and the
// cancellation may lie before or after the refund of each part.
func (w *world) mayKeep(r *row, won int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if won == 0 && w.rows.policy == nil {
		return true
	}
	percents := map[int]bool{}
	if !r.told("confirmed") || w.endedWithoutGuest(r) {
		percents[100] = true
	}
	for _, of := range w.before(r) {
		for _, q := range w.requests[of.OrderID] {
			percents[w.percent(r.Start, q.from)], percents[w.percent(r.Start, q.to)] = true, true
		}
	}
	if len(percents) == 0 {
		return won == 0
	}
	parts := []int{0}
	for _, p := range w.parts {
		for range p.returned {
			if p.order == r.OrderID {
				parts = append(parts, p.won)
			}
		}
	}
	for percent := range percents {
		left, after := r.Amount, 0
		for _, part := range parts {
			after += part
		}
		for _, part := range parts {
			left, after = left-part, after-part
			keeps := left - left*percent/100 - after
			if won == keeps || w.by[r.OrderID] > 0 && won < keeps { // the dashboard returned some of it
				return true
			}
		}
	}
	return won == 0 && w.by[r.OrderID] > 0
}

// before returns a reservation, and the stay and the extensions whose end ends it, too.
func (w *world) before(r *row) []*row {
	list := []*row{r}
	for _, other := range w.rows.list {
		if r.Extends != 0 && (other.ID == r.Extends || other.Extends == r.Extends && other.Start.Before(r.Start)) {
			list = append(list, other)
		}
	}
	return list
}

// endedWithoutGuest reports whether a cause other than a guest's request may have ended a reservation.
func (w *world) endedWithoutGuest(r *row) bool {
	for _, of := range w.before(r) {
		if w.others[of.OrderID] {
			return true
		}
		for _, other := range w.rows.list {
			if other.Replaces == of.ID && other.told("confirmed") {
				return true
			}
		}
	}
	return false
}
