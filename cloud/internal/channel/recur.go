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

// maxOccurrences bounds how far a rule is followed, past occurrences included: 50
// years of days.
const maxOccurrences = 20_000

// recur lists the starts of a recurring event's occurrences that touch the window.
// The library's own RecurrenceSet knows neither lists of dates nor RDATE.
func (p *parser) recur(e ical.Event, start time.Time, length time.Duration) ([]time.Time, error) {
	excluded, err := p.dates(e, ical.PropExceptionDates)
	if err != nil {
		return nil, err
	}
	added, err := p.dates(e, ical.PropRecurrenceDates)
	if err != nil {
		return nil, err
	}
	touches := func(at time.Time) bool { return at.Add(length).After(p.from) && at.Before(p.to) }
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
		for n := 0; ; n++ {
			at, ok := next()
			if !ok || !at.Before(p.to) {
				break
			}
			if n == maxOccurrences {
				return nil, fmt.Errorf("more than %d occurrences", maxOccurrences)
			}
			if touches(at) {
				starts = append(starts, at)
			}
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	starts = slices.CompactFunc(starts, time.Time.Equal)
	return slices.DeleteFunc(starts, func(at time.Time) bool {
		return slices.ContainsFunc(excluded, at.Equal)
	}), nil
}

// rule reads the RRULE. It takes what calendars of rooms use and no rule that can run
// long without an occurrence: the library searches to the year 9999.
func (p *parser) rule(e ical.Event, start time.Time) (*rrule.RRule, error) {
	option, err := e.Props.RecurrenceRule()
	if err != nil {
		return nil, err
	}
	if option.Freq > rrule.DAILY { // the constants run from YEARLY to SECONDLY
		return nil, fmt.Errorf("RRULE with FREQ=%v is not supported", option.Freq)
	}
	if len(option.Byhour)+len(option.Byminute)+len(option.Bysecond)+len(option.Byyearday)+len(option.Byweekno)+len(option.Byeaster) > 0 ||
		option.Freq >= rrule.WEEKLY && len(option.Bymonthday)+len(option.Bysetpos) > 0 {
		return nil, errors.New("RRULE of a kind that is not supported")
	}
	option.Dtstart = start
	// A floating or local UNTIL was read as UTC.
	if raw := e.Props.Get(ical.PropRecurrenceRule).Value; !option.Until.IsZero() && !strings.Contains(untilOf(raw), "Z") {
		u := option.Until
		option.Until = time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), 0, start.Location())
		if len(untilOf(raw)) == len("20060102") {
			option.Until = option.Until.AddDate(0, 0, 1).Add(-time.Second) // that day included
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

// dates reads a property that lists dates, with commas or by repetition.
func (p *parser) dates(e ical.Event, name string) ([]time.Time, error) {
	var list []time.Time
	for _, prop := range e.Props[name] {
		if prop.ValueType() == ical.ValuePeriod {
			return nil, fmt.Errorf("%s with periods is not supported", name)
		}
		for one := range strings.SplitSeq(prop.Value, ",") {
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
