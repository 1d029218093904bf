package channel

import (
	"cmp"
	"slices"
	"time"
)

const (
	// A booking counts as cancelled after it was missing from missesToCancel successive complete calendars, because
	// feeds sometimes drop entries briefly.
	missesToCancel = 2
	// A calendar that lacks more than half of its previous entries, and at least vanishMinimum of them, is considered
	// broken. Below the minimum the ratio is not meaningful: a single cancellation may be the whole difference.
	vanishMinimum = 3
)

// Known is a booking of a feed as stored after the last pull. Only live bookings are passed, without those that have ended; a
// cancelled booking that reappears is a new one.
type Known struct {
	ExternalID string
	Start, End time.Time
	Missed     int // number of successive complete calendars without it
}

// Plan lists the changes to make after a pull. Each booking is in at most one of the lists.
type Plan struct {
	Add    []Booking // new
	Change []Booking // known, at a different time
	Cancel []string  // cancelled by the channel: external ids
	Seen   []string  // known and unchanged: reset Missed to 0
	Miss   []string  // missing: increment Missed
	// Suspicious means that too many bookings are missing at once. None of them was counted as missing; an operator
	// has to look at the feed.
	Suspicious bool
	// Cursor is the cursor to store. It is zero after an unreliable calendar, so that the next pull reads everything
	// again.
	Cursor Cursor
}

// Reconcile compares a calendar with the stored bookings. It cancels bookings that the calendar marks as cancelled or moves
// into the past, and future bookings that are missing for the second time in a row. A calendar with problems never counts as
// missing a booking. Bookings that have ended change nothing.
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
		case !b.End.After(now) && isKnown && k.Start.After(now):
			plan.Cancel = append(plan.Cancel, b.ExternalID)
		case !b.End.After(now) && isKnown: // in progress here; its reservation ends at the time known before
			plan.Seen = append(plan.Seen, b.ExternalID)
		case !b.End.After(now): // calendars keep bookings after their end, when they are not among the known ones any more
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

// unchanged returns the plan for a calendar that has not changed since the last pull: the same bookings are present,
// and the same ones are missing again.
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

// missing counts the bookings that a complete calendar no longer contains.
func (p *Plan) missing(known []Known, there map[string]bool, now time.Time) {
	var present, vanished int // of those in the previous calendar
	var first, again []string
	for _, k := range known {
		if !k.Start.After(now) {
			continue // calendars drop bookings that have begun
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
