package booking

import "time"

const (
	// Margin is the time for which a room stays empty after a reservation, unless its turnover takes longer, and MaxMargin
	// the longest turnover (docs/specification.md, Slots 3).
	Margin    = SlotLength
	MaxMargin = time.Hour

	// MaxLength is the longest reservation (docs/specification.md, Limits).
	MaxLength = 5 * time.Hour
)

// An Interval is the time from Start up to, but not including, End. End is the real end, never the stored one.
type Interval struct {
	Start, End time.Time
}

// NewInterval checks what depends on neither a branch nor a clock. It returns ErrOffGrid if start or end is not on a
// ten-minute mark in the branch's zone, ErrEndBeforeStart if the interval is empty or negative, and ErrTooLong if it
// exceeds [MaxLength] (docs/specification.md, Time 3).
func NewInterval(start, end time.Time, zone *time.Location) (Interval, error) {
	return newInterval(start, end, zone, MaxLength)
}

func newInterval(start, end time.Time, zone *time.Location, longest time.Duration) (Interval, error) {
	i := Interval{Start: start, End: end}
	switch {
	case !onGrid(start, zone) || !onGrid(end, zone):
		return Interval{}, ErrOffGrid
	case i.Length() <= 0:
		return Interval{}, ErrEndBeforeStart
	case i.Length() > longest:
		return Interval{}, ErrTooLong
	}
	return i, nil
}

// CheckStart returns ErrPast for an interval that starts before the current slot. The current slot may be reserved, for a
// guest who is at the door already, as long as its doors can still open (docs/specification.md, Time 4).
func CheckStart(i Interval, now time.Time) error {
	if firstSlotEnd := i.Start.Add(SlotLength); !now.Before(firstSlotEnd) || !now.Before(i.LastUnlock()) {
		return ErrPast
	}
	return nil
}

// LastUnlock is the end of the unlock window: from here on no door opens for the stay.
func (i Interval) LastUnlock() time.Time { return i.End.Add(-UnlockLead) }

// CheckHorizon returns ErrBeyondHorizon for an interval that starts more than horizon after now. It applies to customers
// only (docs/specification.md, Time 6).
func CheckHorizon(i Interval, now time.Time, horizon time.Duration) error {
	if i.Start.After(now.Add(horizon)) {
		return ErrBeyondHorizon
	}
	return nil
}

// Length is the time between start and end.
func (i Interval) Length() time.Duration { return i.End.Sub(i.Start) }

// Contains reports whether t is within the interval; its end is not.
func (i Interval) Contains(t time.Time) bool {
	return !t.Before(i.Start) && t.Before(i.End)
}

// Overlaps reports whether two intervals share any time. Adjacent intervals do not overlap.
func (i Interval) Overlaps(other Interval) bool {
	return i.Start.Before(other.End) && other.Start.Before(i.End)
}

// Equal reports whether both intervals have the same bounds.
func (i Interval) Equal(other Interval) bool {
	return i.Start.Equal(other.Start) && i.End.Equal(other.End)
}

// Slots returns the starts of the slots the interval covers: S, S+10, ..., E-10.
func (i Interval) Slots() []time.Time {
	starts := make([]time.Time, 0, max(0, i.End.Sub(i.Start)/SlotLength+1))
	for t := i.Start; t.Before(i.End); t = t.Add(SlotLength) {
		starts = append(starts, t)
	}
	return starts
}

// Margins returns the times around a reservation that stay empty in a room with a margin, in whole slots.
func (i Interval) Margins(margin time.Duration) (before, after Interval) {
	empty := (margin + SlotLength - 1).Truncate(SlotLength)
	return Interval{i.Start.Add(-empty), i.Start}, Interval{i.End, i.End.Add(empty)}
}

// Occupied returns the time for which a reservation occupies a room with a margin: until the margin after its end. Two
// reservations of a room conflict if and only if these overlap, which keeps them a margin apart on both sides.
func (i Interval) Occupied(margin time.Duration) Interval {
	return Interval{Start: i.Start, End: i.End.Add(margin)}
}

// StoredEnd returns the end as the interface's answers show it: the start of the last slot (docs/specification.md, Time 2).
func (i Interval) StoredEnd() time.Time { return i.End.Add(-SlotLength) }

// LastMark returns the last ten-minute mark of a zone that is not after now.
func LastMark(now time.Time, zone *time.Location) time.Time {
	local := now.In(zone).Truncate(time.Minute)
	return local.Add(-time.Duration(local.Minute()%10) * time.Minute)
}

// NextMark returns the first ten-minute mark of a zone after now.
func NextMark(now time.Time, zone *time.Location) time.Time {
	return LastMark(now, zone).Add(SlotLength)
}

// Divide divides an interval into adjacent parts. Each keeps its length, the last one takes up the difference; if less time is
// left, the last ones shrink to one slot. ok is false if there is not a slot for each.
func Divide(whole Interval, lengths []time.Duration) (parts []Interval, ok bool) {
	left := whole.Length()
	if left < time.Duration(len(lengths))*SlotLength {
		return nil, false
	}
	parts = make([]Interval, len(lengths))
	start := whole.Start
	for i, length := range lengths {
		others := time.Duration(len(lengths)-1-i) * SlotLength
		if i == len(lengths)-1 || length > left-others {
			length = left - others
		}
		parts[i] = Interval{start, start.Add(length)}
		start, left = parts[i].End, left-length
	}
	return parts, true
}

// LocalInterval is a start and an end on the wall clock of a branch, whose zone is not known yet. Both times are in UTC and
// stand for their clock reading only.
type LocalInterval struct {
	Start, End time.Time
}

// In returns the interval in a zone as a request at a time means it, checked as by [NewInterval]. If the clock shows a start
// twice, the second moment is meant once the slot of the first is over; of an end, the first moment after the start.
// ErrNoLocalTime: the clock of the zone skips one of the times.
func (l LocalInterval) In(zone *time.Location, now time.Time) (Interval, error) {
	return l.UpTo(MaxLength, zone, now)
}

// UpTo is In for a stay that may be longer than a reservation, such as that of a partner's guest. ErrTooLong: it exceeds longest.
func (l LocalInterval) UpTo(longest time.Duration, zone *time.Location, now time.Time) (Interval, error) {
	start, err := ReadClock(l.Start, zone, now.Add(-SlotLength))
	if err != nil {
		return Interval{}, err
	}
	end, err := ReadClock(l.End, zone, start)
	if err != nil {
		return Interval{}, err
	}
	return newInterval(start, end, zone, longest)
}
