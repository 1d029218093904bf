package booking_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func TestNewInterval(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, start, end string
		want             error
	}{
		{"one slot", "2026-11-21 15:00", "2026-11-21 15:10", nil},
		{"five hours", "2026-11-21 10:00", "2026-11-21 15:00", nil},
		{"five hours ten", "2026-11-21 10:00", "2026-11-21 15:10", booking.ErrTooLong},
		{"a year", "2026-11-21 10:00", "2027-11-21 10:00", booking.ErrTooLong},
		{"nothing", "2026-11-21 15:00", "2026-11-21 15:00", booking.ErrEndBeforeStart},
		{"backwards", "2026-11-21 15:10", "2026-11-21 15:00", booking.ErrEndBeforeStart},
		{"a year backwards", "2027-11-21 10:00", "2026-11-21 10:00", booking.ErrEndBeforeStart},
		{"start off by a minute", "2026-11-21 15:01", "2026-11-21 16:00", booking.ErrOffGrid},
		{"end off by a minute", "2026-11-21 15:00", "2026-11-21 15:59", booking.ErrOffGrid},
		{"start off by a second", "2026-11-21 15:00:01", "2026-11-21 16:00", booking.ErrOffGrid},
		{"end off by a second", "2026-11-21 15:00", "2026-11-21 15:59:59", booking.ErrOffGrid},
		{"over midnight", "2026-11-21 23:50", "2026-11-22 00:10", nil},
		{"up to midnight", "2026-11-21 23:50", "2026-11-22 00:00", nil},
		{"over the end of a month", "2026-11-30 23:00", "2026-12-01 04:00", nil},
		{"over the end of a month, too long", "2026-11-30 23:00", "2026-12-01 04:10", booking.ErrTooLong},
		{"over the end of a year", "2026-12-31 23:00", "2027-01-01 04:00", nil},
		{"over the end of a year, too long", "2026-12-31 23:00", "2027-01-01 04:10", booking.ErrTooLong},
		{"into a leap day", "2028-02-28 23:00", "2028-02-29 04:00", nil},
		{"out of a leap day", "2028-02-29 23:00", "2028-03-01 04:00", nil},
		{"over a leap day", "2028-02-28 23:00", "2028-03-01 01:00", booking.ErrTooLong},
		{"no leap day", "2027-02-28 23:00", "2027-03-01 04:00", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			inZones(t, func(t *testing.T, zone *time.Location) {
				i, err := booking.NewInterval(at(test.start, zone), at(test.end, zone), zone)
				if !errors.Is(err, test.want) {
					t.Fatalf("error %v, want %v", err, test.want)
				}
				want := booking.Interval{}
				if test.want == nil {
					want = span(test.start, test.end, zone)
				}
				if diff := cmp.Diff(want, i); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestNewIntervalRefusesNanoseconds(t *testing.T) {
	t.Parallel()
	start := at("2026-11-21 15:00", seoul)
	if _, err := booking.NewInterval(start.Add(time.Nanosecond), start.Add(time.Hour), seoul); !errors.Is(err, booking.ErrOffGrid) {
		t.Errorf("error %v", err)
	}
}

// The marks are those of local clocks: 15:00 in Kathmandu is 09:15 UTC.
func TestGridIsLocal(t *testing.T) {
	t.Parallel()
	kathmandu := zone("Asia/Kathmandu")
	start, end := at("2026-11-21 15:00", kathmandu), at("2026-11-21 16:00", kathmandu)
	if _, err := booking.NewInterval(start, end, kathmandu); err != nil {
		t.Errorf("in Kathmandu: %v", err)
	}
	if _, err := booking.NewInterval(start, end, time.UTC); !errors.Is(err, booking.ErrOffGrid) {
		t.Errorf("in UTC: %v", err)
	}
}

// A length is elapsed time, not a difference of clock times.
func TestClockChangeNights(t *testing.T) {
	t.Parallel()
	spring := span("2026-03-08 01:30", "2026-03-08 03:30", newYork) // 02:00 becomes 03:00
	want := []string{"03-08 01:30", "03-08 01:40", "03-08 01:50", "03-08 03:00", "03-08 03:10", "03-08 03:20"}
	if diff := cmp.Diff(want, clocks(spring.Slots(), newYork)); diff != "" {
		t.Error(diff)
	}
	if got := spring.Length(); got != time.Hour {
		t.Errorf("spring: length %s", got)
	}
	// 23:00 to 04:00 is six hours when 02:00 becomes 01:00, and four in spring.
	if _, err := booking.NewInterval(at("2026-10-31 23:00", newYork), at("2026-11-01 04:00", newYork), newYork); !errors.Is(err, booking.ErrTooLong) {
		t.Errorf("autumn: %v", err)
	}
	if _, err := booking.NewInterval(at("2026-03-07 23:00", newYork), at("2026-03-08 05:00", newYork), newYork); err != nil {
		t.Errorf("spring: %v", err)
	}
}

func TestInterval(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, start, end  string
		slots             []string
		before, after     string // margins
		occupiedEnd, last string
	}{
		{
			"afternoon", "2026-11-21 15:00", "2026-11-21 15:30",
			[]string{"11-21 15:00", "11-21 15:10", "11-21 15:20"},
			"11-21 14:50", "11-21 15:30", "11-21 15:40", "11-21 15:20",
		},
		{
			"one slot", "2026-11-21 15:00", "2026-11-21 15:10",
			[]string{"11-21 15:00"},
			"11-21 14:50", "11-21 15:10", "11-21 15:20", "11-21 15:00",
		},
		{
			"over midnight", "2026-11-21 23:50", "2026-11-22 00:10",
			[]string{"11-21 23:50", "11-22 00:00"},
			"11-21 23:40", "11-22 00:10", "11-22 00:20", "11-22 00:00",
		},
		{
			"from midnight", "2026-11-21 00:00", "2026-11-21 00:10",
			[]string{"11-21 00:00"},
			"11-20 23:50", "11-21 00:10", "11-21 00:20", "11-21 00:00",
		},
		{
			"to midnight at the end of the year", "2026-12-31 23:40", "2027-01-01 00:00",
			[]string{"12-31 23:40", "12-31 23:50"},
			"12-31 23:30", "01-01 00:00", "01-01 00:10", "12-31 23:50",
		},
		{
			"into a leap day", "2028-02-28 23:50", "2028-02-29 00:00",
			[]string{"02-28 23:50"},
			"02-28 23:40", "02-29 00:00", "02-29 00:10", "02-28 23:50",
		},
		{
			"out of a leap day", "2028-02-29 23:50", "2028-03-01 00:10",
			[]string{"02-29 23:50", "03-01 00:00"},
			"02-29 23:40", "03-01 00:10", "03-01 00:20", "03-01 00:00",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			inZones(t, func(t *testing.T, zone *time.Location) {
				i := span(test.start, test.end, zone)
				before, after := i.Margins(booking.Margin)
				occupied := i.Occupied(booking.Margin)
				got := slices.Concat(i.Slots(), before.Slots(), after.Slots(), []time.Time{occupied.Start, occupied.End, i.StoredEnd()})
				want := slices.Concat(test.slots, []string{test.before, test.after, test.slots[0], test.occupiedEnd, test.last})
				if diff := cmp.Diff(want, clocks(got, zone)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	a := span("2026-11-21 15:00", "2026-11-21 16:00", seoul)
	for _, test := range []struct {
		start, end string
		overlaps   bool // itself
		clashes    bool // its occupied time
	}{
		{"2026-11-21 13:00", "2026-11-21 14:50", false, false},
		{"2026-11-21 13:00", "2026-11-21 15:00", false, true},
		{"2026-11-21 13:00", "2026-11-21 15:10", true, true},
		{"2026-11-21 15:20", "2026-11-21 15:30", true, true},
		{"2026-11-21 14:00", "2026-11-21 17:00", true, true},
		{"2026-11-21 15:00", "2026-11-21 16:00", true, true},
		{"2026-11-21 15:50", "2026-11-21 17:00", true, true},
		{"2026-11-21 16:00", "2026-11-21 17:00", false, true},
		{"2026-11-21 16:10", "2026-11-21 17:00", false, false},
	} {
		b := span(test.start, test.end, seoul)
		if got := a.Overlaps(b); got != test.overlaps || b.Overlaps(a) != got {
			t.Errorf("%s to %s: overlaps %t, reversed %t, want %t", test.start, test.end, got, b.Overlaps(a), test.overlaps)
		}
		if got := a.Occupied(booking.Margin).Overlaps(b.Occupied(booking.Margin)); got != test.clashes {
			t.Errorf("%s to %s: clashes %t, want %t", test.start, test.end, got, test.clashes)
		}
	}
}

func TestContains(t *testing.T) {
	t.Parallel()
	i := span("2026-11-21 15:00", "2026-11-21 16:00", seoul)
	for _, test := range []struct {
		at   time.Time
		want bool
	}{
		{i.Start.Add(-1), false},
		{i.Start, true},
		{i.End.Add(-1), true},
		{i.End, false},
	} {
		if got := i.Contains(test.at); got != test.want {
			t.Errorf("Contains(%s) = %t", test.at, got)
		}
	}
}

func TestCheckStart(t *testing.T) {
	t.Parallel()
	inZones(t, func(t *testing.T, zone *time.Location) {
		i := span("2027-01-01 00:00", "2027-01-01 01:00", zone)
		for _, test := range []struct {
			now  time.Time
			want error
		}{
			{at("2026-12-31 23:59:59", zone), nil},
			{at("2027-01-01 00:00", zone), nil},
			{at("2027-01-01 00:09:59", zone), nil},
			{at("2027-01-01 00:10", zone).Add(-1), nil},
			{at("2027-01-01 00:10", zone), booking.ErrPast},
			{at("2027-01-01 00:30", zone), booking.ErrPast},
			{at("2028-01-01 00:00", zone), booking.ErrPast},
		} {
			if err := booking.CheckStart(i, test.now); !errors.Is(err, test.want) {
				t.Errorf("at %s: %v, want %v", test.now, err, test.want)
			}
		}
	})
}

func TestCheckHorizon(t *testing.T) {
	t.Parallel()
	now := at("2026-11-21 15:00", seoul)
	for _, test := range []struct {
		start string
		want  error
	}{
		{"2026-11-21 15:00", nil},
		{"2027-01-20 14:50", nil},
		{"2027-01-20 15:00", nil}, // sixty days to the minute
		{"2027-01-20 15:10", booking.ErrBeyondHorizon},
		{"2028-02-29 00:00", booking.ErrBeyondHorizon},
	} {
		i := booking.Interval{Start: at(test.start, seoul), End: at(test.start, seoul).Add(time.Hour)}
		if err := booking.CheckHorizon(i, now, booking.DefaultHorizon); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.start, err, test.want)
		}
	}
	edge := booking.Interval{Start: now.Add(booking.DefaultHorizon + 1)}
	if err := booking.CheckHorizon(edge, now, booking.DefaultHorizon); !errors.Is(err, booking.ErrBeyondHorizon) {
		t.Errorf("a nanosecond beyond: %v", err)
	}
}

// A customer may start in any slot that has not ended, the current one and all later ones, as long as the doors of the stay can open.
func TestCheckStartAllowsTheRunningSlot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := anyZone.Draw(t, "zone")
		i := intervalIn(zone).Draw(t, "interval")
		now := i.Start.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "ago")))
		running := booking.Interval{Start: i.Start, End: i.Start.Add(booking.SlotLength)}.Contains(now)
		future, opens := i.Start.After(now), now.Before(i.End.Add(-booking.UnlockLead))
		if err := booking.CheckStart(i, now); (err == nil) != ((running || future) && opens) {
			t.Fatalf("running %t, future %t, opens %t: %v", running, future, opens, err)
		}
	})
}

