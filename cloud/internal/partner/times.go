package partner

import (
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// mergeSlots merges adjacent slots into intervals.
func mergeSlots(starts []time.Time) []booking.Interval {
	slices.SortFunc(starts, time.Time.Compare)
	var list []booking.Interval
	for _, start := range starts {
		end := start.Add(booking.SlotLength)
		if n := len(list); n > 0 && !start.After(list[n-1].End) {
			list[n-1].End = end
			continue
		}
		list = append(list, booking.Interval{Start: start, End: end})
	}
	return list
}
