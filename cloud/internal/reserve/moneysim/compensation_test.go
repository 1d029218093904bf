package moneysim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// wonPerMinute is such that no sum of minutes is the amount of a part that an administrator returns.
const wonPerMinute = 333

// drawCompensation returns the compensation of the branch in a run, from a random source of its own.
func drawCompensation(seed uint64) (c booking.Compensation) {
	r := rand.New(rand.NewPCG(seed, 0xC04E))
	if seed == calm {
		return c
	}
	c.AfterMinutes, c.ExtendFirst = 1+r.IntN(5), r.IntN(3) == 0
	if r.IntN(4) > 0 {
		c.WonPerMinute = wonPerMinute
	}
	if r.IntN(4) > 0 {
		c.FullAfterMinutes = c.AfterMinutes + r.IntN(20)
	}
	return c
}

// outage is the time in which the guest of a stay cannot enter, and what the guest got for it.
type outage struct {
	since, until time.Time // until is zero if the guest never enters
	kind         string    // of the compensation; empty: none yet
	owed, whole  bool      // everything is to be returned; it is final
}

// during reports whether the guest cannot enter at a time.
func (o outage) during(at time.Time) bool {
	return !o.since.IsZero() && !at.Before(o.since) && (o.until.IsZero() || at.Before(o.until))
}

// before reports whether the door failed at a time that staff have moved the stay away from.
func (o outage) before(r *row) bool { return o.since.Before(r.Start.Add(-booking.UnlockLead)) }

// stuck models the condition of postgres.StuckDoors for a stay. Refunds that wait for the account of a guest are not modelled, so stays
// that a deposit has paid are left out.
func (t *rows) stuck(r *row, now time.Time) bool {
	c, o := t.compensation, r.outage
	if r.State != booking.Done || o.before(r) || slices.ContainsFunc(t.confirmedOf(r), byDeposit) {
		return false
	}
	if o.owed {
		return !o.whole
	}
	if !c.On() || !o.during(now) {
		return false
	}
	if o.kind == "" {
		return !now.Before(o.since.Add(time.Duration(c.AfterMinutes) * time.Minute))
	}
	whole := o.since.Add(time.Duration(c.FullAfterMinutes) * time.Minute)
	return !o.whole && c.FullAfterMinutes > c.AfterMinutes && !earlier(now, t.reservation(r).Stay().End).Before(whole)
}

// confirmedOf returns the confirmed reservations of a stay, the root first.
func (t *rows) confirmedOf(root *row) []*row {
	return append([]*row{root}, slices.DeleteFunc(t.extensions(root.ID), func(e *row) bool { return e.State != booking.Done })...)
}

// stuckDoors returns the stays that the sweep compensates.
func (t *modelService) stuckDoors(now time.Time) (list []*row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.list {
		if t.stuck(r, now) {
			list = append(list, r)
		}
	}
	return list
}

// compensate models the compensation of a guest who cannot enter.
func (t *modelService) compensate(ctx context.Context, root *row) error {
	type sent struct {
		row *row
		id  int64
	}
	var refunds []sent
	t.tx("compensate", func(now time.Time) {
		if !t.stuck(root, now) {
			return
		}
		for _, r := range t.giveCompensation(root, now) {
			refunds = append(refunds, sent{r, r.refund.ID})
		}
	})
	for _, s := range refunds {
		_ = t.runRefund(ctx, s.row, s.id) // pending, or listed for an administrator
	}
	return nil
}

// giveCompensation returns the reservations of which a refund begins.
func (t *modelService) giveCompensation(root *row, now time.Time) (refunded []*row) {
	c, o := t.compensation, &root.outage
	whole := t.reservation(root)
	stuck := min(now.Sub(o.since), whole.Stay().End.Sub(o.since))
	if o.kind == "" && c.ExtendFirst && !c.Whole(stuck) && now.Before(whole.LastUnlock()) && t.lengthen(root, c.Extension(stuck)) {
		o.kind = "extended"
		t.changed(root, "compensated with time")
		return nil
	}
	balance := 0
	parts := t.confirmedOf(root)
	for _, r := range parts {
		if r.refund != nil {
			o.owed = o.owed || c.Whole(stuck)
			return nil
		}
		balance += r.left()
	}
	o.whole = o.owed || c.Whole(stuck)
	won := c.Won(balance, stuck)
	if o.whole {
		won = balance
	}
	if won <= 0 {
		if o.kind == "" {
			o.kind = "none"
		}
		return nil
	}
	o.kind = "refunded"
	for _, r := range parts {
		some := min(won, r.left())
		if some <= 0 {
			continue
		}
		if err := r.openRefund(money.Refund{By: reserve.ByCompensation, Amount: some, KeepsStay: true, Part: true}, ""); err != nil {
			panic(err)
		}
		r.scheduleCheck(now.Add(watchdogDelay))
		t.gave(root, r, some)
		refunded = append(refunded, r)
		won -= some
	}
	return refunded
}

// lengthen makes a stay without extensions longer if its room is free.
func (t *modelService) lengthen(r *row, by time.Duration) bool {
	if len(t.extensions(r.ID)) > 0 {
		return false
	}
	r.End = r.End.Add(by)
	if r.Length() > booking.MaxLength || !t.free(r) {
		r.End = r.End.Add(-by)
		return false
	}
	return true
}