func TestSlotsCoverTheInterval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := anyZone.Draw(t, "zone")
		i := intervalIn(zone).Draw(t, "interval")
		slots := i.Slots()
		next := i.Start
		for _, start := range slots {
			if !start.Equal(next) {
				t.Fatalf("slot at %s, want %s", start, next)
			}
			if start.In(zone).Minute()%10 != 0 {
				t.Fatalf("slot at %s is off the marks", start.In(zone))
			}
			if !i.Contains(start) {
				t.Fatalf("slot at %s lies outside", start)
			}
			next = next.Add(booking.SlotLength)
		}
		if !next.Equal(i.End) {
			t.Fatalf("slots end at %s, the interval at %s", next, i.End)
		}
		if last := slots[len(slots)-1]; !last.Equal(i.StoredEnd()) {
			t.Fatalf("last slot at %s, stored end %s", last, i.StoredEnd())
		}
		before, after := i.Margins(booking.Margin)
		if before.Overlaps(i) || after.Overlaps(i) {
			t.Fatalf("margins %v and %v lie inside", before, after)
		}
	})
}

// Two reservations of a room may coexist if and only if
//   - their occupied times do not overlap (the constraint of the database),
//   - neither takes a slot or a margin of the other (what customers see),
//   - at least the room's margin lies between them (the rule).
func TestMarginsAndOverlapAreOneRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := anyZone.Draw(t, "zone")
		a := intervalIn(zone).Draw(t, "a")
		near := a.Start.Add(time.Duration(rapid.IntRange(-40, 40).Draw(t, "near")) * booking.SlotLength)
		b := longFrom(t, near, zone)

		margin := time.Duration(rapid.IntRange(10, 60).Draw(t, "margin")) * time.Minute
		occupied := !a.Occupied(margin).Overlaps(b.Occupied(margin))
		shown := !taken(a, b, margin) && !taken(b, a, margin)
		apart := !b.Start.Before(a.End.Add(margin)) || !a.Start.Before(b.End.Add(margin))

		if occupied != shown || occupied != apart {
			t.Fatalf("%v and %v: by occupied %t, by slots %t, by distance %t", a, b, occupied, shown, apart)
		}
		if reversed := !b.Occupied(margin).Overlaps(a.Occupied(margin)); occupied != reversed {
			t.Fatal("not symmetric")
		}
	})
}

