package branch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/rig"
	"github.com/yeolda/yeolda/firmware-sim/internal/tape"
)

// ErrNoTape means that no tape is being made, or that there is none yet.
var ErrNoTape = errors.New("no recording")

// Tape is what the branch's recorder and player do.
type Tape struct {
	Recording *time.Time     `json:"recording"` // since when; null: no
	Replay    *tape.Progress `json:"replay"`    // null: no
}

// Tape tells what the recorder and the player do.
func (b *Branch) Tape() Tape {
	t := Tape{Replay: b.player.Progress()}
	if since := b.recorder.Running(); !since.IsZero() {
		t.Recording = &since
	}
	return t
}

func (b *Branch) tellTape() {
	t := b.Tape()
	b.cfg.Changed(Change{Tape: &t})
}

// Record begins a tape of what happens to the branch, in place of an earlier
// one.
func (b *Branch) Record() {
	b.recorder.Start(b.State())
	b.tellTape()
}

// Recording gives the tape that is being made, or the last one; ErrNoTape when
// there is none.
func (b *Branch) Recording() (tape.Tape, error) {
	t, ok := b.recorder.Tape()
	if !ok {
		return t, ErrNoTape
	}
	return t, nil
}

// EndRecording ends the tape and gives it; ErrNoTape when none is being made.
func (b *Branch) EndRecording() (tape.Tape, error) {
	t, ok := b.recorder.Stop()
	if !ok {
		return tape.Tape{}, ErrNoTape
	}
	b.tellTape()
	return t, nil
}

// Scenarios are those of tape.Scenarios that fit the branch.
func (b *Branch) Scenarios() map[string]tape.Tape {
	fitting := make(map[string]tape.Tape)
	for name, t := range tape.Scenarios {
		if b.fits(t) == nil {
			fitting[name] = t
		}
	}
	return fitting
}

// Replay lets a tape happen to the branch, in place of one that does. The agent
// and the cloud cannot tell it from what it was made of. Errors match
// tape.ErrTape.
func (b *Branch) Replay(t tape.Tape, speed float64) error {
	if !(speed >= tape.MinSpeed && speed <= tape.MaxSpeed) { // also for NaN
		return fmt.Errorf("%w: a speed of %g, want %g to %g", tape.ErrTape, speed, tape.MinSpeed, tape.MaxSpeed)
	}
	if err := errors.Join(t.Validate(), b.fits(t)); err != nil {
		return err
	}
	b.player.Play(t, speed)
	b.tellTape()
	return nil
}

// StopReplay ends a replay, if there is one.
func (b *Branch) StopReplay() { b.player.Stop() }

// fits reports whether the branch has everything that a tape is about.
func (b *Branch) fits(t tape.Tape) error {
	s := b.rig.State()
	door := func(device string) bool {
		return slices.ContainsFunc(s.Doors, func(d rig.Door) bool { return d.Device == device })
	}
	for i, step := range t.Steps {
		ok := true
		switch {
		case step.Sensor != nil:
			ok = slices.ContainsFunc(s.Sensors, func(p rig.Sensor) bool { return p.Location == step.Sensor.Location }) &&
				rig.ValidAir(step.Sensor.Thermometer, step.Sensor.Hygrometer)
		case step.Door != nil:
			ok = door(step.Door.Device)
		case step.Exit != nil:
			ok = door(step.Exit.Device)
		case step.Keypad != nil:
			ok = door(step.Keypad.Device)
		case step.Signal != nil:
			ok = slices.ContainsFunc(s.AirConditioners, func(u rig.AirConditioner) bool { return u.Name == step.Signal.Unit })
		case step.Faults != nil:
			ok = !slices.ContainsFunc(*step.Faults, func(f fault.Fault) bool { return f.Device != "" && !b.rig.HasDevice(f.Device) })
		}
		if !ok {
			return fmt.Errorf("%w: step %d is about something that %s does not have, or cannot be", tape.ErrTape, i+1, b.cfg.Branch)
		}
	}
	return nil
}

// act lets a step of a tape that fits happen.
func (b *Branch) act(s tape.Step) {
	var err error
	switch {
	case s.Sensor != nil:
		_, err = b.rig.SetAir(s.Sensor.Location, &s.Sensor.Thermometer, &s.Sensor.Hygrometer, true)
	case s.Door != nil:
		_, err = b.rig.OpenLeaf(s.Door.Device, s.Door.Open)
	case s.Exit != nil:
		_, err = b.rig.PressExit(s.Exit.Device)
	case s.Keypad != nil:
		err = b.rig.Keypad(s.Keypad.Device, s.Keypad.Right)
	case s.Signal != nil:
		err = b.rig.Hear(s.Signal.Unit, s.Signal.CarrierHz, s.Signal.Durations)
	case s.Faults != nil:
		b.change(func(fault.List) fault.List { return slices.Clone(*s.Faults) })
	}
	if err != nil {
		b.cfg.Logger.Error("step of a tape", "branch", b.cfg.Branch, "error", err)
	}
}

// replayed is told that a tape is over: the air that it held may drift again.
func (b *Branch) replayed(t tape.Tape) {
	for _, s := range t.Steps {
		if s.Sensor != nil {
			// The tape fits: there is such a sensor.
			_, _ = b.rig.SetAir(s.Sensor.Location, nil, nil, false)
		}
	}
	b.tellTape()
}
