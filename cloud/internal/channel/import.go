package channel

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-ical"
)

// importPast and importHorizon bound the imported period.
const (
	importPast    = 24 * time.Hour
	importHorizon = 180 * 24 * time.Hour
	slot          = 10 * time.Minute
	maxProblems   = 20
)

// ErrOverBudget is returned for a calendar that costs more memory or time than a room's calendar ever needs.
var ErrOverBudget = errors.New("calendar exceeds its budget")

// The budget of one calendar. Bounds on single entries are not enough, because their product is what costs.
const (
	maxBookings   = 2_000                  // bookings in the imported period
	maxDates      = 10_000                 // dates listed by RDATE and EXDATE
	maxSteps      = 100_000                // steps of recurrence rules, past occurrences included
	maxRecurring  = 200                    // recurring entries
	maxRecurrence = 7 * 24 * time.Hour     // length of a recurring entry
	maxSpan       = 366 * 24 * time.Hour   // length of any entry
	parseTimeout  = 400 * time.Millisecond // a search for a date that never comes costs 15 ms and no step
)

// ParseCalendar reads the bookings of a calendar from a day ago to 180 days ahead.
//
// zone applies to whole days and to times without a zone. Entries with our own domain
// are skipped, because a channel may send our own times back. Times are rounded outwards
// to whole slots; the caller adds margins. Entries that cannot be parsed are listed as
// problems.
//
// later reports that the calendar contains bookings after the period, so it will contain more when it is read later, although it has
// not changed. An error means that the calendar is incomplete, or [ErrOverBudget].
func ParseCalendar(ctx context.Context, body []byte, zone *time.Location, domain string, now time.Time) (list []Booking, problems []string, later bool, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, parseTimeout, fmt.Errorf("%w: more than %v to read it", ErrOverBudget, parseTimeout))
	defer stop()
	events, err := splitEvents(body)
	if err != nil {
		return nil, nil, false, fmt.Errorf("channel: %w", err)
	}
	p := parser{ctx: ctx, zone: zone, suffix: "@" + strings.ToLower(domain), from: now.Add(-importPast), to: now.Add(importHorizon), bookings: map[string]entry{}, zones: map[string]*time.Location{}}
	var overrides []ical.Event
	for _, lines := range events {
		if err := p.spent(); err != nil {
			return nil, nil, false, fmt.Errorf("channel: %w", err)
		}
		e, err := decodeEvent(lines)
		if err != nil {
			p.problem("", err)
			continue
		}
		if e.Props.Get(ical.PropRecurrenceID) != nil {
			overrides = append(overrides, e) // applied after the entries they override
			continue
		}
		p.event(e)
	}
	for _, e := range overrides {
		p.event(e)
	}
	if err := p.spent(); err != nil {
		return nil, nil, false, fmt.Errorf("channel: %w", err)
	}
	list = make([]Booking, 0, len(p.bookings))
	for _, id := range p.order {
		b := p.bookings[id].Booking
		if b.Cancelled || p.inPeriod(b) {
			list = append(list, b)
		}
	}
	return list, p.problems, p.later, nil
}

var errMalformed = errors.New("malformed entry")

// decodeEvent parses one event. The library panics on a parameter without a value.
func decodeEvent(lines []string) (e ical.Event, err error) {
	defer func() {
		if recover() != nil {
			err = errMalformed
		}
	}()
	if len(lines) > maxEventLines {
		return ical.Event{}, fmt.Errorf("an entry of %d lines", len(lines))
	}
	var b strings.Builder
	b.WriteString("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n")
	for _, line := range lines {
		if len(line) > maxEventLine {
			return ical.Event{}, fmt.Errorf("a line of %d bytes", len(line))
		}
		if name, _, _ := strings.Cut(line, ":"); len(name) > maxParameters {
			return ical.Event{}, fmt.Errorf("parameters of %d bytes", len(name))
		}
		b.WriteString(strings.ReplaceAll(line, "\r", ""))
		b.WriteString("\r\n")
	}
	b.WriteString("END:VEVENT\r\nEND:VCALENDAR\r\n")
	calendar, err := ical.NewDecoder(strings.NewReader(b.String())).Decode()
	if err != nil {
		return ical.Event{}, err
	}
	all := calendar.Events()
	if len(all) != 1 {
		return ical.Event{}, errMalformed
	}
	return all[0], nil
}

