package reserve

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// OccupiedSlot is a slot and the reservation that occupies it.
type OccupiedSlot struct {
	booking.Slot
	ID booking.ReservationID
}

// Availability lists the slots of a window that cannot be reserved. Each list is sorted by room number, then time.
type Availability struct {
	Branch                    booking.Branch
	Window                    booking.Interval
	Booking, Paid             []OccupiedSlot // Booking: holds and reservations waiting for a deposit; Paid: confirmed ones
	BookingMargin, PaidMargin []booking.Slot
	BreakTime, ClosedTime     []booking.Slot
	InterruptedTime           []booking.Slot // by a change of the clock; the starts are on the wall clock, in UTC
	Basis                     Basis
}

// Basis is the state of the database from which an Availability was made.
type Basis = postgres.Basis

// Availability returns the unavailable slots of a branch in a window.
func (s *Service) Availability(ctx context.Context, code string, window booking.LocalWindow) (Availability, error) {
	now := s.now()
	read, err := s.DB.Occupancies(ctx, code, window, now)
	if err != nil {
		return Availability{}, err
	}
	view := Availability{Branch: read.Branch, Window: read.Window, Basis: read.Basis}
	view.occupy(read.List, read.Window)
	view.close(read.Window)
	if change, ok := read.Window.ClockChange(read.Branch.Zone); ok {
		view.changeClock(window, change, now)
	}
	return view, nil
}

// changeClock fits the lists to a window in which the clocks change. A clock time has one slot at most, so of a time that the
// clock shows twice, the lists have the moment that a request at this time means (docs/specification.md, Time 8).
func (v *Availability) changeClock(window booking.LocalWindow, change booking.ClockChange, now time.Time) {
	zone := v.Branch.Zone
	interrupted := window.Interrupted(zone, now)
	for _, room := range v.Branch.Rooms {
		for _, start := range interrupted {
			v.InterruptedTime = append(v.InterruptedTime, booking.Slot{Room: room.No, Start: start})
		}
	}
	if change.By > 0 {
		return
	}
	unnamed := func(slot booking.Slot) bool {
		named, err := booking.ReadClock(booking.WallClock(slot.Start, zone), zone, now.Add(-booking.SlotLength))
		return err != nil || !named.Equal(slot.Start)
	}
	for _, list := range []*[]OccupiedSlot{&v.Booking, &v.Paid} {
		*list = slices.DeleteFunc(*list, func(o OccupiedSlot) bool { return unnamed(o.Slot) })
	}
	for _, list := range []*[]booking.Slot{&v.BookingMargin, &v.PaidMargin, &v.BreakTime, &v.ClosedTime} {
		*list = slices.DeleteFunc(*list, unnamed)
	}
	// Until the change, the answer changes each time the first slot of a clock time ends.
	if now.Before(change.At) {
		next := later(booking.NextMark(now, zone), change.At.Add(change.By).Add(booking.SlotLength))
		if v.Basis.Expires.IsZero() || next.Before(v.Basis.Expires) {
			v.Basis.Expires = next
		}
	}
}

// Unchanged reports whether Availability would return the same again.
func (s *Service) Unchanged(ctx context.Context, basis Basis) (bool, error) {
	return s.DB.Unchanged(ctx, basis, s.now())
}

// slotsUsual is the number of slots of a one-hour reservation, the most common length.
const slotsUsual = 6

func (v *Availability) occupy(taken []postgres.Occupancy, window booking.Interval) {
	number := make(map[booking.RoomID]int, len(v.Branch.Rooms))
	empty := make(map[booking.RoomID]time.Duration, len(v.Branch.Rooms))
	for _, room := range v.Branch.Rooms {
		number[room.ID], empty[room.ID] = room.No, room.Margin()
	}
	// Reservations of a room do not overlap, so sorting them by start also sorts their slots.
	slices.SortFunc(taken, func(a, b postgres.Occupancy) int {
		if a.Room != b.Room {
			return cmp.Compare(number[a.Room], number[b.Room])
		}
		return a.Start.Compare(b.Start)
	})
	for i, o := range taken {
		slots, margin := &v.Paid, &v.PaidMargin
		switch o.State {
		case booking.Hold, booking.Confirming, booking.WaitingForDeposit:
			slots, margin = &v.Booking, &v.BookingMargin
		}
		if *slots == nil { // growing these lists would cause most of a look-up's garbage
			*slots = make([]OccupiedSlot, 0, len(taken)*slotsUsual)
			*margin = make([]booking.Slot, 0, 2*len(taken))
		}
		no := number[o.Room]
		for _, start := range o.Slots() {
			if window.Contains(start) {
				*slots = append(*slots, OccupiedSlot{booking.Slot{Room: no, Start: start}, o.ID})
			}
		}
		before, after := o.Margins(empty[o.Room])
		for side, span := range [2]booking.Interval{before, after} {
			if extended(taken, i, side) {
				continue
			}
			for start := span.Start; start.Before(span.End); start = start.Add(booking.SlotLength) {
				if window.Contains(start) {
					*margin = append(*margin, booking.Slot{Room: no, Start: start})
				}
			}
		}
	}
	v.BookingMargin = booking.SortSlots(v.BookingMargin)
	v.PaidMargin = booking.SortSlots(v.PaidMargin)
}

// extended reports whether the margin of an occupancy on a side, 0 before and 1 after, belongs to the same stay: it is a slot
// of the reservation that it extends, or of its extension.
func extended(taken []postgres.Occupancy, i, side int) bool {
	other := i - 1 + 2*side
	if other < 0 || other >= len(taken) || taken[other].Room != taken[i].Room {
		return false
	}
	if side == 0 {
		return taken[other].End.Equal(taken[i].Start)
	}
	return taken[other].Start.Equal(taken[i].End)
}

func (v *Availability) close(window booking.Interval) {
	breaks := v.Branch.Schedule.BreakSlots(window, v.Branch.Zone)
	closed := v.Branch.Schedule.ClosedSlots(window, v.Branch.Zone)
	for _, room := range v.Branch.Rooms {
		for _, start := range breaks {
			v.BreakTime = append(v.BreakTime, booking.Slot{Room: room.No, Start: start})
		}
		for _, start := range closed {
			v.ClosedTime = append(v.ClosedTime, booking.Slot{Room: room.No, Start: start})
		}
	}
}

// Calendar returns the status of each day of a month.
func (s *Service) Calendar(ctx context.Context, code string, year int, month time.Month) ([]CalendarDay, error) {
	branch, err := s.DB.Branch(ctx, code)
	if err != nil {
		return nil, err
	}
	var days []CalendarDay
	for d := (booking.Date{Year: year, Month: month, Day: 1}); d.Month == month; d = d.AddDays(1) {
		days = append(days, CalendarDay{d, branch.Schedule.Day(d)})
	}
	return days, nil
}

// CalendarDay is a day of the calendar.
type CalendarDay struct {
	booking.Date
	booking.DayStatus
}
