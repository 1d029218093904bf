package booking

import "time"

const (
	// Margin is the time a room stays empty after a reservation
	// (interface.md, Limits).
	Margin = SlotLength

	// MaxLength is the longest reservation (interface.md, Limits).
	MaxLength = 5 * time.Hour
)

// An Interval is a stretch of time from Start up to, but not including, End.
// End is the real end, never the stored one.
type Interval struct {
	Start, End time.Time
}

// NewInterval checks what can be checked without a branch or a clock: ErrOffGrid
// when start or end is between two ten-minute marks in the zone of the branch,
// ErrEndBeforeStart when nothing or less is left, ErrTooLong over [MaxLength]
// (decisions.md 2).
func NewInterval(start, end time.Time, zone *time.Location) (Interval, error) {
	i := Interval{Start: start, End: end}
	switch {
	case !onGrid(start, zone) || !onGrid(end, zone):
		return Interval{}, ErrOffGrid
	case i.Length() <= 0:
		return Interval{}, ErrEndBeforeStart
	case i.Length() > MaxLength:
		return Interval{}, ErrTooLong
	}
	return i, nil
}

// CheckStart returns ErrPast for an interval that starts before the slot running
// now. That slot itself may be reserved: someone stands at the door
// (decisions.md 2).
func CheckStart(i Interval, now time.Time) error {
	if firstSlotEnd := i.Start.Add(SlotLength); !now.Before(firstSlotEnd) {
		return ErrPast
	}
	return nil
}

// CheckHorizon returns ErrBeyondHorizon for an interval that starts more than
// horizon after now. It binds customers only (decisions.md 2).
func CheckHorizon(i Interval, now time.Time, horizon time.Duration) error {
	if i.Start.After(now.Add(horizon)) {
		return ErrBeyondHorizon
	}
	return nil
}

// Length is the time between start and end.
func (i Interval) Length() time.Duration { return i.End.Sub(i.Start) }

// Contains reports whether t lies in the interval; its end does not.
func (i Interval) Contains(t time.Time) bool {
	return !t.Before(i.Start) && t.Before(i.End)
}

// Overlaps reports whether the two share any time. Touching is not sharing.
func (i Interval) Overlaps(other Interval) bool {
	return i.Start.Before(other.End) && other.Start.Before(i.End)
}

// Slots returns the starts of the slots the interval covers: S, S+10, ..., E-10.
func (i Interval) Slots() []time.Time {
	starts := make([]time.Time, 0, max(0, i.End.Sub(i.Start)/SlotLength+1))
	for t := i.Start; t.Before(i.End); t = t.Add(SlotLength) {
		starts = append(starts, t)
	}
	return starts
}

// Margins returns the starts of the two slots that stay empty around a
// reservation, S-10 and E.
func (i Interval) Margins() [2]time.Time {
	return [2]time.Time{i.Start.Add(-Margin), i.End}
}

// Occupied is how long a reservation keeps its room busy: until [Margin] after
// its end. Two reservations may stand in one room if and only if what they
// occupy does not overlap; that alone keeps them a margin apart on both sides.
func (i Interval) Occupied() Interval {
	return Interval{Start: i.Start, End: i.End.Add(Margin)}
}

// StoredEnd is what the interface calls the end in its answers: the start of the
// last slot (interface.md, Payment record).
func (i Interval) StoredEnd() time.Time { return i.End.Add(-SlotLength) }
