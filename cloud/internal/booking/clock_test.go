package booking

import (
	"errors"
	"testing"
	"time"
)

// Each clock time is read as the moments at which the clock of the zone shows it, also where the change is of half an hour, or at
// midnight. time.Date alone chooses differently for each zone.
func TestReadClock(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ zone, wall, first, last string }{
		{"Asia/Seoul", "2027-03-14 02:30", "2027-03-13 17:30", ""},
		{"America/New_York", "2027-11-07 00:50", "2027-11-07 04:50", ""},
		{"America/New_York", "2027-11-07 01:00", "2027-11-07 05:00", "2027-11-07 06:00"},
		{"America/New_York", "2027-11-07 01:50", "2027-11-07 05:50", "2027-11-07 06:50"},
		{"America/New_York", "2027-11-07 02:00", "2027-11-07 07:00", ""},
		{"Europe/Berlin", "2027-10-31 02:10", "2027-10-31 00:10", "2027-10-31 01:10"},
		{"Australia/Lord_Howe", "2027-04-04 01:30", "2027-04-03 14:30", "2027-04-03 15:00"},
		{"Australia/Lord_Howe", "2027-04-04 01:20", "2027-04-03 14:20", ""},
		{"America/New_York", "2027-03-14 02:00", "skipped", ""},
		{"America/New_York", "2027-03-14 03:00", "2027-03-14 07:00", ""},
		{"Europe/Berlin", "2027-03-28 02:50", "skipped", ""},
		{"Australia/Lord_Howe", "2027-10-03 02:20", "skipped", ""},
		{"Australia/Lord_Howe", "2027-10-03 02:30", "2027-10-02 15:30", ""},
		{"America/Havana", "2027-03-14 00:10", "skipped", ""},
		{"America/Havana", "2027-11-07 00:10", "2027-11-07 04:10", "2027-11-07 05:10"},
		{"Atlantic/Azores", "2027-03-28 00:00", "skipped", ""},
	} {
		zone, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		const layout = "2006-01-02 15:04"
		wall, err := time.Parse(layout, tc.wall)
		if err != nil {
			t.Fatal(err)
		}
		first, err := ReadClock(wall, zone, time.Time{})
		if skipped := errors.Is(err, ErrNoLocalTime); skipped != (tc.first == "skipped") || !skipped && err != nil {
			t.Errorf("%s, %s: %v", tc.zone, tc.wall, err)
		}
		if tc.first == "skipped" {
			if !WallClock(first, zone).After(wall) || WallClock(first.Add(-1), zone).After(wall) {
				t.Errorf("%s, %s: the clock changes at %s", tc.zone, tc.wall, first.UTC().Format(layout))
			}
			continue
		}
		want := tc.last
		if want == "" {
			want = tc.first
		}
		last, err := ReadClock(wall, zone, first)
		if got, second := first.UTC().Format(layout), last.UTC().Format(layout); err != nil || got != tc.first || second != want {
			t.Errorf("%s, %s: %s and %s, want %s and %s (%v)", tc.zone, tc.wall, got, second, tc.first, want, err)
		}
	}
}

// A day begins with its first moment and ends with the first one of the next day.
func TestDaysOfZones(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		day  Date
		long time.Duration
	}{
		"Asia/Seoul":          {Date{2027, 3, 14}, 24 * time.Hour},
		"America/New_York":    {Date{2027, 11, 7}, 25 * time.Hour},
		"America/Havana":      {Date{2027, 3, 14}, 23 * time.Hour},
		"Atlantic/Azores":     {Date{2027, 3, 28}, 23 * time.Hour},
		"Australia/Lord_Howe": {Date{2027, 4, 4}, 24*time.Hour + 30*time.Minute},
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		in := want.day.In(zone)
		if in.Length() != want.long || DateOf(in.Start, zone) != want.day || DateOf(in.Start.Add(-1), zone) == want.day || DateOf(in.End.Add(-1), zone) != want.day {
			t.Errorf("%s: the day is from %s, %v long; want %v", name, in.Start.In(zone), in.Length(), want.long)
		}
	}
}
