package wire

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// The interface's formats of times, all local to the branch.
const (
	LayoutMinute   = "200601021504"        // startDateTime, slots
	LayoutConflict = "2006/01/02 15:04"    // conflict items
	LayoutLocalISO = "2006-01-02T15:04:05" // virtualaccountDueDate: ISO 8601 without an offset
	LayoutBaseDate = "20060102"            // base_date
)

// Minute formats a time as YYYYMMDDHHmm.
func Minute(t time.Time, zone *time.Location) string { return t.In(zone).Format(LayoutMinute) }

// StoredEnd formats the stored end of an interval: ten minutes before the real end.
func StoredEnd(i booking.Interval, zone *time.Location) string {
	return Minute(i.StoredEnd(), zone)
}

// Time reads a required YYYYMMDDHHmm in the branch's time zone.
func Time(field string, value *string, zone *time.Location) (time.Time, error) {
	if value == nil || *value == "" {
		return time.Time{}, Missing(field)
	}
	t, ok := ParseExact(LayoutMinute, *value, zone)
	if !ok {
		return time.Time{}, Malformed(field)
	}
	return t, nil
}

// ParseExact parses a value in its canonical form only, and rejects local times that do not exist.
func ParseExact(layout, value string, zone *time.Location) (time.Time, bool) {
	t, err := time.ParseInLocation(layout, value, zone)
	if err != nil || t.Format(layout) != value || t.Year() < 2000 || t.Year() > 2200 {
		return time.Time{}, false
	}
	return t, true
}

// Day reads a YYYY-MM-DD of the years that [ParseExact] takes. Every day exists in every time zone, also where its midnight does
// not.
func Day(text string) (booking.Date, bool) {
	t, ok := ParseExact(time.DateOnly, text, time.UTC)
	return booking.DateOf(t, time.UTC), ok
}

// Slots formats slots as the interface writes them: {room}-{YYYYMMDDHHmm} (docs/specification.md, Slots 1).
func Slots[S interface{ String(*time.Location) string }](slots []S, zone *time.Location) []string {
	list := make([]string, 0, len(slots))
	for _, slot := range slots {
		list = append(list, slot.String(zone))
	}
	return list
}

// Nullable returns nil, a JSON null, for the empty string.
func Nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Instant formats a time in RFC 3339; nil for the zero time.
func Instant(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format(time.RFC3339Nano)
	return &text
}
