package booking

import "time"

// WallClock returns the reading of the clock of a zone, in UTC, as in [LocalInterval].
func WallClock(t time.Time, zone *time.Location) time.Time {
	local := t.In(zone)
	year, month, day := local.Date()
	hour, minute, second := local.Clock()
	return time.Date(year, month, day, hour, minute, second, 0, time.UTC)
}

// reading is a time on the wall clock of a zone. Usually first is the only moment at which the clock shows it. If the clock
// shows it twice, because it was set back, last is the second moment. If the clock skips it, both are the moment of the change.
type reading struct {
	first, last time.Time
	skipped     bool
}

// readClock finds the moments at which the clock of a zone shows a time. wall is in UTC, as in [LocalInterval].
func readClock(wall time.Time, zone *time.Location) reading {
	year, month, day := wall.Date()
	hour, minute, second := wall.Clock()
	// Near a change, time.Date returns one of the two moments, or a moment beside the skipped time; which one depends on the zone.
	t := time.Date(year, month, day, hour, minute, second, 0, zone)
	since, until := t.ZoneBounds()
	shown := WallClock(t, zone).Equal(wall)
	const far = 24 * time.Hour // no change is larger
	if shown && (since.IsZero() || t.Sub(since) > far) && (until.IsZero() || until.Sub(t) > far) {
		return reading{first: t, last: t}
	}
	if !shown {
		if WallClock(t, zone).Before(wall) {
			return reading{until, until, true}
		}
		return reading{since, since, true}
	}
	r := reading{first: t, last: t}
	if !since.IsZero() {
		if earlier := withOffsetOf(since.Add(-1), wall); earlier.Before(since) {
			r.first = earlier
		}
	}
	if !until.IsZero() {
		if later := withOffsetOf(until, wall); !later.Before(until) {
			r.last = later
		}
	}
	return r
}

// withOffsetOf returns the moment at which a clock with the offset of another moment shows a time.
func withOffsetOf(other, wall time.Time) time.Time {
	_, offset := other.Zone()
	return wall.Add(-time.Duration(offset) * time.Second).In(other.Location())
}

// ReadClock returns the moment at which the clock of a zone shows a time. wall is in UTC, as in [LocalInterval]. If the clock
// shows the time twice, it is the first moment after another one, or else the last moment. ErrNoLocalTime: the clock skips the
// time.
func ReadClock(wall time.Time, zone *time.Location, after time.Time) (time.Time, error) {
	r := readClock(wall, zone)
	if r.skipped {
		return r.first, ErrNoLocalTime
	}
	if r.first.After(after) {
		return r.first, nil
	}
	return r.last, nil
}

// A ClockChange is a change of the clocks of a zone, usually to or from summer time.
type ClockChange struct {
	At time.Time
	By time.Duration // negative: the clocks are set back
}

// ClockChange returns the change of the clocks within an interval or at one of its ends. No branch's clocks change twice
// within the longest window of a look-up.
func (i Interval) ClockChange(zone *time.Location) (change ClockChange, ok bool) {
	before := i.Start.Add(-1).In(zone)
	_, at := before.ZoneBounds()
	if at.IsZero() || at.After(i.End) {
		return ClockChange{}, false
	}
	_, from := before.Zone()
	_, to := at.Zone()
	return ClockChange{at, time.Duration(to-from) * time.Second}, true
}

// Interrupted returns the marks of the window, on the wall clock, in UTC, from which no slot can be reserved at a time: the clock of the zone
// skips the mark, or it changes before it shows the end of the slot, so that a request for the slot would mean a longer time.
func (w LocalWindow) Interrupted(zone *time.Location, now time.Time) (marks []time.Time) {
	for minute := w.Hour * 60; minute < (w.Hour+w.Hours)*60; minute += int(SlotLength / time.Minute) {
		wall := w.Date.At(minute, time.UTC)
		start, err := ReadClock(wall, zone, now.Add(-SlotLength))
		end, endErr := ReadClock(wall.Add(SlotLength), zone, start)
		if err != nil || endErr != nil || end.Sub(start) != SlotLength {
			marks = append(marks, wall)
		}
	}
	return marks
}
