package booking_test

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata" // zones load on a machine without a time zone database

	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// The zones in which all local rules are tested: Korea, one with daylight saving, and UTC.
var (
	seoul   = zone("Asia/Seoul")
	newYork = zone("America/New_York")
	zones   = []*time.Location{seoul, newYork, time.UTC}
)

func zone(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return z
}

// inZones runs a test in every zone.
func inZones(t *testing.T, test func(t *testing.T, zone *time.Location)) {
	t.Helper()
	for _, zone := range zones {
		t.Run(zone.String(), func(t *testing.T) { test(t, zone) })
	}
}

// at parses a local time such as "2026-11-21 15:00", optionally with seconds.
func at(clock string, zone *time.Location) time.Time {
	layout := time.DateTime
	if len(clock) == len("2006-01-02 15:04") {
		layout = "2006-01-02 15:04"
	}
	t, err := time.ParseInLocation(layout, clock, zone)
	if err != nil {
		panic(err)
	}
	return t
}

func date(text string) booking.Date {
	d, err := booking.ParseDate(text)
	if err != nil {
		panic(err)
	}
	return d
}

func span(start, end string, zone *time.Location) booking.Interval {
	return booking.Interval{Start: at(start, zone), End: at(end, zone)}
}

func clocks(times []time.Time, zone *time.Location) []string {
	var out []string
	for _, t := range times {
		out = append(out, t.In(zone).Format("01-02 15:04"))
	}
	return out
}

// anyZone draws a zone. Kathmandu is 5:45 ahead of UTC, so its ten-minute marks are not UTC's; Lord Howe changes its clocks
// by half an hour.
var anyZone = rapid.SampledFrom(append(zones, zone("Asia/Kathmandu"), zone("Australia/Lord_Howe")))

// anyDate draws a day within a few years of 2026.
var anyDate = rapid.Custom(func(t *rapid.T) booking.Date {
	return date("2024-01-01").AddDays(rapid.IntRange(0, 3000).Draw(t, "day"))
})

// intervalIn draws an interval that [booking.NewInterval] accepts.
func intervalIn(zone *time.Location) *rapid.Generator[booking.Interval] {
	return rapid.Custom(func(t *rapid.T) booking.Interval {
		start := anyDate.Draw(t, "date").At(10*rapid.IntRange(0, 143).Draw(t, "slot"), zone)
		return longFrom(t, start, zone)
	})
}

func longFrom(t *rapid.T, start time.Time, zone *time.Location) booking.Interval {
	slots := rapid.IntRange(1, 30).Draw(t, "slots")
	i, err := booking.NewInterval(start, start.Add(time.Duration(slots)*booking.SlotLength), zone)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// No rule may depend on the zone of the process. This test is not parallel: it changes time.Local.
func TestProcessZoneDoesNotMatter(t *testing.T) {
	home := time.Local
	t.Cleanup(func() { time.Local = home })

	week := booking.Schedule{ClosedOnHolidays: true}
	for day := range week.Week {
		week.Week[day].Open = []booking.ClockSpan{{From: 600, To: 1320}}
	}
	transcript := func() string {
		s := booking.Slot{Room: 3, Start: at("2026-12-31 23:50", seoul)}
		i, err := booking.NewInterval(s.Start, s.Start.Add(time.Hour), seoul)
		if err != nil {
			t.Fatal(err)
		}
		r := booking.Reservation{Interval: i, State: booking.Done}
		from, to := r.UnlockWindow()
		return fmt.Sprintln(
			s.String(seoul), s.Start.Unix(),
			booking.DateOf(i.End, seoul), date("2026-12-31").At(1450, seoul).Unix(), date("2026-12-31").Weekday(),
			clocks(i.Slots(), seoul), i.StoredEnd().Unix(),
			week.Check(i, seoul), clocks(week.ClosedSlots(i, seoul), seoul),
			from.Unix(), to.Unix(), r.RefundDeadline().Unix(),
			booking.CheckStart(i, s.Start.Add(10*time.Minute)),
		)
	}

	time.Local = seoul
	want := transcript()
	for _, local := range []*time.Location{newYork, time.UTC, zone("Pacific/Kiritimati"), zone("Asia/Kathmandu")} {
		time.Local = local
		if got := transcript(); got != want {
			t.Errorf("process in %s:\n%swant, as in Seoul:\n%s", local, got, want)
		}
	}
}

// Korea has had no daylight saving since 1988. The rules would survive it, but printed times rely on its absence.
func TestSeoulIsAlwaysNineHoursAhead(t *testing.T) {
	t.Parallel()
	for hour := at("2026-01-01 00:00", time.UTC); hour.Year() < 2037; hour = hour.Add(time.Hour) {
		if _, offset := hour.In(seoul).Zone(); offset != 9*60*60 {
			t.Fatalf("%s is %d seconds ahead", hour, offset)
		}
	}
}