// taken reports whether b needs a slot that a takes or keeps empty.
func taken(a, b booking.Interval, margin time.Duration) bool {
	before, after := a.Margins(margin)
	unselectable := slices.Concat(a.Slots(), before.Slots(), after.Slots())
	return slices.ContainsFunc(b.Slots(), func(slot time.Time) bool {
		return slices.ContainsFunc(unselectable, slot.Equal)
	})
}

// TestDivide: each part keeps its length, the last one takes up the difference, and no part is shorter than a slot.
func TestDivide(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for _, c := range []struct {
		whole         time.Duration
		lengths, want []time.Duration // no want: refused
	}{
		{60 * m, []time.Duration{60 * m}, []time.Duration{60 * m}},
		{90 * m, []time.Duration{60 * m}, []time.Duration{90 * m}},
		{90 * m, []time.Duration{60 * m, 30 * m}, []time.Duration{60 * m, 30 * m}},
		{120 * m, []time.Duration{60 * m, 30 * m}, []time.Duration{60 * m, 60 * m}},
		{70 * m, []time.Duration{60 * m, 30 * m}, []time.Duration{60 * m, 10 * m}},
		{60 * m, []time.Duration{60 * m, 30 * m}, []time.Duration{50 * m, 10 * m}},
		{60 * m, []time.Duration{60 * m, 30 * m, 10 * m}, []time.Duration{40 * m, 10 * m, 10 * m}},
		{30 * m, []time.Duration{60 * m, 30 * m, 10 * m}, []time.Duration{10 * m, 10 * m, 10 * m}},
		{20 * m, []time.Duration{60 * m, 30 * m, 10 * m}, nil},
	} {
		start := at("2026-11-28 10:00", seoul)
		parts, ok := booking.Divide(booking.Interval{Start: start, End: start.Add(c.whole)}, c.lengths)
		var lengths []time.Duration
		for _, part := range parts {
			if !part.Start.Equal(start) {
				t.Errorf("%v into %v: a gap before %s", c.whole, c.lengths, part.Start)
			}
			lengths = append(lengths, part.Length())
			start = part.End
		}
		if !slices.Equal(lengths, c.want) || ok != (c.want != nil) {
			t.Errorf("%v into %v: %v, want %v", c.whole, c.lengths, lengths, c.want)
		}
	}
}

