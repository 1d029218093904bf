package check

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // the zones of the branches, on a machine without a database of zones

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

var bookings = []rule{
	{id: "B1", text: "no two live reservations of a room overlap, margins included, at any moment", check: noOverlap},
	{id: "B2", text: "an expired hold blocks no client", check: expiredFrees},
	{id: "B3", text: "a hold does not expire while its confirmation is in progress", check: confirmingStays},
	{id: "B4", text: "5 hours at most, on the ten-minute grid, not in the past, known rooms, within the horizon", elsewhere: "closed days, holidays, breaks and opening hours: TestScheduleCheck, TestScheduleAgainstPaintedTimeline", check: withinRules},
	{id: "B5", text: "a reservation over midnight is shown on both days, on both pages", elsewhere: "months, years and leap days: TestDateProperties; every edge: TestTimeOverMidnight", check: overMidnight},
	{id: "B6", text: "replicas in different time zones, on machines whose clocks differ, show the same", elsewhere: "four time zones and none on the disk: TestTimeZones, TestProcessZoneDoesNotMatter, TestClockChangeNights", check: zonesAgree},
	{id: "B7", text: "a room is never off with a live reservation, and none begins while it is off", check: offIsEmpty},
	{id: "B8", text: "a move is atomic", check: movesAreWhole},
	{id: "B9", text: "conflicting moves never deadlock and lose no row", check: noDeadlock},
	{id: "B10", text: "a slot is free only once its cancellation is decided", check: freeWhenDecided},
	{id: "B11", text: "money and the deadline of an account: DONE with the money, or CANCELED without it", check: depositOrNot},
	{id: "B12", text: "the pages are correct: slots shown as free are free, slots shown as taken are taken", check: pagesAreTrue},
	{id: "B13", text: "a key opens from 2 minutes before the start to 2 minutes before the real end, and after a move in the new window only", elsewhere: "to the second: TestTimeOfUnlocking", check: windowHolds},
	{id: "B14", text: "a customer may cancel until 30 minutes before the start", elsewhere: "to the second: TestTimeOfCancellation", check: cancelEdge},
	{id: "B15", text: "a partner's booking that comes too late is a reported conflict, never a silent double", check: partnersConflict},
}

func noOverlap(b *books, f *finding) {
	for _, list := range b.rooms {
		for i, v := range list {
			f.saw()
			for _, w := range list[i+1:] {
				if v.ID == w.ID || !v.Slot.Overlaps(w.Slot) {
					continue
				}
				if until := end(v); until.IsZero() || w.At.Before(until) {
					f.violated("the reservations %d (%s) and %d (%s) both had room %d of %s at %s", v.ID, v.State, w.ID, w.State, v.Slot.Room, v.Slot.Branch, w.At.Format(clock))
				}
			}
		}
	}
}

// occupants reports whether a slot of a room was occupied, or free, during the whole time from a to z.
func (b *books) occupants(branch string, room int, slot time.Time, a, z time.Time) (takenThroughout, freeThroughout bool) {
	freeThroughout = true
	for _, v := range b.rooms[record.Slot{Branch: branch, Room: room}] {
		if slot.Before(v.Slot.Start) || !slot.Before(v.Slot.End) {
			continue
		}
		until := end(v)
		if !until.IsZero() && until.Before(a.Add(-commit)) || v.At.After(z.Add(commit)) {
			continue
		}
		freeThroughout = false
		// A reservation occupies its slot through its changes of state, so judge its whole life.
		if b.occupiesThroughout(v.ID, room, slot, a.Add(-commit), z.Add(commit)) {
			takenThroughout = true
		}
	}
	return takenThroughout, freeThroughout
}

func (b *books) occupiesThroughout(id int64, room int, slot, a, z time.Time) bool {
	at := a
	for _, v := range b.versions[id] {
		if v.At.After(at) {
			return false
		}
		until := end(v)
		if !until.IsZero() && !until.After(at) {
			continue
		}
		if !occupies(v) || v.Slot.Room != room || slot.Before(v.Slot.Start) || !slot.Before(v.Slot.End) {
			return false
		}
		if until.IsZero() || until.After(z) {
			return true
		}
		if until.Before(v.Until) || v.Until.IsZero() {
			return false // it expired
		}
		at = until
	}
	return false
}

