package booking

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// SlotLength is the granularity of all reservations.
const SlotLength = 10 * time.Minute

// A Slot is the ten-minute interval of a room that starts at Start (docs/specification.md, Slots 1).
type Slot struct {
	Room  int // room number
	Start time.Time
}

// String formats the slot as {room}-{YYYYMMDDHHmm} in the branch's time zone.
func (s Slot) String(zone *time.Location) string {
	text := append(strconv.AppendInt(make([]byte, 0, 24), int64(s.Room), 10), '-')
	// Formatted as one number: a look-up formats hundreds of slots, and a time layout would take most of its time.
	local := s.Start.In(zone)
	year, month, day := local.Date()
	hour, minute, _ := local.Clock()
	date, clock := int64((year*100+int(month))*100+day), int64(hour*100+minute)
	return string(strconv.AppendInt(text, date*10_000+clock, 10))
}

// SortSlots sorts by room number and time and removes duplicates, which are common because neighbours share a margin. Like
// [slices.Compact] it works in place.
func SortSlots(slots []Slot) []Slot {
	slices.SortFunc(slots, func(a, b Slot) int {
		return cmp.Or(cmp.Compare(a.Room, b.Room), a.Start.Compare(b.Start))
	})
	return slices.CompactFunc(slots, func(a, b Slot) bool {
		return a.Room == b.Room && a.Start.Equal(b.Start)
	})
}

// onGrid reports whether clocks at the branch show a ten-minute mark. Not every zone's offset is a multiple of ten minutes.
func onGrid(t time.Time, zone *time.Location) bool {
	t = t.In(zone)
	return t.Minute()%10 == 0 && t.Second() == 0 && t.Nanosecond() == 0
}
