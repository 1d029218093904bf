package web

import (
	"slices"
	"strings"
	"time"
)

// Times of a branch are wall-clock times of its zone, kept as if the zone were UTC, as in booking/time.ts.

const (
	slotLength    = 10 * time.Minute
	longestStay   = 5 * time.Hour
	wholeDay      = 24 * time.Hour
	eveningHour   = 18
	overnight     = 5 // hours past midnight that a reservation starting on a day may reach
	minuteLayout  = "200601021504"
	addressLayout = "1504"
)

// wall returns the wall-clock time of a zone at an instant, to the minute.
func wall(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
}

// pricing is a price list, in won per 10, 30 and 60 minutes; nil: not on offer.
type pricing struct{ Min10, Min30, Min60 *int }

// tier is a length with its price.
type tier struct {
	length time.Duration
	won    int
}

// tiers returns the lengths on offer, the longest first.
func (p pricing) tiers() (list []tier) {
	for _, t := range []struct {
		length time.Duration
		won    *int
	}{{time.Hour, p.Min60}, {30 * time.Minute, p.Min30}, {10 * time.Minute, p.Min10}} {
		if t.won != nil {
			list = append(list, tier{t.length, *t.won})
		}
	}
	return list
}

// pricingChange is a price list that applies from a time until that of the next one.
type pricingChange struct {
	FromDateTime string
	pricing
}

// room is a room of a look-up.
type room struct {
	RoomNo, Machine string
	Grade           *string
	Enabled         bool
	Pricing         pricing
	PricingChanges  []pricingChange
}

// priceAt returns the price list that applies at a time.
func (r room) priceAt(at time.Time) pricing {
	list, text := r.Pricing, at.Format(minuteLayout)
	for _, change := range r.PricingChanges {
		if change.FromDateTime <= text {
			list = change.pricing
		}
	}
	return list
}

// price returns the price of a stay, the longest tier first that fits (docs/specification.md, Prices 1). ok is false if no
// combination of tiers makes up its length.
func (r room) price(start time.Time, length time.Duration) (won int, ok bool) {
	for at, end := start, start.Add(length); at.Before(end); {
		tiers := r.priceAt(at).tiers()
		i := slices.IndexFunc(tiers, func(t tier) bool { return t.length <= end.Sub(at) })
		if i < 0 {
			return 0, false
		}
		won += tiers[i].won
		at = at.Add(tiers[i].length)
	}
	return won, length > 0
}

// smallest returns the smallest tier at its lowest price.
func (r room) smallest() (lowest tier, ok bool) {
	lists := []pricing{r.Pricing}
	if len(r.PricingChanges) > 0 {
		lists = nil
		for _, change := range r.PricingChanges {
			lists = append(lists, change.pricing)
		}
	}
	for _, list := range lists {
		tiers := list.tiers()
		if len(tiers) == 0 {
			continue
		}
		last := tiers[len(tiers)-1]
		if !ok || last.length < lowest.length || last.length == lowest.length && last.won < lowest.won {
			lowest, ok = last, true
		}
	}
	return lowest, ok
}

// lookup is the answer of GET /v2/branches/{branch}/reservations.
type lookup struct {
	Rooms            []room
	UnavailableSlots map[string][]string
}

// daySlots are the slots of a day and of the following night.
type daySlots struct {
	date, now time.Time
	rooms     []room
	taken     map[string]bool // by slotName
	reserved  map[string]bool // those of taken that are not closed times or breaks
}

// slotsOf merges the look-ups of a day and of the night after it.
func slotsOf(date, now time.Time, day, night lookup) daySlots {
	d := daySlots{date: date, now: now, rooms: day.Rooms, taken: map[string]bool{}, reserved: map[string]bool{}}
	for i := range d.rooms {
		for _, r := range night.Rooms {
			if r.RoomNo == d.rooms[i].RoomNo {
				d.rooms[i].PricingChanges = append(d.rooms[i].PricingChanges, r.PricingChanges...)
			}
		}
	}
	for _, look := range []lookup{day, night} {
		for state, list := range look.UnavailableSlots {
			for _, slot := range list {
				d.taken[slot] = true
				if state != "closedTime" && state != "breakTime" {
					d.reserved[slot] = true
				}
			}
		}
	}
	return d
}

