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
// day.
func (d Date) At(minutes int, zone *time.Location) time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, minutes, 0, 0, zone)
}

// LocalWindow is a number of hours from an hour of a date, on the clocks of a branch. It is comparable.
type LocalWindow struct {
	Date  Date
	Hour  int // 0 to 23
	Hours int
}

// In returns the interval of the window in a time zone.
func (w LocalWindow) In(zone *time.Location) Interval {
	start := w.Date.At(w.Hour*60, zone)
	return Interval{Start: start, End: start.Add(time.Duration(w.Hours) * time.Hour)}
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
