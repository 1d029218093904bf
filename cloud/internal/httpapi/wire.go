package httpapi

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// The interface's forms of time. All are local to the branch.
const (
	layoutMinute   = "200601021504"        // startDateTime, slots
	layoutConflict = "2006/01/02 15:04"    // conflict items
	layoutLocalISO = "2006-01-02T15:04:05" // virtualaccountDueDate: ISO 8601 without an offset
	layoutBaseDate = "20060102"            // base_date
)

func wireMinute(t time.Time, zone *time.Location) string { return t.In(zone).Format(layoutMinute) }

// wireStoredEnd is the end as the interface stores it: ten minutes before the real end.
func wireStoredEnd(i booking.Interval, zone *time.Location) string {
	return wireMinute(i.StoredEnd(), zone)
}

// wireTime reads a required YYYYMMDDHHmm of the branch's zone.
func wireTime(field string, value *string, zone *time.Location) (time.Time, error) {
	if value == nil || *value == "" {
		return time.Time{}, missing(field)
	}
	t, ok := parseExact(layoutMinute, *value, zone)
	if !ok {
		return time.Time{}, malformed(field)
	}
	return t, nil
}

// parseExact parses value and refuses every spelling but the canonical one, and local times that do not exist.
func parseExact(layout, value string, zone *time.Location) (time.Time, bool) {
	t, err := time.ParseInLocation(layout, value, zone)
	if err != nil || t.Format(layout) != value || t.Year() < 2000 || t.Year() > 2200 {
		return time.Time{}, false
	}
	return t, true
}

func wireSlots(slots []booking.Slot, zone *time.Location) []string {
	list := make([]string, 0, len(slots))
	for _, slot := range slots {
		list = append(list, slot.String(zone))
	}
	return list
}

// nullable is a JSON null for the empty string.
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