func expiredFrees(b *books, f *finding) {
	for _, o := range b.Ops {
		if o.Kind != record.Take && o.Kind != record.AdminTake || o.Status != 409 || o.Type != "ResourceAlreadyExistException" {
			continue
		}
		ranOut, kept := false, false
		for _, v := range b.rooms[record.Slot{Branch: o.Slot.Branch, Room: o.Slot.Room}] {
			if !v.Slot.Overlaps(o.Slot) || v.At.After(o.Return.Add(commit)) {
				continue
			}
			until := end(v)
			if until.IsZero() || until.After(o.Call.Add(-commit)) {
				kept = true
			} else if v.State == hold {
				ranOut = true
			}
		}
		if !ranOut {
			continue // no expired hold was in the way
		}
		f.expect(kept, "room %d of %s was refused at %s, although only an expired hold occupied it", o.Slot.Room, o.Slot.Branch, o.Call.Format(clock))
	}
	for _, o := range b.Ops {
		if o.Kind != record.Take || !o.OK() {
			continue
		}
		for _, v := range b.rooms[record.Slot{Branch: o.Slot.Branch, Room: o.Slot.Room}] {
			if v.State == hold && v.Slot.Overlaps(o.Slot) && !v.Expires.IsZero() && v.Expires.Before(o.Return) && !v.Until.IsZero() && v.Until.Before(o.Return.Add(commit)) && v.Until.After(o.Call.Add(-commit)) {
				f.saw() // the expired hold did not block the request
			}
		}
	}
}

func confirmingStays(b *books, f *finding) {
	for id, versions := range b.versions {
		for i, v := range versions[:len(versions)-1] {
			if v.State != confirming {
				continue
			}
			next := versions[i+1]
			f.expect(next.State != expired && next.State != released && !next.Deleted, "reservation %d became %s while it was being confirmed", id, next.State)
		}
	}
}

const maxLength = 5 * time.Hour

// onMark reports whether a time is one of the ten-minute marks by the clocks of a branch.
func (b *books) onMark(branch string, t time.Time) bool {
	return b.in(branch, t).Minute()%10 == 0 && t.Unix()%60 == 0
}

// in returns a time by the clocks of a branch.
func (b *books) in(branch string, t time.Time) time.Time {
	zone, err := time.LoadLocation(b.Zones[branch])
	if err != nil {
		panic(err) // the world has loaded its zones
	}
	return t.In(zone)
}

func withinRules(b *books, f *finding) {
	for _, w := range b.Wrong {
		f.expect(slices.Contains(w.Want, w.Status), "%s: got status %d", w.What, w.Status)
	}
	for id, versions := range b.versions {
		v := versions[0]
		length := v.Slot.End.Sub(v.Slot.Start)
		f.expect(length > 0 && length <= maxLength && b.onMark(v.Slot.Branch, v.Slot.Start) && b.onMark(v.Slot.Branch, v.Slot.End), "reservation %d is from %s to %s", id, v.Slot.Start, v.Slot.End)
		if v.Source != "PARTNER" {
			f.expect(!v.Slot.Start.Before(v.At.Add(-record.Margin-commit)), "reservation %d began %s before it was created", id, v.At.Sub(v.Slot.Start))
		}
	}
}

func overMidnight(b *books, f *finding) {
	for _, l := range b.Lookups {
		midnight := b.in(l.Branch, l.From)
		if midnight.Hour() == 23 {
			midnight = midnight.Add(time.Hour)
		} else if midnight.Hour() != 0 {
			continue
		}
		for room, list := range b.rooms {
			if room.Branch != l.Branch {
				continue
			}
			for _, v := range list {
				if !v.Slot.Start.Before(midnight) || !v.Slot.End.After(midnight) {
					continue
				}
				for slot := v.Slot.Start; slot.Before(v.Slot.End); slot = slot.Add(record.Margin) {
					if slot.Before(l.From) || !slot.Before(l.Until) || !b.occupiesThroughout(v.ID, room.Room, slot, l.Call.Add(-commit), l.Return.Add(commit)) && !b.occupiesThroughout(v.ID, room.Room, slot, l.Call, l.Return) {
						continue
					}
					f.expect(shows(l.Busy[room.Room], slot), "%s shows room %d free at %s", b.pageOf(l), room.Room, b.in(l.Branch, slot).Format("01-02 15:04"))
				}
			}
		}
	}
}

func (b *books) pageOf(l record.Lookup) string {
	page := "the V2 page"
	if l.V1 {
		page = "the V1 page"
	}
	return fmt.Sprintf("%s of %s from %s, asked at %s,", page, l.Branch, b.in(l.Branch, l.From).Format("01-02 15:04"), l.Call.Format(clock))
}

func shows(list []time.Time, slot time.Time) bool {
	return slices.ContainsFunc(list, slot.Equal)
}

func zonesAgree(b *books, f *finding) {
	for _, t := range b.Twins {
		f.expect(t.Same, "%s: %s", t.What, t.Text)
	}
}

