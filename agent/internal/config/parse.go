package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/yeolda/yeolda/protocol"
)

// Problem is an invalid part of the settings. Each problem affects only its own section.
type Problem struct {
	Section string // "door front_1", "sensor 2", "broker"; empty: the whole file
	Err     error
}

// Name returns a short name for a self-test.
func (p Problem) Name() string {
	const limit = 90 // bytes
	name := strings.TrimSpace("settings " + p.Section)
	return strings.ToValidUTF8(name[:min(len(name), limit)], "")
}

func (p Problem) Error() string {
	if p.Section == "" {
		return p.Err.Error()
	}
	return p.Section + ": " + p.Err.Error()
}

// ReadSettings reads the settings file. It returns every valid section, together with an error that lists the problems.
func ReadSettings(name string) (Settings, error) {
	s, problems := readSettings(name)
	return s, join(problems)
}

// LoadSettings reads the settings file. While it has invalid sections, the sections of the same kind in saved, a copy of the
// last valid file, stay in use; if the whole file is unreadable, all of saved does. The problems remain to be reported.
func LoadSettings(name, saved string) (Settings, []Problem) {
	s, problems := readSettings(name)
	if len(problems) == 0 {
		return s, nil
	}
	old, err := ReadSettings(saved)
	if err != nil {
		return s, problems
	}
	for _, p := range problems {
		kind, _, _ := strings.Cut(p.Section, " ")
		switch kind {
		case "":
			return old, problems
		case "broker":
			s.Broker = old.Broker
		case "ca":
			s.CA = old.CA
		case "door":
			s.Doors = keep(s.Doors, old.Doors, (checker).door)
		case "air_conditioner":
			s.AirConditioners = keep(s.AirConditioners, old.AirConditioners, (checker).airConditioner)
		case "sensor":
			s.Sensors = keep(s.Sensors, old.Sensors, (checker).sensor)
		}
	}
	return s, problems
}

// keep appends the saved sections that do not conflict with valid ones.
func keep[T any](valid, saved []T, validate func(checker, T) error) []T {
	check := newChecker()
	return slices.DeleteFunc(slices.Concat(valid, saved), func(section T) bool { return validate(check, section) != nil })
}

func readSettings(name string) (Settings, []Problem) {
	data, err := os.ReadFile(name)
	if err != nil {
		return Settings{}, []Problem{{Err: fmt.Errorf("settings: %w", err)}}
	}
	return parseSettings(data)
}

// ParseSettings parses settings. It returns every valid section, together with an error that lists the problems.
func ParseSettings(data []byte) (Settings, error) {
	s, problems := parseSettings(data)
	return s, join(problems)
}

func join(problems []Problem) error {
	var err error
	for _, p := range problems {
		err = errors.Join(err, p)
	}
	return err
}

// document is the settings file before its sections are validated.
type document struct {
	Broker          any   `toml:"broker"`
	CA              any   `toml:"ca"`
	Doors           []any `toml:"door"`
	AirConditioners []any `toml:"air_conditioner"`
	Sensors         []any `toml:"sensor"`
}

// parseSettings rejects unknown settings: a misspelled setting must not be ignored silently.
func parseSettings(data []byte) (Settings, []Problem) {
	var problems []Problem
	var d document
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&d)
	var unknown *toml.StrictMissingError
	switch {
	case errors.As(err, &unknown): // at the top level; everything else was decoded
		problems = append(problems, Problem{"unknown setting", errors.New("\n" + unknown.String())})
	case err != nil:
		return Settings{}, []Problem{{Err: fmt.Errorf("settings: %w", err)}}
	}
	s := Settings{Broker: text(d.Broker), CA: text(d.CA)}
	for name, value := range map[string]any{"broker": d.Broker, "ca": d.CA} {
		if _, ok := value.(string); value != nil && !ok {
			problems = append(problems, Problem{name, errors.New("must be a string")})
		}
	}
	check := newChecker()
	s.Doors = sections(d.Doors, "door", "device", check.door, &problems)
	s.AirConditioners = sections(d.AirConditioners, "air_conditioner", "name", check.airConditioner, &problems)
	s.Sensors = sections(d.Sensors, "sensor", "location", check.sensor, &problems)
	return s, problems
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// sections decodes and validates the sections of one kind. Invalid ones become problems.
func sections[T any](list []any, kind, key string, validate func(T) error, problems *[]Problem) []T {
	var valid []T
	for i, section := range list {
		value, err := decode[T](section)
		if err == nil {
			err = validate(value)
		}
		if err == nil {
			valid = append(valid, value)
			continue
		}
		name := fmt.Sprint(i + 1)
		if fields, ok := section.(map[string]any); ok && text(fields[key]) != "" {
			name = text(fields[key])
		}
		*problems = append(*problems, Problem{kind + " " + name, err})
	}
	return valid
}

