package moneysim

import (
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// extensionTTL is the time for which an unpaid extension is held.
const extensionTTL = 5 * time.Minute

// byStay ends an extension whose stay has ended.
var byStay = intent{by: rule.ByStay, forced: true}

// occupied returns the time for which a row occupies its room. An extension leaves the margin to the reservation that it follows.
func (r *row) occupied() booking.Interval {
	times := r.Occupied(booking.Margin)
	if r.Extends != 0 {
		times.Start = times.Start.Add(booking.Margin)
	}
	return times
}

func (t *rows) byID(id booking.ReservationID) *row {
	if id == 0 {
		return nil
	}
	return t.list[id-1]
}

// anchor returns the reservation that r extends or replaces; the zero value if there is none.
func (t *rows) anchor(r *row) booking.Reservation {
	if of := t.byID(max(r.Extends, r.Replaces)); of != nil {
		return t.reservation(of)
	}
	return booking.Reservation{}
}

// reservation returns a row with the end of its stay: of the last confirmed extension that follows without a gap.
func (t *rows) reservation(r *row) booking.Reservation {
	whole, end := r.Reservation, r.End
	for _, e := range t.extensions(r.ID) {
		if e.State == booking.Done && e.blocked == "" && e.Start.Equal(end) {
			end = e.End
		}
	}
	if !end.Equal(r.End) {
		whole.StayEnd = end
	}
	return whole
}

// doubted models postgres.Doubted.
func (t *rows) doubted(r *row) bool {
	return r.Extends != 0 && slices.ContainsFunc(t.extensions(r.Extends), func(e *row) bool { return e.State == booking.Done && e.blocked != "" && !r.Start.Before(e.End) })
}

// extensions returns the live extensions of a reservation in order of time.
func (t *rows) extensions(root booking.ReservationID) (list []*row) {
	for _, r := range t.list {
		if r.Extends == root && r.State.Live() {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *row) int { return a.Start.Compare(b.Start) })
	return list
}

// following returns the live extensions that end with a reservation, the last one first.
func (t *rows) following(r *row) (list []*row) {
	root := r.ID
	if r.Extends != 0 {
		root = r.Extends
	}
	for _, e := range slices.Backward(t.extensions(root)) {
		if e != r && !e.Start.Before(r.End) {
			list = append(list, e)
		}
	}
	return list
}

// extendedByDeposit reports whether a deposit has paid an extension of the reservation.
func (t *rows) extendedByDeposit(r *row) bool {
	return slices.ContainsFunc(t.extensions(r.ID), byDeposit)
}

func byDeposit(r *row) bool { return r.State == booking.Done && r.Method == booking.VirtualAccount }

// extensionRefunds reports whether a refund of an extension is on its way, so that the reservation cannot be canceled now.
func (t *rows) extensionRefunds(r *row, c intent) bool {
	return !c.forced && slices.ContainsFunc(t.following(r), func(e *row) bool {
		return e.State == booking.Done && e.refund != nil && !e.refund.AtBank() && (e.Method != booking.VirtualAccount || c.account)
	})
}

// extend models a guest who holds an extension of a stay. An unpaid hold of another one is released.
func (t *modelService) extend(root *row, longer time.Duration, order string, won int) (held *row, err error) {
	t.tx("extend", func(now time.Time) {
		stay := t.reservation(root).Stay()
		if root.State != booking.Done || !now.Before(stay.End) {
			err = reserve.ErrNotExtendable
			return
		}
		for _, e := range t.extensions(root.ID) {
			switch e.State {
			case booking.WaitingForDeposit, booking.Confirming:
				err = reserve.ErrExtensionWaits
				return
			case booking.Hold:
				t.giveUp(e, now)
			}
		}
		times := booking.Interval{Start: stay.End, End: stay.End.Add(longer)}
		if booking.CheckStart(times, now) != nil {
			err = reserve.ErrHeld
			return
		}
		held = t.insert(booking.Reservation{Room: root.Room, Interval: times, ExpiresAt: now.Add(extensionTTL), Extends: root.ID}, now)
		if held == nil {
			err = reserve.ErrHeld
			return
		}
		held.OrderID, held.order.ID, held.Amount, held.Mobile = order, order, won, root.Mobile
	})
	return held, err
}

// end cancels a reservation, and the extensions that follow it.
func (t *modelService) end(r *row, won int, now time.Time) {
	c := r.ending()
	r.markCanceled()
	if r.Extends == 0 || won > 0 { // without a refund the stay of an extension is as before
		r.sent("canceled")
	}
	t.endExtensions(r, c, now)
}

// ending returns how the extensions of a reservation end with it: as its cancellation asked, otherwise in full.
func (r *row) ending() intent {
	if r.State != booking.Canceling {
		return byStay
	}
	return r.asked
}

func (t *modelService) endExtensions(r *row, c intent, now time.Time) {
	for _, e := range t.following(r) {
		switch e.State {
		case booking.Hold, booking.Confirming:
			t.giveUp(e, now)
		case booking.Done, booking.WaitingForDeposit:
			if e.State == booking.Done && e.Method == booking.VirtualAccount && !c.account {
				t.endWithoutAccount(e, c.by, now)
				continue
			}
			soon := c
			soon.soon, soon.keeps = true, 0 // the refund policy applies to each payment by its own start
			if _, err := t.cancelRow(e, soon, now); err != nil {
				panic(err) // extensionRefunds was checked
			}
		}
	}
}

// endWithoutAccount cancels an extension whose deposit waits for the account of its guest.
func (t *modelService) endWithoutAccount(e *row, by string, now time.Time) {
	part := e.refund
	t.end(e, 0, now)
	if part == nil && e.payment.Balance > 0 {
		t.startLateRefund(e, by, toss.Payment{Method: toss.MethodVirtualAccount}, e.payment.Balance, now)
	}
	t.changed(e, "ended with its stay")
}

// exchange models a guest who holds another time for a stay, whose payment refunds the old one.
func (t *modelService) exchange(old *row, times booking.Interval, account bool, order string, won int) (held *row, err error) {
	t.tx("exchange", func(now time.Time) {
		switch {
		case old.Method == "":
			err = reserve.ErrNotFound
		case old.State != booking.Done:
			err = reserve.ErrNotMovable
		default:
			err = old.CanCancel(now)
		}
		if err == nil && booking.CheckStart(times, now) != nil {
			err = reserve.ErrHeld
		}
		if err == nil && !account && (old.Method == booking.VirtualAccount || t.extendedByDeposit(old)) {
			err = reserve.ErrAccountRequired
		}
		if err != nil {
			return
		}
		for _, r := range t.list {
			if r.Replaces == old.ID {
				t.giveUpExchange(r, now)
			}
		}
		held = t.insert(booking.Reservation{Room: old.Room, Interval: times, ExpiresAt: now.Add(holdTTL), Replaces: old.ID}, now)
		if held == nil {
			err = reserve.ErrHeld
			return
		}
		held.OrderID, held.order.ID, held.Amount, held.Mobile, held.account = order, order, won, old.Mobile, account
	})
	return held, err
}

// giveUpExchange ends an unpaid exchange.
func (t *modelService) giveUpExchange(r *row, now time.Time) {
	if r.State != booking.WaitingForDeposit {
		t.giveUp(r, now)
		return
	}
	if _, err := t.cancelRow(r, intent{by: rule.ByExchange, soon: true, forced: true}, now); err != nil {
		panic(err)
	}
}

// exchanged reports whether another confirmed exchange replaces r, or the reservation that r replaces.
func (t *rows) exchanged(r *row) bool {
	if r.Replaces == 0 && r.State != booking.Canceling && r.State != booking.WaitingForDeposit {
		return false
	}
	return slices.ContainsFunc(t.list, func(x *row) bool {
		return x != r && x.Replaces != 0 && (x.Replaces == r.ID || x.Replaces == r.Replaces) && !x.PaidAt.IsZero()
	})
}

// refundReplaced starts the full refund of the stay that a confirmed exchange replaces.
func (t *modelService) refundReplaced(r *row, now time.Time) {
	old := t.byID(r.Replaces)
	if old == nil {
		return
	}
	account := r.account
	r.account = false
	if old.State != booking.Done && old.State != booking.WaitingForDeposit {
		return
	}
	by := rule.ByExchange
	if old.CanCancel(now) == nil {
		by = "customer"
	}
	if old.State == booking.Done && old.Method == booking.VirtualAccount && !account {
		t.endWithoutAccount(old, by, now)
	} else if _, err := t.cancelRow(old, intent{by: by, account: account, soon: true, forced: true}, now); err != nil {
		panic(err)
	}
	t.changed(old, "exchanged")
}