func offIsEmpty(b *books, f *finding) {
	type stretch struct{ from, until time.Time }
	off := map[record.Slot][]stretch{}
	for _, s := range b.Switches {
		room := record.Slot{Branch: s.Branch, Room: s.Room}
		if !s.Enabled {
			off[room] = append(off[room], stretch{from: s.At})
		} else if n := len(off[room]); n > 0 {
			off[room][n-1].until = s.At
		}
	}
	for room, stretches := range off {
		for _, s := range stretches {
			f.saw()
			for _, v := range b.rooms[room] {
				if v.Slot.End.Before(s.from) || v.Source == "PARTNER" {
					continue // ended, or sold by a partner, who does not ask the service
				}
				until := end(v)
				begun := v.At.After(s.from) && (s.until.IsZero() || v.At.Before(s.until))
				live := v.At.Before(s.from) && (until.IsZero() || until.After(s.from))
				if begun || live {
					f.violated("room %d of %s was off at %s with reservation %d (%s)", room.Room, room.Branch, s.from.Format(clock), v.ID, v.State)
				}
			}
		}
	}
}

func movesAreWhole(b *books, f *finding) {
	told := map[int64][]record.Slot{}
	for _, m := range b.Moves {
		told[m.Reservation] = append(told[m.Reservation], m.To)
		versions := b.versions[m.Reservation]
		whole := false
		for i := 1; i < len(versions); i++ {
			whole = whole || same(versions[i-1].Slot, m.From) && same(versions[i].Slot, m.To)
		}
		f.expect(whole, "reservation %d never changed its slot as its move records", m.Reservation)
	}
	for _, o := range b.Ops {
		if o.Kind != record.Relocate || !o.OK() || same(o.Slot, o.To) {
			continue
		}
		kept := slices.ContainsFunc(told[o.ID], func(s record.Slot) bool { return same(s, o.To) }) ||
			slices.ContainsFunc(b.versions[o.ID], func(v record.Version) bool { return same(v.Slot, o.To) })
		f.expect(kept, "the move of reservation %d, confirmed at %s, is lost", o.ID, o.Return.Format(clock))
	}
	for id, versions := range b.versions {
		places := 1
		for i := 1; i < len(versions); i++ {
			if !same(versions[i].Slot, versions[i-1].Slot) {
				places++
			}
		}
		f.expect(places-1 <= len(told[id]) || versions[0].Source == "PARTNER", "reservation %d moved %d times and has %d moves on record", id, places-1, len(told[id]))
	}
}

func same(a, b record.Slot) bool {
	return a.Branch == b.Branch && a.Room == b.Room && a.Start.Equal(b.Start) && a.End.Equal(b.End)
}

func noDeadlock(b *books, f *finding) {
	for _, o := range b.Ops {
		if o.Kind == record.Relocate {
			f.expect(o.Call.Before(b.Quiet) || o.Known(), "a move got status %d at %s without a fault", o.Status, o.Call.Format(clock))
		}
	}
	if b.Deadlocks > 0 {
		f.violated("PostgreSQL's log has %d deadlocks", b.Deadlocks)
	}
	for _, v := range b.History {
		if v.Deleted {
			f.violated("the row of reservation %d was deleted", v.ID)
		}
	}
	for _, o := range b.Ops {
		if o.Kind == record.Relocate && o.OK() && len(b.versions[o.ID]) == 0 {
			f.violated("reservation %d is lost", o.ID)
		}
	}
}

func freeWhenDecided(b *books, f *finding) {
	for id, versions := range b.versions {
		for i, v := range versions {
			if v.State != canceling || i+1 == len(versions) {
				continue
			}
			next := versions[i+1]
			if next.State != canceled {
				continue
			}
			// The slot is free from here on: by then the provider has returned the money or closed the account.
			decided := slices.ContainsFunc(b.provider[v.Order], func(p record.ProviderPayment) bool {
				return p.Status == "CANCELED" && slices.ContainsFunc(p.Cancels, func(t time.Time) bool { return !t.After(next.At.Add(time.Second)) }) || p.Status == "EXPIRED" || p.Status == "ABORTED"
			})
			f.expect(decided, "reservation %d released its slot at %s, before the provider had returned the money", id, next.At.Format(clock))
		}
	}
}

func depositOrNot(b *books, f *finding) {
	for _, order := range ordered(b.provider) {
		for _, p := range b.provider[order] {
			if !p.Account {
				continue
			}
			v := b.latest[b.byOrder[order]]
			won, _ := b.holding(order)
			ok := v.State == done && won == v.Amount || v.State != done && won == 0
			f.expect(ok || slices.Contains(b.Differences, order), "order %s by virtual account is %s but the provider holds %d won", order, v.State, won)
		}
	}
}