// TestMarks: the marks are those of the local clock, which in Kathmandu are not UTC's.
func TestMarks(t *testing.T) {
	t.Parallel()
	kathmandu := zone("Asia/Kathmandu")
	for _, c := range []struct{ now, last, next string }{
		{"2026-11-28 10:00", "2026-11-28 10:00", "2026-11-28 10:10"},
		{"2026-11-28 10:00:59", "2026-11-28 10:00", "2026-11-28 10:10"},
		{"2026-11-28 10:09:59", "2026-11-28 10:00", "2026-11-28 10:10"},
		{"2026-11-28 23:59", "2026-11-28 23:50", "2026-11-29 00:00"},
	} {
		for _, zone := range append(zones, kathmandu) {
			now := at(c.now, zone).Add(time.Nanosecond).UTC()
			if got := booking.LastMark(now, zone); !got.Equal(at(c.last, zone)) {
				t.Errorf("%s in %s: last mark %s, want %s", c.now, zone, got, c.last)
			}
			if got := booking.NextMark(now, zone); !got.Equal(at(c.next, zone)) {
				t.Errorf("%s in %s: next mark %s, want %s", c.now, zone, got, c.next)
			}
		}
	}
}

// TestMarginsAreWholeSlots: a turnover of 15 minutes keeps two slots empty on both sides.
func TestMarginsAreWholeSlots(t *testing.T) {
	t.Parallel()
	stay := span("2026-11-28 10:00", "2026-11-28 11:00", seoul)
	for _, c := range []struct{ margin, empty time.Duration }{
		{10 * time.Minute, 10 * time.Minute}, {11 * time.Minute, 20 * time.Minute}, {15 * time.Minute, 20 * time.Minute},
		{20 * time.Minute, 20 * time.Minute}, {60 * time.Minute, 60 * time.Minute},
	} {
		before, after := stay.Margins(c.margin)
		equal(t, c.margin.String()+" before", before, booking.Interval{Start: stay.Start.Add(-c.empty), End: stay.Start})
		equal(t, c.margin.String()+" after", after, booking.Interval{Start: stay.End, End: stay.End.Add(c.empty)})
	}
}

