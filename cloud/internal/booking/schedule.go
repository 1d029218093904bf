package booking

import (
	"errors"
	"slices"
	"time"
)

// minutesPerDay is the length of a day by the clock.
const minutesPerDay = 24 * 60

// WeeklyDayOff is the reason that customers see for a weekly day off.
const WeeklyDayOff = "정기 휴무"

// A Schedule defines when a branch is open. The zero value is always open.
type Schedule struct {
	Week     [7]Day // by time.Weekday
	Closures []Closure

	ClosedOnHolidays bool
	OpenHolidays     []Date // public holidays on which the branch is open although ClosedOnHolidays is set

	// Public holidays are declared and moved at short notice, so a branch can add to the table of [KoreanHoliday] and remove
	// from it.
	ExtraHolidays   map[Date]string // with their names
	RemovedHolidays []Date
}

// A Day is the schedule of one weekday.
type Day struct {
	Closed bool
	Open   []ClockSpan // none: open for 24 hours
	Breaks []ClockSpan // no reservation may include a break
}

// A ClockSpan runs from one minute of a day up to another. To may lie past midnight: 18:00-02:00 is 1080 to 1560 and belongs
// to the day on which it begins.
type ClockSpan struct {
	From, To int
}

// A Closure closes a branch from one day to another, both included.
type Closure struct {
	From, To Date
	Reason   string
}

// CalendarStatus is the status of a day in the calendar (docs/specification.md, Slots 8).
type CalendarStatus string

// The statuses of a day.
const (
	Available CalendarStatus = "available"
	Closed    CalendarStatus = "closed"  // weekly day off, renovation
	Holiday   CalendarStatus = "holiday" // closed because of a public holiday
)

// DayStatus is a day in the calendar. Reason is why the branch is closed, or the name of the public holiday on which it is
// open; empty if neither applies.
type DayStatus struct {
	Status CalendarStatus
	Reason string
}

// Day returns the status of a day. If a day is closed for several reasons, the most specific one is given: a closure, then a
// holiday, then the weekly day off.
func (s Schedule) Day(d Date) DayStatus {
	for _, c := range slices.Backward(s.Closures) {
		if !d.Before(c.From) && !c.To.Before(d) {
			return DayStatus{Closed, c.Reason}
		}
	}
	holiday, isHoliday := s.holiday(d)
	switch {
	case isHoliday && s.ClosedOnHolidays && !slices.Contains(s.OpenHolidays, d):
		return DayStatus{Holiday, holiday}
	case s.Week[d.Weekday()].Closed:
		return DayStatus{Closed, WeeklyDayOff}
	}
	return DayStatus{Available, holiday}
}

func (s Schedule) holiday(d Date) (name string, ok bool) {
	if name, ok := s.ExtraHolidays[d]; ok {
		return name, true
	}
	if slices.Contains(s.RemovedHolidays, d) {
		return "", false
	}
	return KoreanHoliday(d)
}

// Check returns nil if the interval lies entirely within opening hours. Otherwise it returns the error of its first slot
// outside: a [ClosedError], ErrBreak or ErrAfterHours.
func (s Schedule) Check(i Interval, zone *time.Location) error {
	for _, slot := range i.Slots() {
		if err := s.checkSlot(slot, zone); err != nil {
			return err
		}
	}
	return nil
}

// BreakSlots returns the starts of the slots of the window that lie in a break.
func (s Schedule) BreakSlots(window Interval, zone *time.Location) []time.Time {
	return slices.DeleteFunc(window.Slots(), func(slot time.Time) bool {
		return !errors.Is(s.checkSlot(slot, zone), ErrBreak)
	})
}

// ClosedSlots returns the starts of the slots of the window on closed days and outside opening hours, breaks excluded.
func (s Schedule) ClosedSlots(window Interval, zone *time.Location) []time.Time {
	return slices.DeleteFunc(window.Slots(), func(slot time.Time) bool {
		err := s.checkSlot(slot, zone)
		return err == nil || errors.Is(err, ErrBreak)
	})
}

// checkSlot decides whether a slot can be reserved. A closed day is closed from midnight to midnight: hours of the previous
// evening do not extend into it, and it extends into no other day.
func (s Schedule) checkSlot(slot time.Time, zone *time.Location) error {
	date := DateOf(slot, zone)
	if status := s.Day(date); status.Status != Available {
		return &ClosedError{Date: date, DayStatus: status}
	}
	minute := minuteOf(slot, zone)
	today := s.Week[date.Weekday()]
	open := len(today.Open) == 0 || anyCovers(today.Open, minute)
	onBreak := anyCovers(today.Breaks, minute)
	if date := date.AddDays(-1); s.Day(date).Status == Available {
		yesterday := s.Week[date.Weekday()]
		open = open || anyCovers(yesterday.Open, minute+minutesPerDay)
		onBreak = onBreak || anyCovers(yesterday.Breaks, minute+minutesPerDay)
	}
	switch {
	case !open:
		return ErrAfterHours
	case onBreak:
		return ErrBreak
	}
	return nil
}

func minuteOf(t time.Time, zone *time.Location) int {
	local := t.In(zone)
	return 60*local.Hour() + local.Minute()
}

func anyCovers(spans []ClockSpan, minute int) bool {
	return slices.ContainsFunc(spans, func(c ClockSpan) bool {
		return c.From <= minute && minute < c.To
	})
}
