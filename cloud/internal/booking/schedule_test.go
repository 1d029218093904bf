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

// hongdae is the demo branch with every feature: open 10:00 to 22:00, break 15:00 to 16:00, closed on Mondays and on public
// holidays.
func hongdae() booking.Schedule {
	s := booking.Schedule{ClosedOnHolidays: true}
	for weekday := range s.Week {
		s.Week[weekday] = booking.Day{
			Open:   []booking.ClockSpan{{From: 10 * 60, To: 22 * 60}},
			Breaks: []booking.ClockSpan{{From: 15 * 60, To: 16 * 60}},
		}
	}
	s.Week[time.Monday].Closed = true
	return s
}

// nights is open from 18:00 to 02:00 with a break around midnight, except on Sundays.
func nights() booking.Schedule {
	var s booking.Schedule
	for weekday := range s.Week {
		s.Week[weekday] = booking.Day{
			Open:   []booking.ClockSpan{{From: 1080, To: 1560}},
			Breaks: []booking.ClockSpan{{From: 1430, To: 1450}},
		}
	}
	s.Week[time.Sunday] = booking.Day{Closed: true}
	return s
}

func TestScheduleDay(t *testing.T) {
	t.Parallel()
	exceptions := hongdae()
	exceptions.Closures = []booking.Closure{
		{From: date("2026-12-24"), To: date("2026-12-26"), Reason: "내부 공사"},
		{From: date("2027-02-01"), To: date("2027-02-01")},
	}
	exceptions.OpenHolidays = []booking.Date{date("2027-01-01"), date("2027-02-08"), date("2027-04-07")}
	exceptions.ExtraHolidays = map[booking.Date]string{
		date("2026-12-30"): "임시공휴일",
		date("2027-04-07"): "보궐선거",
		date("2027-05-05"): "어린이날 (지역 행사)",
	}
	exceptions.RemovedHolidays = []booking.Date{date("2027-03-01"), date("2027-05-13"), date("2026-12-30")}

	open := booking.Schedule{}
	for _, test := range []struct {
		name     string
		schedule booking.Schedule
		date     string
		want     booking.DayStatus
	}{
		{"plain day", open, "2026-11-21", booking.DayStatus{Status: "available"}},
		{"open on a holiday", open, "2026-12-25", booking.DayStatus{Status: "available", Reason: "성탄절"}},
		{"open on a substitute", open, "2027-02-09", booking.DayStatus{Status: "available", Reason: "대체공휴일(설날)"}},
		{"weekday", hongdae(), "2026-11-24", booking.DayStatus{Status: "available"}},
		{"day off", hongdae(), "2026-11-23", booking.DayStatus{Status: "closed", Reason: booking.WeeklyDayOff}},
		{"holiday", hongdae(), "2026-12-25", booking.DayStatus{Status: "holiday", Reason: "성탄절"}},
		{"day before a holiday", hongdae(), "2026-12-24", booking.DayStatus{Status: "available"}},
		{"day after a holiday", hongdae(), "2026-12-26", booking.DayStatus{Status: "available"}},
		{"holiday on a day off", hongdae(), "2027-03-01", booking.DayStatus{Status: "holiday", Reason: "삼일절"}},
		{"leap day", hongdae(), "2028-02-29", booking.DayStatus{Status: "available"}},

		{"before a closure", exceptions, "2026-12-23", booking.DayStatus{Status: "available"}},
		{"first day of a closure", exceptions, "2026-12-24", booking.DayStatus{Status: "closed", Reason: "내부 공사"}},
		{"holiday in a closure", exceptions, "2026-12-25", booking.DayStatus{Status: "closed", Reason: "내부 공사"}},
		{"last day of a closure", exceptions, "2026-12-26", booking.DayStatus{Status: "closed", Reason: "내부 공사"}},
		{"after a closure", exceptions, "2026-12-27", booking.DayStatus{Status: "available"}},
		{"closure of a day, no reason", exceptions, "2027-02-01", booking.DayStatus{Status: "closed"}},
		{"declared holiday, even if also removed", exceptions, "2026-12-30", booking.DayStatus{Status: "holiday", Reason: "임시공휴일"}},
		{"renamed holiday", exceptions, "2027-05-05", booking.DayStatus{Status: "holiday", Reason: "어린이날 (지역 행사)"}},
		{"removed holiday", exceptions, "2027-05-13", booking.DayStatus{Status: "available"}},
		{"removed holiday on a day off", exceptions, "2027-03-01", booking.DayStatus{Status: "closed", Reason: booking.WeeklyDayOff}},
		{"open holiday", exceptions, "2027-01-01", booking.DayStatus{Status: "available", Reason: "신정"}},
		{"open declared holiday", exceptions, "2027-04-07", booking.DayStatus{Status: "available", Reason: "보궐선거"}},
		{"open holiday on a day off", exceptions, "2027-02-08", booking.DayStatus{Status: "closed", Reason: booking.WeeklyDayOff}},
	} {
		if diff := cmp.Diff(test.want, test.schedule.Day(date(test.date))); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestScheduleCheck(t *testing.T) {
	t.Parallel()
	monday := &booking.ClosedError{Date: date("2026-11-30"), DayStatus: booking.DayStatus{Status: booking.Closed, Reason: booking.WeeklyDayOff}}
	sunday := &booking.ClosedError{Date: date("2026-11-22"), DayStatus: booking.DayStatus{Status: booking.Closed, Reason: booking.WeeklyDayOff}}
	christmas := &booking.ClosedError{Date: date("2026-12-25"), DayStatus: booking.DayStatus{Status: booking.Holiday, Reason: "성탄절"}}
	always, early := booking.Schedule{}, hongdae()
	early.Week[time.Tuesday].Open = []booking.ClockSpan{{From: 0, To: 1440}}
	early.Week[time.Wednesday].Open = []booking.ClockSpan{{From: 0, To: 60}, {From: 120, To: 1440}}

	for _, test := range []struct {
		name, start, end string
		schedule         booking.Schedule
		want             error
	}{
		{"from opening", "2026-11-21 10:00", "2026-11-21 11:00", hongdae(), nil},
		{"before opening", "2026-11-21 09:50", "2026-11-21 11:00", hongdae(), booking.ErrAfterHours},
		{"up to closing", "2026-11-21 21:00", "2026-11-21 22:00", hongdae(), nil},
		{"past closing", "2026-11-21 21:00", "2026-11-21 22:10", hongdae(), booking.ErrAfterHours},
		{"up to the break", "2026-11-21 14:00", "2026-11-21 15:00", hongdae(), nil},
		{"into the break", "2026-11-21 14:00", "2026-11-21 15:10", hongdae(), booking.ErrBreak},
		{"in the break", "2026-11-21 15:20", "2026-11-21 15:30", hongdae(), booking.ErrBreak},
		{"over the break", "2026-11-21 14:50", "2026-11-21 16:10", hongdae(), booking.ErrBreak},
		{"out of the break", "2026-11-21 15:50", "2026-11-21 17:00", hongdae(), booking.ErrBreak},
		{"from the break", "2026-11-21 16:00", "2026-11-21 17:00", hongdae(), nil},
		{"on a day off", "2026-11-30 12:00", "2026-11-30 13:00", hongdae(), monday},
		{"in the break of a day off", "2026-11-30 15:00", "2026-11-30 16:00", hongdae(), monday},
		{"on a holiday", "2026-12-25 12:00", "2026-12-25 13:00", hongdae(), christmas},

		{"round the clock", "2026-11-21 22:00", "2026-11-22 03:00", always, nil},
		{"round the clock over the year", "2026-12-31 23:50", "2027-01-01 00:10", always, nil},
		{"round the clock into a leap day", "2028-02-28 23:50", "2028-02-29 00:10", always, nil},
		{"round the clock out of a leap day", "2028-02-29 23:50", "2028-03-01 00:10", always, nil},

		{"over midnight, open both days", "2026-11-24 23:00", "2026-11-25 01:00", early, nil},
		{"over midnight, too long for the second day", "2026-11-24 23:00", "2026-11-25 01:10", early, booking.ErrAfterHours},
		{"after the gap", "2026-11-25 02:00", "2026-11-25 03:00", early, nil},
		{"over midnight, second day opens later", "2026-11-25 23:00", "2026-11-26 00:10", early, booking.ErrAfterHours},
		{"up to midnight", "2026-11-25 23:00", "2026-11-26 00:00", early, nil},
		{"over midnight, first day off", "2026-11-30 23:50", "2026-12-01 00:10", early, monday},
		{"from midnight, the day before off", "2026-12-01 00:00", "2026-12-01 00:10", early, nil},

		{"night: opening", "2026-11-20 18:00", "2026-11-20 20:00", nights(), nil},
		{"night: too early", "2026-11-20 17:50", "2026-11-20 20:00", nights(), booking.ErrAfterHours},
		{"night: up to the break", "2026-11-20 22:00", "2026-11-20 23:50", nights(), nil},
		{"night: break before midnight", "2026-11-20 23:50", "2026-11-21 00:00", nights(), booking.ErrBreak},
		{"night: break after midnight", "2026-11-21 00:00", "2026-11-21 00:20", nights(), booking.ErrBreak},
		{"night: after the break", "2026-11-21 00:10", "2026-11-21 02:00", nights(), nil},
		{"night: past closing", "2026-11-21 00:10", "2026-11-21 02:10", nights(), booking.ErrAfterHours},
		{"night: Saturday's end falls on a closed day", "2026-11-22 00:10", "2026-11-22 02:00", nights(), sunday},
		{"night: a closed day brings nothing into the next", "2026-11-23 00:10", "2026-11-23 02:00", nights(), booking.ErrAfterHours},
		{"night: over the end of the year", "2027-01-01 00:10", "2027-01-01 02:00", nights(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			inZones(t, func(t *testing.T, zone *time.Location) {
				err := test.schedule.Check(span(test.start, test.end, zone), zone)
				var want *booking.ClosedError
				if errors.As(test.want, &want) {
					var got *booking.ClosedError
					if !errors.As(err, &got) || *got != *want || !errors.Is(err, booking.ErrClosed) {
						t.Fatalf("%v, want %v", err, want)
					}
				} else if !errors.Is(err, test.want) {
					t.Fatalf("%v, want %v", err, test.want)
				}
			})
		})
	}
}

func TestClosedErrorSaysWhy(t *testing.T) {
	t.Parallel()
	err := &booking.ClosedError{Date: date("2026-12-25"), DayStatus: booking.DayStatus{Status: booking.Holiday, Reason: "성탄절"}}
	if got, want := err.Error(), "booking: branch is closed on that day: 2026-12-25 holiday, 성탄절"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	err = &booking.ClosedError{Date: date("2027-02-01"), DayStatus: booking.DayStatus{Status: booking.Closed}}
	if got, want := err.Error(), "booking: branch is closed on that day: 2027-02-01 closed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestScheduleSlots(t *testing.T) {
	t.Parallel()
	inZones(t, func(t *testing.T, zone *time.Location) {
		for _, test := range []struct {
			name, start, end string
			schedule         booking.Schedule
			breaks, closed   []string
		}{
			{
				name: "always open", start: "2026-11-21 22:00", end: "2026-11-22 02:00",
			},
			{
				name: "around the break", start: "2026-11-21 14:30", end: "2026-11-21 16:30", schedule: hongdae(),
				breaks: []string{"11-21 15:00", "11-21 15:10", "11-21 15:20", "11-21 15:30", "11-21 15:40", "11-21 15:50"},
			},
			{
				name: "around opening", start: "2026-11-21 09:40", end: "2026-11-21 10:20", schedule: hongdae(),
				closed: []string{"11-21 09:40", "11-21 09:50"},
			},
			{
				name: "around closing", start: "2026-11-21 21:40", end: "2026-11-21 22:20", schedule: hongdae(),
				closed: []string{"11-21 22:00", "11-21 22:10"},
			},
			{
				name: "a closed day has no break", start: "2026-11-30 14:50", end: "2026-11-30 15:10", schedule: hongdae(),
				closed: []string{"11-30 14:50", "11-30 15:00"},
			},
			{
				name: "a holiday", start: "2026-12-25 12:00", end: "2026-12-25 12:20", schedule: hongdae(),
				closed: []string{"12-25 12:00", "12-25 12:10"},
			},
			{
				name: "from night into a closed day", start: "2026-11-21 23:40", end: "2026-11-22 00:20", schedule: nights(),
				breaks: []string{"11-21 23:50"}, closed: []string{"11-22 00:00", "11-22 00:10"},
			},
			{
				name: "break over midnight", start: "2026-11-20 23:40", end: "2026-11-21 00:20", schedule: nights(),
				breaks: []string{"11-20 23:50", "11-21 00:00"},
			},
		} {
			window := span(test.start, test.end, zone)
			if diff := cmp.Diff(test.breaks, clocks(test.schedule.BreakSlots(window, zone), zone)); diff != "" {
				t.Errorf("%s: breaks %s", test.name, diff)
			}
			if diff := cmp.Diff(test.closed, clocks(test.schedule.ClosedSlots(window, zone), zone)); diff != "" {
				t.Errorf("%s: closed %s", test.name, diff)
			}
		}
	})
}

// On a closed day every slot is closed, from the first to the last.
func TestClosedDayIsClosedAllDay(t *testing.T) {
	t.Parallel()
	day := date("2026-11-22") // a Sunday, with Saturday's night before it
	window := booking.Interval{Start: day.At(-60, seoul), End: day.AddDays(1).At(60, seoul)}
	var want []string
	for minute := range 144 {
		want = append(want, day.At(10*minute, seoul).Format("01-02 15:04"))
	}
	for minute := range 6 {
		want = append(want, day.AddDays(1).At(10*minute, seoul).Format("01-02 15:04"))
	}
	if diff := cmp.Diff(want, clocks(nights().ClosedSlots(window, seoul), seoul)); diff != "" {
		t.Error(diff)
	}
}

var anySpan = rapid.Custom(func(t *rapid.T) booking.ClockSpan {
	from := rapid.IntRange(0, 143).Draw(t, "from")
	return booking.ClockSpan{From: 10 * from, To: 10 * (from + rapid.IntRange(1, 144).Draw(t, "slots"))}
})

var anySchedule = rapid.Custom(func(t *rapid.T) booking.Schedule {
	s := booking.Schedule{ClosedOnHolidays: rapid.Bool().Draw(t, "closed on holidays")}
	for weekday := range s.Week {
		s.Week[weekday] = booking.Day{
			Closed: rapid.IntRange(0, 6).Draw(t, "closed") == 0,
			Open:   rapid.SliceOfN(anySpan, 0, 2).Draw(t, "open"),
			Breaks: rapid.SliceOfN(anySpan, 0, 2).Draw(t, "breaks"),
		}
	}
	near := rapid.Custom(func(t *rapid.T) booking.Date {
		return date("2026-12-20").AddDays(rapid.IntRange(0, 20).Draw(t, "day"))
	})
	for range rapid.IntRange(0, 2).Draw(t, "closures") {
		from := near.Draw(t, "from")
		s.Closures = append(s.Closures, booking.Closure{From: from, To: from.AddDays(rapid.IntRange(0, 3).Draw(t, "days"))})
	}
	s.OpenHolidays = rapid.SliceOfN(near, 0, 2).Draw(t, "open holidays")
	return s
})

// An independent model paints the timeline of a branch: first the opening hours of days that are not closed, then their
// breaks, then the closed days. The rules must agree with it for each slot.
func TestScheduleAgainstPaintedTimeline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anySchedule.Draw(t, "schedule")
		zone := rapid.SampledFrom(zones).Draw(t, "zone") // none changes its clocks in that winter
		first := date("2026-12-20").AddDays(rapid.IntRange(0, 20).Draw(t, "first day"))
		start := first.At(10*rapid.IntRange(0, 143).Draw(t, "start"), zone)
		window := booking.Interval{Start: start, End: start.Add(24 * time.Hour)}

		const open, onBreak, closed = "open", "break", "closed"
		timeline := make(map[time.Time]string)
		paint := func(d booking.Date, from, to int, colour string, over func(string) bool) {
			for m := from; m < to; m += 10 {
				if slot := d.At(m, zone).UTC(); over(timeline[slot]) {
					timeline[slot] = colour
				}
			}
		}
		anything := func(string) bool { return true }
		onlyOpen := func(colour string) bool { return colour == open }
		days := []booking.Date{first.AddDays(-1), first, first.AddDays(1)}
		working := slices.DeleteFunc(slices.Clone(days), func(d booking.Date) bool { return s.Day(d).Status != booking.Available })
		for _, d := range working {
			day := s.Week[d.Weekday()]
			if len(day.Open) == 0 {
				paint(d, 0, 1440, open, anything)
			}
			for _, span := range day.Open {
				paint(d, span.From, span.To, open, anything)
			}
		}
		for _, d := range working {
			for _, span := range s.Week[d.Weekday()].Breaks {
				paint(d, span.From, span.To, onBreak, onlyOpen)
			}
		}
		for _, d := range days {
			if s.Day(d).Status != booking.Available {
				paint(d, 0, 1440, closed, anything)
			}
		}

		var wantBreaks, wantClosed []string
		for _, slot := range window.Slots() {
			switch timeline[slot.UTC()] {
			case open:
			case onBreak:
				wantBreaks = append(wantBreaks, clocks([]time.Time{slot}, zone)...)
			default:
				wantClosed = append(wantClosed, clocks([]time.Time{slot}, zone)...)
			}
		}
		if diff := cmp.Diff(wantBreaks, clocks(s.BreakSlots(window, zone), zone)); diff != "" {
			t.Fatalf("breaks: %s", diff)
		}
		if diff := cmp.Diff(wantClosed, clocks(s.ClosedSlots(window, zone), zone)); diff != "" {
			t.Fatalf("closed: %s", diff)
		}
	})
}

// An interval can be reserved if and only if none of its slots is shown as a break or as closed.
func TestCheckAgreesWithSlots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anySchedule.Draw(t, "schedule")
		zone := anyZone.Draw(t, "zone")
		first := date("2026-12-20").AddDays(rapid.IntRange(0, 20).Draw(t, "day"))
		i := longFrom(t, first.At(10*rapid.IntRange(0, 143).Draw(t, "start"), zone), zone)

		breaks, closed := s.BreakSlots(i, zone), s.ClosedSlots(i, zone)
		free := len(breaks)+len(closed) == 0
		if err := s.Check(i, zone); (err == nil) != free {
			t.Fatalf("check %v; breaks %v, closed %v", err, clocks(breaks, zone), clocks(closed, zone))
		}
		for _, b := range breaks {
			if slices.ContainsFunc(closed, b.Equal) {
				t.Fatalf("%s is both break and closed", b)
			}
		}
	})
}