func (d daySlots) room(no string) (room, bool) {
	i := slices.IndexFunc(d.rooms, func(r room) bool { return r.RoomNo == no })
	if i < 0 {
		return room{}, false
	}
	return d.rooms[i], true
}

// slotName returns the name of a slot in a look-up, such as 2-202611211500.
func slotName(no string, at time.Time) string { return no + "-" + at.Format(minuteLayout) }

func (d daySlots) free(no string, at time.Time) bool {
	return at.Add(slotLength).After(d.now) && !d.taken[slotName(no, at)]
}

// release shows a slot as not reserved.
func (d daySlots) release(no string, at time.Time) {
	delete(d.taken, slotName(no, at))
	delete(d.reserved, slotName(no, at))
}

// freeFrom returns how long a room is free from start on, as far as the look-ups reach.
func (d daySlots) freeFrom(no string, start time.Time) time.Duration {
	end := d.date.Add(wholeDay + overnight*time.Hour)
	at := start
	for at.Before(end) && d.free(no, at) {
		at = at.Add(slotLength)
	}
	return at.Sub(start)
}

// hasReservation reports whether a part of the day from a time until another is reserved.
func (d daySlots) hasReservation(no string, from, until time.Time) bool {
	for at := from; at.Before(until); at = at.Add(slotLength) {
		if d.reserved[slotName(no, at)] {
			return true
		}
	}
	return false
}

// lengths returns the lengths that can be reserved from start on, with prices.
func (d daySlots) lengths(r room, start time.Time) (list []tier) {
	free := min(d.freeFrom(r.RoomNo, start), longestStay)
	for length := slotLength; length <= free; length += slotLength {
		if won, ok := r.price(start, length); ok {
			list = append(list, tier{length, won})
		}
	}
	return list
}

// firstSlot is the first start of the day that is not over.
func (d daySlots) firstSlot() time.Time {
	if d.now.After(d.date) {
		return d.now.Truncate(slotLength)
	}
	return d.date
}

// starts returns every start of the day at which at least one length can be reserved.
func (d daySlots) starts(r room) (list []time.Time) {
	for at := d.firstSlot(); at.Before(d.date.Add(wholeDay)); at = at.Add(slotLength) {
		if len(d.lengths(r, at)) > 0 {
			list = append(list, at)
		}
	}
	return list
}

// firstFree returns the first start at which a room can be reserved, and for how long it is free from then on. The current slot counts only
// while at least half of it is left.
func (d daySlots) firstFree(r room) (start time.Time, free time.Duration, ok bool) {
	from := d.firstSlot()
	if d.now.Sub(from) > slotLength/2 {
		from = from.Add(slotLength)
	}
	for at := from; at.Before(d.date.Add(wholeDay)); at = at.Add(slotLength) {
		if len(d.lengths(r, at)) > 0 {
			return at, d.freeFrom(r.RoomNo, at), true
		}
	}
	return time.Time{}, 0, false
}

// run is a part of a day in minutes.
type run struct{ From, Length int }

// runs returns the parts of the day in which a room is free.
func (d daySlots) runs(no string) (list []run) {
	for at := d.date; at.Before(d.date.Add(wholeDay)); at = at.Add(slotLength) {
		if !d.free(no, at) {
			continue
		}
		from := int(at.Sub(d.date) / time.Minute)
		if last := len(list) - 1; last >= 0 && list[last].From+list[last].Length == from {
			list[last].Length += int(slotLength / time.Minute)
		} else {
			list = append(list, run{from, int(slotLength / time.Minute)})
		}
	}
	return list
}

// summaryPath returns the address of the summary of a choice below that of its day, such as 3/1500-1620.
func summaryPath(no string, start time.Time, length time.Duration) string {
	return strings.Join([]string{no, start.Format(addressLayout) + "-" + start.Add(length).Format(addressLayout)}, "/")
}
