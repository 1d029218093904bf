package booking

import (
	"cmp"
	"fmt"
	"time"
)

// A Date is a calendar day without a time zone. It is comparable.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the calendar day at t in a time zone.
func DateOf(t time.Time, zone *time.Location) Date {
	year, month, day := t.In(zone).Date()
	return Date{year, month, day}
}

// ParseDate reads YYYY-MM-DD. It returns ErrMalformedDate for any other form and for days that do not exist.
func ParseDate(text string) (Date, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return Date{}, fmt.Errorf("%w: %q", ErrMalformedDate, text)
	}
	return DateOf(t, time.UTC), nil
}

// String formats the date as YYYY-MM-DD.
func (d Date) String() string {
	return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day)
}

// MarshalText implements encoding.TextMarshaler, so that dates can be JSON values and keys.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is [ParseDate].
func (d *Date) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDate(string(text))
	return err
}

// At returns the moment at which clocks in the zone show that many minutes after midnight. Values over 1440 lie on the next
// day. If the clocks show the time twice, it is the first moment; if they skip it, the moment of the change. So midnight is
// always the first moment of the day.
func (d Date) At(minutes int, zone *time.Location) time.Time {
	wall := time.Date(d.Year, d.Month, d.Day, 0, minutes, 0, 0, time.UTC)
	if zone == time.UTC {
		return wall
	}
	return readClock(wall, zone).first
}

// In returns the day in a time zone. Where the clocks change, it is longer or shorter than 24 hours.
func (d Date) In(zone *time.Location) Interval {
	return Interval{Start: d.At(0, zone), End: d.AddDays(1).At(0, zone)}
}

// LocalWindow is a number of hours from an hour of a date, on the clocks of a branch. It is comparable.
type LocalWindow struct {
	Date  Date
	Hour  int // 0 to 23
	Hours int
}

// In returns the interval of the window in a time zone, up to the hour at which it ends by the clock.
func (w LocalWindow) In(zone *time.Location) Interval {
	return Interval{Start: w.Date.At(w.Hour*60, zone), End: w.Date.At((w.Hour+w.Hours)*60, zone)}
}

// Weekday returns the day of the week.
func (d Date) Weekday() time.Weekday { return d.At(0, time.UTC).Weekday() }

// AddDays returns the date n days later, or earlier if n is negative.
func (d Date) AddDays(n int) Date {
	d.Day += n
	return DateOf(d.At(0, time.UTC), time.UTC)
}

// Before reports whether d is an earlier day than other.
func (d Date) Before(other Date) bool {
	return cmp.Or(
		cmp.Compare(d.Year, other.Year),
		cmp.Compare(d.Month, other.Month),
		cmp.Compare(d.Day, other.Day),
	) < 0
}
