package channel

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Limits on an imported calendar.
const (
	maxEvents     = 20_000
	maxDepth      = 8
	maxEventLine  = 4 << 10 // bytes
	maxParameters = 200     // bytes of a name and its parameters; the library is quadratic in them
	maxEventLines = 500
)

var errIncomplete = errors.New("calendar is incomplete")

// wanted lists the event properties that are read. All others, such as attachments and descriptions, are dropped
// before parsing.
var wanted = map[string]bool{
	"UID": true, "RECURRENCE-ID": true, "DTSTART": true, "DTEND": true, "DURATION": true,
	"STATUS": true, "TRANSP": true, "SEQUENCE": true, "RRULE": true, "RDATE": true, "EXDATE": true,
}

// splitEvents splits a calendar into events, each as its unfolded lines with the wanted properties. The iCalendar
// library recurses on every BEGIN and copies a parameter for each of its characters, so it only gets small, flat
// pieces. An error means that the calendar is incomplete.
func splitEvents(body []byte) ([][]string, error) {
	var s splitter
	err := unfold(bytes.TrimPrefix(body, []byte("\ufeff")), s.line)
	switch {
	case err != nil:
		return nil, err
	case len(s.open) > 0 || s.calendars == 0:
		return nil, errIncomplete
	}
	return s.events, nil
}

// splitter collects the events of a calendar, line by line.
type splitter struct {
	events    [][]string
	open      []string // the names of the components that have begun and not ended
	event     []string // the lines of the present event
	calendars int      // that have ended
}

func (s *splitter) line(line string) error {
	name, _, _ := strings.Cut(line, ":")
	name, _, _ = strings.Cut(name, ";")
	name = strings.ToUpper(name)
	switch {
	case name == "BEGIN":
		return s.begin(componentOf(line))
	case len(s.open) == 0:
		return errIncomplete
	case name == "END":
		return s.end(componentOf(line))
	case s.inEvent() && wanted[name]:
		s.event = append(s.event, line)
	}
	return nil
}

// componentOf returns the name of the component that a line begins or ends.
func componentOf(line string) string {
	return strings.ToUpper(strings.TrimSpace(line[strings.LastIndexByte(line, ':')+1:]))
}

// inEvent reports whether the present component is an event of a calendar.
func (s *splitter) inEvent() bool { return len(s.open) == 2 && s.open[1] == "VEVENT" }

func (s *splitter) begin(component string) error {
	s.open = append(s.open, component)
	switch {
	case len(s.open) > maxDepth:
		return fmt.Errorf("components nest deeper than %d", maxDepth)
	case s.open[0] != "VCALENDAR":
		return errIncomplete
	case s.inEvent():
		s.event = []string{}
	}
	return nil
}

func (s *splitter) end(component string) error {
	last := len(s.open) - 1
	if s.open[last] != component {
		return errIncomplete
	}
	if s.inEvent() {
		if s.events = append(s.events, s.event); len(s.events) > maxEvents {
			return fmt.Errorf("%w: more than %d events", ErrOverBudget, maxEvents)
		}
	}
	if s.open = s.open[:last]; last == 0 {
		s.calendars++
	}
	return nil
}

// unfold calls f with each non-empty content line (RFC 5545, 3.1). Bare line feeds also end a line.
func unfold(body []byte, f func(string) error) error {
	var line []byte
	flush := func() error {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		return f(string(line))
	}
	for raw := range bytes.Lines(body) {
		raw = bytes.TrimRight(raw, "\r\n")
		if len(raw) > 0 && (raw[0] == ' ' || raw[0] == '\t') {
			line = append(line, raw[1:]...)
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		line = append(line[:0], raw...)
	}
	return flush()
}
