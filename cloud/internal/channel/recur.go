package channel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-ical"
	"github.com/teambition/rrule-go"
)

// recur returns the starts of a recurring event's occurrences within the imported period. The library's RecurrenceSet
// supports neither lists of dates nor RDATE.
func (p *parser) recur(e ical.Event, start time.Time, l length) ([]time.Time, error) {
	excluded, err := p.dates(e, ical.PropExceptionDates)
	if err != nil {
		return nil, err
	}
	added, err := p.dates(e, ical.PropRecurrenceDates)
	if err != nil {
		return nil, err
	}
	touches := func(at time.Time) bool { return p.within(at) && l.end(at).After(p.from) }
	starts := []time.Time{}
	if touches(start) {
		starts = append(starts, start)
	}
	for _, at := range added {
		if touches(at) {
			starts = append(starts, at)
		}
	}
	rules := e.Props[ical.PropRecurrenceRule]
	if len(rules) > 1 {
		return nil, errors.New("more than one RRULE")
	}
	if len(rules) == 1 {
		rule, err := p.rule(e, start)
		if err != nil {
			return nil, err
		}
		next := rule.Iterator()
		for {
			at, ok := next()
			if !ok || !p.within(at) {
				break
			}
			if err := p.spend(&p.steps, 1, maxSteps, "steps of recurrence rules"); err != nil {
				return nil, err
			}
			if touches(at) {
				starts = append(starts, at)
			}
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	starts = slices.CompactFunc(starts, time.Time.Equal)
	slices.SortFunc(excluded, time.Time.Compare)
	return slices.DeleteFunc(starts, func(at time.Time) bool {
		_, found := slices.BinarySearchFunc(excluded, at, time.Time.Compare)
		return found
	}), nil
}

// ended reports whether the rule of a recurring entry has ended before the imported period, so that all its occurrences are over.
func (p *parser) ended(e ical.Event, first Booking) bool {
	if len(e.Props[ical.PropRecurrenceRule]) != 1 || e.Props.Get(ical.PropRecurrenceDates) != nil || !first.End.Before(p.from) {
		return false
	}
	option, err := e.Props.RecurrenceRule()
	// A date or a local time is up to a day earlier than UTC, and a date includes its day.
	return err == nil && !option.Until.IsZero() && option.Until.AddDate(0, 0, 2).Add(first.End.Sub(first.Start)).Before(p.from)
}

// rule parses the RRULE. It accepts the rules that room calendars use and rejects those for which the library may
// search to the year 9999 without finding an occurrence.
func (p *parser) rule(e ical.Event, start time.Time) (*rrule.RRule, error) {
	option, err := e.Props.RecurrenceRule()
	if err != nil {
		return nil, err
	}
	if option.Freq > rrule.DAILY { // the constants descend from YEARLY to SECONDLY
		return nil, fmt.Errorf("RRULE with FREQ=%v is not supported", option.Freq)
	}
	if len(option.Byhour)+len(option.Byminute)+len(option.Bysecond)+len(option.Byyearday)+len(option.Byweekno)+len(option.Byeaster) > 0 ||
		option.Freq >= rrule.WEEKLY && len(option.Bymonthday)+len(option.Bysetpos) > 0 {
		return nil, errors.New("this kind of RRULE is not supported")
	}
	option.Dtstart = start
	// The library read a floating or local UNTIL as UTC.
	if raw := e.Props.Get(ical.PropRecurrenceRule).Value; !option.Until.IsZero() && !strings.Contains(untilOf(raw), "Z") {
		u := option.Until
		option.Until = time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), 0, start.Location())
		if len(untilOf(raw)) == len("20060102") {
			option.Until = option.Until.AddDate(0, 0, 1).Add(-time.Second) // the day itself included
		}
	}
	return rrule.NewRRule(*option)
}

func untilOf(rule string) string {
	for part := range strings.SplitSeq(strings.ToUpper(rule), ";") {
		if until, ok := strings.CutPrefix(part, "UNTIL="); ok {
			return until
		}
	}
	return ""
}

// dates parses a property with a list of dates, separated by commas or repeated.
func (p *parser) dates(e ical.Event, name string) ([]time.Time, error) {
	var list []time.Time
	for _, prop := range e.Props[name] {
		if prop.ValueType() == ical.ValuePeriod {
			return nil, fmt.Errorf("%s with periods is not supported", name)
		}
		for one := range strings.SplitSeq(prop.Value, ",") {
			if err := p.spend(&p.dateCount, 1, maxDates, "listed dates"); err != nil {
				return nil, err
			}
			single := prop
			single.Value = one
			at, err := p.when(&single)
			if err != nil {
				return nil, err
			}
			list = append(list, at)
		}
	}
	return list, nil
}
