package booking_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func TestParseDateRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "2026", "2026-11", "2026-11-2", "2026-1-21", "20261121", "2026/11/21", "26-11-21", " 2026-11-21", "2026-11-21 ",
		"2026-11-21T00:00", "2026-02-29", "2026-11-31", "2026-13-01", "2026-00-10", "2026-10-00", "-026-10-10", "12026-10-10",
	} {
		if d, err := booking.ParseDate(text); !errors.Is(err, booking.ErrMalformedDate) {
			t.Errorf("ParseDate(%q) = %v, %v", text, d, err)
		}
	}
}

func TestDateOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		at   time.Time
		zone *time.Location
		want string
	}{
		{at("2026-12-31 23:59:59", seoul), seoul, "2026-12-31"},
		{at("2027-01-01 00:00", seoul), seoul, "2027-01-01"},
		{at("2027-01-01 00:00", seoul), time.UTC, "2026-12-31"},
		{at("2026-12-31 15:00", time.UTC), seoul, "2027-01-01"},
		{at("2026-12-31 14:59:59", time.UTC), seoul, "2026-12-31"},
		{at("2028-02-29 23:59:59", newYork), newYork, "2028-02-29"},
		{at("2028-02-29 23:59:59", newYork), seoul, "2028-03-01"},
	} {
		if got := booking.DateOf(test.at, test.zone).String(); got != test.want {
			t.Errorf("%s in %s is %s, want %s", test.at, test.zone, got, test.want)
		}
	}
}

func TestDateAt(t *testing.T) {
	t.Parallel()
	inZones(t, func(t *testing.T, zone *time.Location) {
		for _, test := range []struct {
			date    string
			minutes int
			want    string
		}{
			{"2026-11-21", 0, "2026-11-21 00:00"},
			{"2026-11-21", 1430, "2026-11-21 23:50"},
			{"2026-11-21", 1440, "2026-11-22 00:00"},
			{"2026-12-31", 1560, "2027-01-01 02:00"},
			{"2028-02-28", 1440, "2028-02-29 00:00"},
			{"2028-02-29", 1440, "2028-03-01 00:00"},
			{"2026-03-08", 600, "2026-03-08 10:00"}, // 9 hours after midnight in New York
			{"2026-11-01", 600, "2026-11-01 10:00"}, // 11 hours after midnight in New York
		} {
			if got := date(test.date).At(test.minutes, zone); !got.Equal(at(test.want, zone)) {
				t.Errorf("%s + %d is %s, want %s", test.date, test.minutes, got, test.want)
			}
		}
	})
}

func TestAddDays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from string
		days int
		want string
	}{
		{"2026-11-21", 0, "2026-11-21"},
		{"2026-11-30", 1, "2026-12-01"},
		{"2026-12-31", 1, "2027-01-01"},
		{"2027-01-01", -1, "2026-12-31"},
		{"2027-02-28", 1, "2027-03-01"},
		{"2028-02-28", 1, "2028-02-29"},
		{"2028-02-29", 1, "2028-03-01"},
		{"2028-02-29", 366, "2029-03-01"},
	} {
		if got := date(test.from).AddDays(test.days).String(); got != test.want {
			t.Errorf("%s %+d is %s, want %s", test.from, test.days, got, test.want)
		}
	}
}

func TestWeekday(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Weekday{
		"2026-11-21": time.Saturday,
		"2027-01-01": time.Friday,
		"2028-02-29": time.Tuesday,
	} {
		if got := date(text).Weekday(); got != want {
			t.Errorf("%s is a %s", text, got)
		}
	}
}

func TestDateProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := anyDate.Draw(t, "date")
		if parsed, err := booking.ParseDate(d.String()); err != nil || parsed != d {
			t.Fatalf("%s reads %s, %v", d, parsed, err)
		}
		zone := anyZone.Draw(t, "zone")
		if noon := d.At(12*60, zone); booking.DateOf(noon, zone) != d {
			t.Fatalf("noon of %s is %s", d, noon)
		}
		n := rapid.IntRange(-1000, 1000).Draw(t, "days")
		e := d.AddDays(n)
		if e.AddDays(-n) != d {
			t.Fatalf("%s %+d is %s, and back %s", d, n, e, e.AddDays(-n))
		}
		if d.Before(e) != (n > 0) || e.Before(d) != (n < 0) {
			t.Fatalf("order of %s and %s", d, e)
		}
		if got, want := e.Weekday(), time.Weekday(((int(d.Weekday())+n)%7+7)%7); got != want {
			t.Fatalf("%s is a %s, %s a %s", d, d.Weekday(), e, got)
		}
	})
}

func TestDateAsText(t *testing.T) {
	t.Parallel()
	want := map[booking.Date]booking.Date{date("2026-11-21"): date("2028-02-29")}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"2026-11-21":"2028-02-29"}`, string(text)); diff != "" {
		t.Error(diff)
	}
	var got map[booking.Date]booking.Date
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"2026-11-21":"2027-02-29"}`), &got); !errors.Is(err, booking.ErrMalformedDate) {
		t.Errorf("no leap day: %v", err)
	}
}

func FuzzParseDate(f *testing.F) {
	for _, text := range []string{"2026-11-21", "2028-02-29", "2027-02-29", "0000-01-01", "2026-1-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := booking.ParseDate(text)
		if err != nil {
			if !errors.Is(err, booking.ErrMalformedDate) {
				t.Errorf("ParseDate(%q): %v", text, err)
			}
			return
		}
		if d.String() != text {
			t.Errorf("ParseDate(%q) reads %s", text, d)
		}
	})
}
