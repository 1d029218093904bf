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
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	var events [][]string
	var stack []string
	var event []string
	calendars := 0
	err := unfold(body, func(line string) error {
		name, _, _ := strings.Cut(line, ":")
		name, _, _ = strings.Cut(name, ";")
		name = strings.ToUpper(name)
		value := line[strings.LastIndexByte(line, ':')+1:]
		switch name {
		case "BEGIN":
			stack = append(stack, strings.ToUpper(strings.TrimSpace(value)))
			switch {
			case len(stack) > maxDepth:
				return fmt.Errorf("components nest deeper than %d", maxDepth)
			case len(stack) == 1 && stack[0] != "VCALENDAR":
				return errIncomplete
			case len(stack) == 2 && stack[1] == "VEVENT":
				event = []string{}
			}
		case "END":
			if len(stack) == 0 || stack[len(stack)-1] != strings.ToUpper(strings.TrimSpace(value)) {
				return errIncomplete
			}
			if len(stack) == 2 && stack[1] == "VEVENT" {
				if events = append(events, event); len(events) > maxEvents {
					return fmt.Errorf("%w: more than %d events", ErrOverBudget, maxEvents)
				}
			}
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				calendars++
			}
		default:
			if len(stack) == 0 {
				return errIncomplete
			}
			if len(stack) == 2 && stack[1] == "VEVENT" && wanted[name] {
				event = append(event, line)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(stack) > 0 || calendars == 0:
		return nil, errIncomplete
	}
	return events, nil
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