// TestLocalInterval reads clock times in a zone. On the night of 14 March 2027, clocks in New York go from 2:00 to 3:00.
func TestLocalInterval(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		start, end string
		want       error
	}{
		{"2027-03-14 01:00", "2027-03-14 01:50", nil},
		{"2027-03-14 01:00", "2027-03-14 03:00", nil},
		{"2027-03-14 01:50", "2027-03-14 02:10", booking.ErrNoLocalTime},
		{"2027-03-14 02:30", "2027-03-14 03:30", booking.ErrNoLocalTime},
		{"2027-03-14 01:00", "2027-03-14 01:05", booking.ErrOffGrid},
	} {
		local := booking.LocalInterval{Start: at(c.start, time.UTC), End: at(c.end, time.UTC)}
		got, err := local.In(newYork, local.Start.Add(-48*time.Hour))
		if !errors.Is(err, c.want) {
			t.Errorf("%s to %s: %v, want %v", c.start, c.end, err, c.want)
		}
		if c.want == nil {
			equal(t, c.start, got, span(c.start, c.end, newYork))
		}
	}
}

func TestLocalWindow(t *testing.T) {
	t.Parallel()
	window := booking.LocalWindow{Date: date("2026-11-28"), Hour: 22, Hours: 3}
	equal(t, "the window", window.In(seoul), span("2026-11-28 22:00", "2026-11-29 01:00", seoul))
}