type parser struct {
	ctx      context.Context // of this call
	zone     *time.Location
	suffix   string // of the UIDs in our own calendars
	from, to time.Time

	bookings map[string]entry
	imported int // bookings of the period
	order    []string
	problems []string
	later    bool                      // some bookings begin after the period
	zones    map[string]*time.Location // by TZID; loading one reads a file

	recurring, dateCount, steps int // spent of the budget
	over                        error
}

// spent returns the error of a calendar that is over its budget or has taken too long.
func (p *parser) spent() error {
	if p.over == nil {
		p.over = context.Cause(p.ctx)
	}
	if p.over == nil && p.imported > maxBookings {
		p.over = fmt.Errorf("%w: more than %d bookings", ErrOverBudget, maxBookings)
	}
	return p.over
}

// spend takes n from a budget.
func (p *parser) spend(spent *int, n, budget int, of string) error {
	if *spent += n; *spent > budget && p.over == nil {
		p.over = fmt.Errorf("%w: more than %d %s", ErrOverBudget, budget, of)
	}
	return p.spent()
}

func (p *parser) problem(uid string, err error) {
	if len(p.problems) < maxProblems {
		text := strings.ToValidUTF8(fmt.Sprintf("%.80s: %v", uid, err), "?")
		p.problems = append(p.problems, strings.ReplaceAll(text, "\x00", "?"))
	}
}

// entry is a booking, and whether it overrides one occurrence of a recurring entry.
type entry struct {
	Booking
	override bool
}

// keep records a booking. An override wins over the entry it overrides; otherwise the newer version wins.
func (p *parser) keep(b entry) {
	old, twice := p.bookings[b.ExternalID]
	if twice && (old.override && !b.override || old.override == b.override && old.Seq > b.Seq) {
		return
	}
	if !twice {
		p.order = append(p.order, b.ExternalID)
	}
	p.within(b.Start)
	if !b.Start.IsZero() {
		b.Start, b.End = outwards(b.Start, b.End, p.zone)
	}
	if p.inPeriod(old.Booking) {
		p.imported--
	}
	if p.inPeriod(b.Booking) {
		p.imported++
	}
	p.bookings[b.ExternalID] = b
}

// inPeriod reports whether a booking is in the imported period.
func (p *parser) inPeriod(b Booking) bool {
	return b.End.After(b.Start) && b.End.After(p.from) && b.Start.Before(p.to)
}

// within reports whether a booking begins before the end of the period.
func (p *parser) within(start time.Time) bool {
	before := start.Before(p.to)
	p.later = p.later || !before
	return before
}

func (p *parser) event(e ical.Event) {
	uid := strings.TrimSpace(value(e, ical.PropUID))
	if uid == "" {
		p.problem("", errors.New("entry without a UID"))
		return
	}
	if len(uid) > 255 {
		p.problem(uid, errors.New("the UID is longer than 255 bytes"))
		return
	}
	if strings.HasSuffix(strings.ToLower(uid), p.suffix) {
		return
	}
	if !utf8.ValidString(uid) || strings.ContainsRune(uid, 0) { // of another encoding: the database stores no such text, but the time is sold
		uid = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(uid)))
	}
	if err := p.read(e, uid); err != nil {
		p.problem(uid, err)
	}
}

func (p *parser) read(e ical.Event, uid string) error {
	seq, _ := strconv.ParseInt(value(e, ical.PropSequence), 10, 64) // 0 if absent
	b := entry{Booking: Booking{
		ExternalID: uid,
		Seq:        seq,
		// A transparent entry is treated like a cancelled one: an earlier version may have occupied the time.
		Cancelled: strings.EqualFold(value(e, ical.PropStatus), string(ical.EventCancelled)) ||
			strings.EqualFold(value(e, ical.PropTransparency), "TRANSPARENT"),
	}}
	if r := e.Props.Get(ical.PropRecurrenceID); r != nil {
		if r.Params.Get("RANGE") != "" {
			return errors.New("RECURRENCE-ID with RANGE is not supported")
		}
		at, err := p.when(r)
		if err != nil {
			return err
		}
		b.ExternalID, b.override = instanceID(uid, at), true
	}
	start, length, err := p.span(e)
	if err != nil {
		if b.Cancelled {
			p.keep(b) // the time of a cancelled entry is not needed
			return nil
		}
		return err
	}
	b.Start, b.End = start, length.end(start)
	if e.Props.Get(ical.PropRecurrenceRule) == nil && e.Props.Get(ical.PropRecurrenceDates) == nil {
		p.keep(b)
		return nil
	}
	if p.ended(e, b.Booking) {
		return nil
	}
	if err := p.spend(&p.recurring, 1, maxRecurring, "recurring entries"); err != nil {
		return err
	}
	if most := b.End.Sub(start); most > maxRecurrence+time.Hour { // a week in which the clocks go back
		return fmt.Errorf("a recurring entry lasts %v", most)
	}
	starts, err := p.recur(e, start, length)
	if err != nil {
		return err
	}
	for _, at := range starts {
		b.ExternalID, b.Start, b.End = instanceID(uid, at), at, length.end(at)
		p.keep(b)
		if err := p.spent(); err != nil {
			return err
		}
	}
	return nil
}