func decode[T any](section any) (value T, err error) {
	if _, ok := section.(map[string]any); !ok {
		return value, errors.New("must be a table")
	}
	data, err := toml.Marshal(section)
	if err != nil {
		return value, err
	}
	err = toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&value)
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		var names []string
		for _, e := range unknown.Errors {
			names = append(names, strings.Join(e.Key(), "."))
		}
		return value, fmt.Errorf("unknown setting %s", strings.Join(names, ", "))
	}
	return value, err
}

// checker validates sections that must not share names or lines.
type checker struct {
	names map[string]bool
	lines map[string]string // the use of each line
}

func newChecker() checker { return checker{make(map[string]bool), make(map[string]string)} }

func (c checker) unique(kind, name string) error {
	if c.names[kind+" "+name] {
		return errors.New("duplicate section")
	}
	c.names[kind+" "+name] = true
	return nil
}

func (c checker) airConditioner(a AirConditioner) error { return c.unique("air_conditioner", a.Name) }

func (c checker) sensor(s Sensor) error { return c.unique("sensor", s.Location) }

func (c checker) door(d Door) error {
	_, _, err := protocol.ParseDevice(d.Device)
	if p := d.Pulse(); p != 0 && (p < protocol.MinPulse || p > protocol.MaxPulse) {
		err = errors.Join(err, fmt.Errorf("pulse_ms must be %d to %d", protocol.MinPulse.Milliseconds(), protocol.MaxPulse.Milliseconds()))
	}
	if d.Relay.Pull != "" || d.Relay.DebounceMs != nil {
		err = errors.Join(err, errors.New("relay is an output, which has no pull or debounce_ms"))
	}
	type use struct {
		name string
		line *Line
	}
	lines := []use{{"relay", &d.Relay}, {"sense", d.Sense}, {"contact", d.Contact}, {"exit", d.Exit}}
	for _, k := range d.Keypads {
		err = errors.Join(err, k.validate())
		lines = append(lines, use{"keypad d0", k.D0}, use{"keypad d1", k.D1})
	}
	uses := make(map[string]string)
	for _, l := range lines {
		if l.line == nil {
			continue
		}
		if lineErr := l.line.validate(l.name != "relay"); lineErr != nil {
			err = errors.Join(err, fmt.Errorf("%s %w", l.name, lineErr))
			continue
		}
		key := l.line.Chip + " " + l.line.String()
		if other := c.lines[key] + uses[key]; other != "" {
			err = errors.Join(err, fmt.Errorf("%s is on line %s, which is also the %s", l.name, l.line, other))
		}
		uses[key] = l.name + " of " + d.Device
	}
	if err == nil {
		err = c.unique("door", d.Device)
	}
	if err == nil {
		for key, use := range uses {
			c.lines[key] = use
		}
	}
	return err
}

func (k Keypad) validate() error {
	switch {
	case k.USB == "" && (k.D0 == nil || k.D1 == nil):
		return errors.New("keypad needs d0 and d1, or usb")
	case k.USB != "" && (k.D0 != nil || k.D1 != nil):
		return errors.New("keypad has both lines and usb")
	case k.USB != "" && !filepath.IsLocal(k.USB):
		return fmt.Errorf("keypad: usb %q is not a name below /dev/input", k.USB)
	case k.USB == "" && (k.D0.ActiveLow != k.D1.ActiveLow || k.D0.Pull != k.D1.Pull):
		return errors.New("keypad: d0 and d1 have different active_low or pull")
	case k.USB == "" && (k.D0.DebounceMs != nil || k.D1.DebounceMs != nil):
		return errors.New("keypad: d0 and d1 have no debounce_ms, which would hide the pulses")
	}
	return nil
}

func (l Line) validate(input bool) error {
	switch {
	case l.Name == "" && l.Offset == nil:
		return errors.New("has no line")
	case l.Name != "" && l.Offset != nil:
		return errors.New("has both line and offset")
	case l.Offset != nil && *l.Offset < 0:
		return errors.New("has a negative offset")
	case !slices.Contains([]string{"", "up", "down", "none"}, l.Pull):
		return fmt.Errorf("has pull %q, want up, down or none", l.Pull)
	case l.Debounce() < 0 || l.Debounce() > time.Second:
		return errors.New("has a debounce_ms outside 0 to 1000")
	case input && l.OpenDrain:
		return errors.New("is an input, which has no open_drain")
	}
	return nil
}