// breakDoor models a door that fails some time after the start of a stay, and a guest who enters later or never.
func (w *world) breakDoor(r *row, rng *rand.Rand) {
	w.rowMu.Lock()
	defer w.rowMu.Unlock()
	r.outage.since = r.Start.Add(upTo(rng, 20*time.Minute))
	if rng.IntN(3) == 0 {
		r.outage.until = r.outage.since.Add(upTo(rng, 40*time.Minute))
	}
	w.note("the door of %s fails at %v", r.OrderID, r.outage.since.Sub(w.start))
}

// moveLater models staff who move a stay to a later time of the day after its door has failed: its guest is not there any more.
func (w *world) moveLater(r *row, rng *rand.Rand) {
	time.Sleep(time.Until(r.outage.since) + upTo(rng, 10*time.Minute))
	by := time.Duration(1+rng.IntN(6)) * 30 * time.Minute
	err := w.process(0, "move "+r.OrderID, func(_ context.Context, t *modelService) error {
		t.tx("move", func(time.Time) {
			if r.State != booking.Done || r.refund != nil || len(t.extensions(r.ID)) > 0 {
				return
			}
			r.Start, r.End = r.Start.Add(by), r.End.Add(by)
			if !t.free(r) {
				r.Start, r.End = r.Start.Add(-by), r.End.Add(-by)
				return
			}
			w.count("moved after its door failed")
		})
		return nil
	})
	w.note("%s is moved by %v: %v", r.OrderID, by, err)
}

// gave records that a compensation returns won of a reservation, and checks that it is due: the time decides, not a sum of the service.
func (w *world) gave(root, r *row, won int) {
	now, c, o := time.Now(), w.rows.compensation, root.outage
	whole := c.FullAfterMinutes > 0 && o.whole
	w.note("%d won of %s are returned for its door, everything %t", won, r.OrderID, whole)
	w.count("compensated")
	switch end := w.rows.reservation(root).Stay().End; {
	case o.before(root):
		w.violation("S6: %s is compensated for a door that failed at %v, before it was moved to %v", r.OrderID, o.since.Sub(w.start), root.Start.Sub(w.start))
	case now.Before(o.since.Add(time.Duration(c.AfterMinutes) * time.Minute)), !o.owed && !o.during(now):
		w.violation("S6: %s is compensated, and its door failed from %v to %v", r.OrderID, o.since.Sub(w.start), o.until.Sub(w.start))
	case whole && earlier(now, end).Before(o.since.Add(time.Duration(c.FullAfterMinutes)*time.Minute)):
		w.violation("S6: everything of %s is returned, and its door failed at %v", r.OrderID, o.since.Sub(w.start))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.parts {
		if p.of == r.OrderID && p.whole == whole {
			w.violations = append(w.violations, "S7: a step of the compensation of "+r.OrderID+" is taken twice")
		}
		if p.of == r.OrderID && whole {
			w.counts["compensated again"]++
		}
	}
	if whole {
		w.counts["compensated with everything"]++
	}
	w.parts = append(w.parts, &part{won: won, told: reserve.ErrPaymentPending, of: r.OrderID, whole: whole})
}

// checkCompensations checks at the end of a run that each guest who could not enter for so long has everything back, and that no
// other compensation is more than the minutes.
func (w *world) checkCompensations() {
	c := w.rows.compensation
	for _, root := range w.rows.list {
		o, end := root.outage, w.rows.reservation(root).Stay().End
		if o.since.IsZero() || root.State != booking.Done || o.before(root) {
			continue
		}
		lasted := end.Sub(o.since)
		if !o.until.IsZero() {
			lasted = min(lasted, o.until.Sub(o.since))
		}
		stay := w.rows.confirmedOf(root)
		if full := time.Duration(c.FullAfterMinutes) * time.Minute; o.until.IsZero() && c.FullAfterMinutes > c.AfterMinutes && lasted >= full && !o.whole &&
			time.Since(o.since) > full+time.Minute && !slices.ContainsFunc(stay, byDeposit) {
			w.violation("S8: the door of %s failed for %v, and its guest got %q", root.OrderID, lasted, o.kind)
		}
		won := 0
		for _, r := range stay {
			for _, p := range w.parts {
				if p.of == r.OrderID && !p.whole {
					won += p.won
				}
				if refused := slices.ContainsFunc(r.closed, func(f money.Refund) bool { return f.By == reserve.ByCompensation && f.State == money.RefundRefused }); p.of == r.OrderID && p.whole && !refused && w.held(r.OrderID) > 0 {
					w.violation("S8: everything of %s is to be returned, and the provider holds %d won", r.OrderID, w.held(r.OrderID))
				}
			}
		}
		minutes := max(0, int((lasted+time.Minute-1)/time.Minute))
		if everything := c.FullAfterMinutes > 0 && minutes >= c.FullAfterMinutes; won > minutes*c.WonPerMinute && !everything {
			w.violation("S9: %d won of %s are returned for its door, which failed for %v", won, root.OrderID, lasted)
		}
	}
}