// instanceID identifies one occurrence of a recurring entry by its original start.
func instanceID(uid string, at time.Time) string { return uid + "/" + utc(at) }

// length is how long an entry takes. Days follow the calendar (RFC 5545, 3.3.6 and 3.8.5.3): one has 23 or 25 hours when the clocks change.
type length struct {
	days int
	rest time.Duration
}

func (l length) end(start time.Time) time.Time { return start.AddDate(0, 0, l.days).Add(l.rest) }

// daysBetween counts the days from one date to another.
func daysBetween(from, to time.Time) int {
	date := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(date(to).Sub(date(from)) / day)
}

const day = 24 * time.Hour

// span returns an event's start and length; the end is exclusive.
func (p *parser) span(e ical.Event) (start time.Time, l length, err error) {
	from := e.Props.Get(ical.PropDateTimeStart)
	if from == nil {
		return start, l, errors.New("no DTSTART")
	}
	if start, err = p.when(from); err != nil {
		return start, l, err
	}
	switch end, duration := e.Props.Get(ical.PropDateTimeEnd), e.Props.Get(ical.PropDuration); {
	case end != nil:
		at, err := p.when(end)
		if err != nil {
			return start, l, err
		}
		if wholeDay(from) && wholeDay(end) {
			l.days = daysBetween(start, at)
		} else {
			l.rest = at.Sub(start)
		}
	case duration != nil:
		if l.rest, err = duration.Duration(); err != nil {
			return start, l, err
		}
		if !strings.Contains(strings.ToUpper(duration.Value), "T") { // of weeks or days alone
			l = length{days: int(l.rest / day)}
		}
	case wholeDay(from):
		l.days = 1
	}
	switch long := l.end(start).Sub(start); {
	case long < 0:
		return start, l, errors.New("ends before it starts")
	case long > maxSpan:
		return start, l, fmt.Errorf("an entry of %v", long)
	}
	return start, l, nil
}

func wholeDay(prop *ical.Prop) bool {
	return prop.ValueType() == ical.ValueDate || len(prop.Value) == len("20060102")
}

// when parses a date or date-time: UTC, in the zone of its TZID, or local to the branch.
func (p *parser) when(prop *ical.Prop) (time.Time, error) {
	local := *prop
	local.Params = ical.Params{}
	local.Value = strings.TrimSpace(prop.Value)
	if wholeDay(prop) {
		local.SetValueType(ical.ValueDate)
	}
	zone, err := p.location(prop.Params.Get(ical.PropTimezoneID))
	if err != nil {
		return time.Time{}, err
	}
	at, err := local.DateTime(zone)
	if err != nil {
		return time.Time{}, err
	}
	if at.Year() < 1970 || at.Year() > 9999 {
		return time.Time{}, fmt.Errorf("year %d", at.Year())
	}
	return at, nil
}

// location loads a zone by its IANA name or by the Windows name for Korea.
func (p *parser) location(tzid string) (*time.Location, error) {
	switch tzid {
	case "":
		return p.zone, nil
	case "Korea Standard Time":
		tzid = "Asia/Seoul"
	case "Local": // the server's own zone
		return nil, errors.New("unknown time zone Local")
	}
	if zone, ok := p.zones[tzid]; ok {
		return zone, nil
	}
	zone, err := time.LoadLocation(strings.TrimPrefix(tzid, "/"))
	if err == nil {
		p.zones[tzid] = zone
	}
	return zone, err
}

func value(e ical.Event, name string) string {
	if prop := e.Props.Get(name); prop != nil {
		return prop.Value
	}
	return ""
}

// outwards rounds to whole slots of the branch's local time.
func outwards(start, end time.Time, zone *time.Location) (time.Time, time.Time) {
	return floor(start, zone), floor(end.Add(slot-1), zone)
}

func floor(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	shift := time.Duration(offset) * time.Second
	return t.Add(shift).Truncate(slot).Add(-shift).UTC()
}
