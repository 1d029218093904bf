package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
)

// The limits of a recording: what a page can hold and a user can wait for.
const (
	MaxSteps     = 20_000
	MaxLength    = 24 * time.Hour
	MaxBytes     = 4 << 20
	maxDurations = 2_000
)

// ErrInvalid is returned for text that is not a valid recording.
var ErrInvalid = errors.New("not a recording")

// Recording is a recording or a scenario.
type Recording struct {
	// Title is the name of a scenario, by language (ko, en).
	Title    map[string]string `json:"title,omitempty"`
	LengthMs int64             `json:"lengthMs"`
	Steps    []Step            `json:"steps"` // in the order of AtMs
}

// Step is one event; exactly one pointer is set.
type Step struct {
	AtMs   int64       `json:"atMs"` // since the start
	Sensor *Air        `json:"sensor,omitempty"`
	Door   *Leaf       `json:"door,omitempty"`
	Exit   *Button     `json:"exit,omitempty"`
	Keypad *Entry      `json:"keypad,omitempty"`
	Signal *Signal     `json:"signal,omitempty"`
	Faults *fault.List `json:"faults,omitempty"` // all faults from now on
}

// Air is the reading of a sensor from now on.
type Air struct {
	Location    string  `json:"location"`
	Thermometer float64 `json:"thermometer"` // °C
	Hygrometer  float64 `json:"hygrometer"`  // percent
}

// Leaf is the opening or closing of a door.
type Leaf struct {
	Device string `json:"device"`
	Open   bool   `json:"open"`
}

// Button is a press of an exit button.
type Button struct {
	Device string `json:"device"`
}

// Entry is the entry of a PIN at a keypad.
type Entry struct {
	Device string `json:"device"`
	Right  bool   `json:"right"` // the PIN opened the door
}

// Signal is a signal at a unit's receiver.
type Signal struct {
	Unit      string   `json:"unit"`
	CarrierHz int      `json:"carrierHz"`
	Durations []uint32 `json:"durations"` // µs, mark first
}

// Parse reads a recording and checks the limits. The branch checks whether it has the devices. Errors match ErrInvalid.
func Parse(text []byte) (Recording, error) {
	var t Recording
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return Recording{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Recording{}, fmt.Errorf("%w: more than one value", ErrInvalid)
	}
	return t, t.Validate()
}

// Validate checks the limits. Errors match ErrInvalid.
func (t Recording) Validate() error {
	if t.LengthMs < 0 || t.LengthMs > MaxLength.Milliseconds() {
		return fmt.Errorf("%w: lengthMs is %d, want 0 to %d", ErrInvalid, t.LengthMs, MaxLength.Milliseconds())
	}
	if len(t.Steps) == 0 || len(t.Steps) > MaxSteps {
		return fmt.Errorf("%w: %d steps, want 1 to %d", ErrInvalid, len(t.Steps), MaxSteps)
	}
	last := int64(0)
	for i, s := range t.Steps {
		if s.AtMs < last || s.AtMs > t.LengthMs {
			return fmt.Errorf("%w: step %d is at %d ms, want %d to %d", ErrInvalid, i+1, s.AtMs, last, t.LengthMs)
		}
		last = s.AtMs
		if err := s.validate(); err != nil {
			return fmt.Errorf("%w: step %d: %w", ErrInvalid, i+1, err)
		}
	}
	return nil
}

func (s Step) validate() error {
	things := 0
	for _, there := range []bool{s.Sensor != nil, s.Door != nil, s.Exit != nil, s.Keypad != nil, s.Signal != nil, s.Faults != nil} {
		if there {
			things++
		}
	}
	if things != 1 {
		return fmt.Errorf("%d events, want one", things)
	}
	if s.Signal != nil && (len(s.Signal.Durations)%2 == 0 || len(s.Signal.Durations) > maxDurations) {
		return fmt.Errorf("a signal has %d durations, want an odd number up to %d", len(s.Signal.Durations), maxDurations)
	}
	if s.Faults != nil {
		for _, f := range *s.Faults {
			if err := f.Validate(); err != nil {
				return err
			}
		}
	}
	return nil
}
