package booking

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxPriceRules bounds the price rules of a room.
const MaxPriceRules = 50

// A PriceRule replaces the price list of a room at some times from a day on. Of the rules that apply to a time, the last one
// counts (docs/specification.md, Price rules).
type PriceRule struct {
	From     Date           // the first day
	Days     []time.Weekday // with Holidays: the days on which it applies; neither: every day
	Holidays bool           // it applies on public holidays, whatever their weekday
	Hours    *ClockSpan     // nil: the whole day, with the opening hours that run past its midnight
	Price    Price
}

// Validate returns an [InvalidError] for a rule that is out of bounds or has no price.
func (p PriceRule) Validate() error {
	switch {
	case p.From == Date{}:
		return invalid("priceRules", "a rule has no first day")
	case p.Price == Price{}:
		return invalid("priceRules", "a rule has no price; a closure closes a room")
	case p.Hours != nil && !p.Hours.valid():
		return invalid("priceRules", "minutes %d to %d are no span on ten-minute marks of at most 24 hours", p.Hours.From, p.Hours.To)
	}
	for i, day := range p.Days {
		if day < time.Sunday || day > time.Saturday || slices.Contains(p.Days[:i], day) {
			return invalid("priceRules", "weekday %d; expected each day from 1 (Monday) to 7 (Sunday) at most once", day)
		}
	}
	return p.Price.Validate()
}

func validatePriceRules(rules []PriceRule) error {
	if len(rules) > MaxPriceRules {
		return invalid("priceRules", "%d rules; expected at most %d", len(rules), MaxPriceRules)
	}
	for _, rule := range rules {
		if err := rule.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// on reports whether the rule applies on a day.
func (p PriceRule) on(d Date, s Schedule) bool {
	if d.Before(p.From) {
		return false
	}
	_, holiday := s.holiday(d)
	return len(p.Days) == 0 && !p.Holidays || slices.Contains(p.Days, d.Weekday()) || p.Holidays && holiday
}

func (p PriceRule) applies(t time.Time, s Schedule, zone *time.Location) bool {
	date := DateOf(t, zone)
	if p.Hours == nil {
		return p.on(s.BusinessDay(t, zone), s)
	}
	minute := minuteOf(t, zone)
	hours := []ClockSpan{*p.Hours}
	return anyCovers(hours, minute) && p.on(date, s) || anyCovers(hours, minute+minutesPerDay) && p.on(date.AddDays(-1), s)
}

// BusinessDay returns the day to which a time belongs: the day before if its opening hours run past midnight until then.
func (s Schedule) BusinessDay(t time.Time, zone *time.Location) Date {
	date := DateOf(t, zone)
	before := date.AddDays(-1)
	if s.Day(date).Status == Available && s.Day(before).Status == Available &&
		anyCovers(s.Week[before.Weekday()].Open, minuteOf(t, zone)+minutesPerDay) {
		return before
	}
	return date
}

// PriceAt returns the price list of a room at a time.
func (b Branch) PriceAt(r Room, t time.Time) Price {
	_, price := b.ruleAt(r, t)
	return price
}

// ruleAt returns the index of the rule that counts at a time, -1 for the price list of the room, and its prices.
func (b Branch) ruleAt(r Room, t time.Time) (int, Price) {
	for i, rule := range slices.Backward(r.PriceRules) {
		if rule.applies(t, b.Schedule, b.Zone) {
			return i, rule.Price
		}
	}
	return -1, r.Price
}

// PriceOf returns the price of a stay. From its start on it is made up of hours, half hours and ten minutes, the longest
// tier first that fits and is on offer; each costs its price in the list that applies when it begins. With one
// price list for the whole stay this is [Price.For]. ok is false if the tiers cannot make up the length; customers cannot
// reserve such a stay.
func (b Branch) PriceOf(r Room, stay Interval) (won int, ok bool) {
	if len(r.PriceRules) == 0 {
		return r.Price.For(stay.Length())
	}
	for at := stay.Start; at.Before(stay.End); {
		length, price := b.PriceAt(r, at).longest(stay.End.Sub(at))
		if length == 0 {
			return 0, false
		}
		at, won = at.Add(length), won+price
	}
	return won, stay.Length() > 0
}

// longest returns the longest tier that fits into a length, and its price; 0 if none does.
func (p Price) longest(fits time.Duration) (length time.Duration, won int) {
	for _, tier := range p.tiers() {
		if tier.won != nil && tier.length <= fits {
			return tier.length, *tier.won
		}
	}
	return 0, 0
}

// Shortest returns the shortest length on offer, or 0.
func (p Price) Shortest() time.Duration {
	tiers := p.tiers()
	for _, tier := range slices.Backward(tiers[:]) {
		if tier.won != nil {
			return tier.length
		}
	}
	return 0
}

// A PriceSpan is a time with one price list.
type PriceSpan struct {
	Interval
	Price Price
	Rule  int // index of the rule; -1: the price list of the room
}

// PriceSpans divides a window into the times with one price list each.
func (b Branch) PriceSpans(r Room, window Interval) (spans []PriceSpan) {
	for at := window.Start; at.Before(window.End); at = at.Add(SlotLength) {
		rule, price := b.ruleAt(r, at)
		if n := len(spans); n > 0 && spans[n-1].Rule == rule {
			spans[n-1].End = at.Add(SlotLength)
			continue
		}
		spans = append(spans, PriceSpan{Interval{at, at.Add(SlotLength)}, price, rule})
	}
	return spans
}

// HolidayName returns the name of the public holiday on a day, with the changes of the branch.
func (s Schedule) HolidayName(d Date) string {
	name, _ := s.holiday(d)
	return name
}

func (p Price) text() string {
	var parts []string
	tiers := p.tiers()
	for _, tier := range slices.Backward(tiers[:]) {
		text := "-"
		if tier.won != nil {
			text = fmt.Sprint(*tier.won)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "/")
}

func formatPriceRules(rules []PriceRule) string {
	texts := make([]string, len(rules))
	for i, p := range rules {
		var when []string
		for _, day := range slices.SortedFunc(slices.Values(p.Days), func(a, b time.Weekday) int { return cmp.Compare((a+6)%7, (b+6)%7) }) {
			when = append(when, strings.ToLower(day.String()[:3]))
		}
		if p.Holidays {
			when = append(when, "holidays")
		}
		if len(when) == 0 {
			when = append(when, "every day")
		}
		if p.Hours != nil {
			when = append(when, p.Hours.String())
		}
		texts[i] = fmt.Sprintf("; from %s %s %s", p.From, strings.Join(when, " "), p.Price.text())
	}
	return strings.Join(texts, "")
}
