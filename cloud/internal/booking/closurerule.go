package booking

import (
	"slices"
	"time"
)

// ClosureYears is for how long a recurring closure is entered in the calendar.
const ClosureYears = 2

// ClosureRule describes closed days: one span of days, the nth weekday of each month, or a day of each year. Exactly one form
// is set.
type ClosureRule struct {
	From, To Date // both included

	Weekday time.Weekday
	Nth     int // 1 to 5; a month without a fifth one has none

	Yearly Date // its year does not count
}

// Closures returns the closures of a rule from a day on. A recurring rule is entered for ClosureYears.
func (r ClosureRule) Closures(today Date, reason string) (list []Closure) {
	if r.From != (Date{}) {
		return []Closure{{From: r.From, To: r.To, Reason: reason}}
	}
	last := Date{Year: today.Year + ClosureYears, Month: today.Month, Day: today.Day}
	for d := today; d.Before(last); d = d.AddDays(1) {
		if r.matches(d) {
			list = append(list, Closure{From: d, To: d, Reason: reason})
		}
	}
	return list
}

func (r ClosureRule) matches(d Date) bool {
	if r.Nth > 0 {
		return d.Weekday() == r.Weekday && (d.Day-1)/7+1 == r.Nth
	}
	return d.Month == r.Yearly.Month && d.Day == r.Yearly.Day
}

// WithoutClosures returns the schedule without some closures.
func (s Schedule) WithoutClosures(some []Closure) Schedule {
	s.Closures = slices.DeleteFunc(slices.Clone(s.Closures), func(c Closure) bool { return slices.Contains(some, c) })
	return s
}

// WithClosures returns the schedule with further closures, each once, in order of time. If several begin on a day, the latest addition
// is the last, whose reason the day has.
func (s Schedule) WithClosures(more []Closure) Schedule {
	all := append(s.WithoutClosures(more).Closures, more...)
	slices.SortStableFunc(all, func(a, b Closure) int {
		switch {
		case a.From.Before(b.From):
			return -1
		case b.From.Before(a.From):
			return 1
		}
		return 0
	})
	s.Closures = all
	return s
}