func pagesAreTrue(b *books, f *finding) {
	for _, l := range b.Lookups {
		for room := range b.rooms {
			if room.Branch != l.Branch {
				continue
			}
			for slot := l.From; slot.Before(l.Until); slot = slot.Add(record.Margin) {
				taken, free := b.occupants(l.Branch, room.Room, slot, l.Call, l.Return)
				shown := shows(l.Busy[room.Room], slot)
				if !taken && !free {
					continue // it changed in between, so both answers are right
				}
				f.expect(shown == taken, "%s shows room %d at %s as taken: %t, want %t", b.pageOf(l), room.Room, b.in(l.Branch, slot).Format("15:04"), shown, taken)
			}
		}
		for room, list := range l.Busy { // margins belong to the slots shown as taken
			for _, slot := range list {
				for _, beside := range []time.Time{slot.Add(-record.Margin), slot.Add(record.Margin)} {
					if beside.Before(l.From) || !beside.Before(l.Until) {
						continue
					}
					f.expect(shows(list, beside) || shows(l.Margins[room], beside), "%s shows room %d taken at %s and no margin beside", b.pageOf(l), room, b.in(l.Branch, slot).Format("15:04"))
				}
			}
		}
	}
}

func windowHolds(b *books, f *finding) {
	for _, p := range b.Presses {
		if p.Staff || p.Status == 0 || p.Status >= 500 {
			continue
		}
		if p.WrongKey {
			f.expect(p.Status == 400, "an unknown key got status %d", p.Status)
			continue
		}
		id, known := b.byOrder[p.Order]
		if !known {
			continue
		}
		may, mayNot, alive := true, true, true
		any := b.throughout(id, p.Call, p.Return, func(v record.Version) {
			for _, t := range []time.Time{p.Call.Add(-time.Second), p.Return.Add(time.Second)} {
				if inWindow(v, t) {
					mayNot = false
				} else {
					may = false
				}
			}
			alive = alive && v.State == done
		})
		switch {
		case !any:
		case may:
			f.expect(p.Status == 200, "the key of order %s got status %d at %s, within its window", p.Order, p.Status, p.Call.Format(clock))
		case mayNot && alive:
			f.expect(p.Status == 410, "the key of order %s got status %d at %s, outside its window", p.Order, p.Status, p.Call.Format(clock))
		case mayNot:
			f.expect(p.Status == 400 || p.Status == 410, "the dead key of order %s got status %d at %s", p.Order, p.Status, p.Call.Format(clock))
		}
	}
}

// refundable is the time before the start until which customers may cancel.
const refundable = 30 * time.Minute

func cancelEdge(b *books, f *finding) {
	for _, o := range b.Ops {
		if o.Kind != record.Cancel || !o.Known() {
			continue
		}
		may, mayNot := true, true
		b.throughout(o.ID, o.Call, o.Return, func(v record.Version) {
			edge := v.Slot.Start.Add(-refundable)
			may = may && v.State == done && !o.Return.After(edge)
			mayNot = mayNot && v.State == done && o.Call.After(edge.Add(commit))
		})
		switch {
		case may:
			f.expect(o.OK(), "the cancellation of reservation %d %s before its start got status %d %s", o.ID, o.Slot.Start.Sub(o.Call).Round(time.Second), o.Status, o.Type)
		case mayNot:
			f.expect(o.Status == 400, "the cancellation of reservation %d %s before its start got status %d", o.ID, o.Slot.Start.Sub(o.Call).Round(time.Second), o.Status)
		}
	}
}

func partnersConflict(b *books, f *finding) {
	ours := map[string]record.PartnerBooking{}
	for _, p := range b.Partner {
		ours[p.External] = p
	}
	for _, booked := range b.Bookings {
		p, known := ours[booked.ID]
		if !known {
			f.expect(booked.Canceled, "the partner's booking %s never arrived", booked.ID)
			continue
		}
		v := b.latest[p.Reservation]
		switch p.Status {
		case "CONFIRMED":
			// An administrator may have moved or cancelled it since.
			staff := slices.ContainsFunc(b.Ops, func(o record.Op) bool { return o.ID == p.Reservation && o.Kind == record.AdminEnd })
			kept := v.State == done || v.State == canceled && staff
			placed := len(b.versions[p.Reservation]) > 0 && slices.ContainsFunc(b.versions[p.Reservation], func(v record.Version) bool { return same(v.Slot, booked.Slot) })
			f.expect(kept && placed && !booked.Canceled, "the partner's booking %s belongs to reservation %d, which is %s", booked.ID, p.Reservation, v.State)
		case "CONFLICT":
			f.expect((v.State == conflict || p.Reservation == 0) && booked.Status == "CONFLICT" && !booked.Canceled, "the partner's booking %s is a conflict here (%s) and %s there", booked.ID, v.State, booked.Status)
		case "CANCELLED":
			f.expect(booked.Canceled, "the partner's booking %s is cancelled here but not at the partner", booked.ID)
		}
	}
}
