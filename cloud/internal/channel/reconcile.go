package channel

import (
	"cmp"
	"slices"
	"time"
)

const (
	// missesToCancel successive complete calendars must lack a booking before it counts
	// as cancelled: feeds lose entries for a moment.
	missesToCancel = 2
	// A calendar that lacks more than half of what it held last time, and at least
	// vanishMinimum entries, is taken for broken. Below the minimum the share says
	// nothing: one cancellation may well be all there was.
	vanishMinimum = 3
)

// Known is a booking of a feed as it was stored after the last pull. Only live ones
// are given; a cancelled booking that comes back is a new one.
type Known struct {
	ExternalID string
	Start, End time.Time
	Missed     int // successive complete calendars without it
}

// Plan is what to do after a pull. Every booking is in at most one of the lists.
type Plan struct {
	Add    []Booking // new
	Change []Booking // known, at other times
	Cancel []string  // ended by the channel: external ids
	Seen   []string  // known, unchanged: set their Missed to 0
	Miss   []string  // missing for the first time: add 1 to their Missed
	// Suspicious: too much is missing at once. Nothing was counted as missing; tell a person.
	Suspicious bool
	// Cursor is the one to store. It is zero after a calendar that proved nothing, so that
	// the next pull reads everything again.
	Cursor Cursor
}

// Reconcile compares a calendar with what was known of it. It cancels what the calendar
// marks as cancelled, and what has not begun and is missing from it for the second time
// in a row. A calendar with problems never counts as missing anything.
func Reconcile(known []Known, pulled Pulled, now time.Time) Plan {
	if pulled.Unchanged {
		return unchanged(known, pulled.Cursor, now)
	}
	var plan Plan
	byID := make(map[string]Known, len(known))
	for _, k := range known {
		byID[k.ExternalID] = k
	}
	there := make(map[string]bool, len(pulled.Bookings))
	for _, b := range pulled.Bookings {
		if there[b.ExternalID] {
			continue
		}
		there[b.ExternalID] = true
		k, isKnown := byID[b.ExternalID]
		switch {
		case b.Cancelled && isKnown:
			plan.Cancel = append(plan.Cancel, b.ExternalID)
		case b.Cancelled:
		case !isKnown:
			plan.Add = append(plan.Add, b)
		case !k.Start.Equal(b.Start) || !k.End.Equal(b.End):
			plan.Change = append(plan.Change, b)
		default:
			plan.Seen = append(plan.Seen, b.ExternalID)
		}
	}
	if len(pulled.Problems) == 0 {
		plan.missing(known, there, now)
	}
	if len(pulled.Problems) == 0 && !plan.Suspicious {
		plan.Cursor = pulled.Cursor
	}
	slices.SortFunc(plan.Add, byTime)
	slices.SortFunc(plan.Change, byTime)
	return plan
}

// unchanged is the plan for a calendar that is still the one read last time: what that
// one held it holds, and what it lacked it lacks again.
func unchanged(known []Known, cursor Cursor, now time.Time) Plan {
	plan := Plan{Cursor: cursor}
	for _, k := range known {
		switch {
		case k.Missed == 0:
			plan.Seen = append(plan.Seen, k.ExternalID)
		case k.Start.After(now):
			plan.Cancel = append(plan.Cancel, k.ExternalID)
		}
	}
	return plan
}

// missing counts the bookings that are gone from a complete calendar.
func (p *Plan) missing(known []Known, there map[string]bool, now time.Time) {
	var present, vanished int // of those the last calendar held
	var first, again []string
	for _, k := range known {
		if !k.Start.After(now) {
			continue // calendars drop what has begun
		}
		gone := !there[k.ExternalID]
		if k.Missed == 0 {
			present++
			if gone {
				vanished++
			}
		}
		switch {
		case !gone:
		case k.Missed+1 >= missesToCancel:
			again = append(again, k.ExternalID)
		default:
			first = append(first, k.ExternalID)
		}
	}
	if vanished >= vanishMinimum && 2*vanished > present {
		p.Suspicious = true
		return
	}
	p.Miss = first
	p.Cancel = append(p.Cancel, again...)
}

func byTime(a, b Booking) int {
	return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ExternalID, b.ExternalID))
}
