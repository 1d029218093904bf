package branch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/firmware-sim/internal/recording"
)

// ErrNoRecording means that no recording is being made, or that there is none yet.
var ErrNoRecording = errors.New("no recording")

// Playback is what the branch's recorder and player do.
type Playback struct {
	Recording *time.Time          `json:"recording"` // since when; null: no
	Replay    *recording.Progress `json:"replay"`    // null: no
}

// Playback tells what the recorder and the player do.
func (b *Branch) Playback() Playback {
	t := Playback{Replay: b.player.Progress()}
	if since := b.recorder.Running(); !since.IsZero() {
		t.Recording = &since
	}
	return t
}

func (b *Branch) notifyPlayback() {
	t := b.Playback()
	b.cfg.Changed(Change{Playback: &t})
}

// Record begins a recording of what happens to the branch, in place of an earlier
// one.
func (b *Branch) Record() {
	b.recorder.Start(b.State())
	b.notifyPlayback()
}

// Recording gives the recording that is being made, or the last one; ErrNoRecording when
// there is none.
func (b *Branch) Recording() (recording.Recording, error) {
	t, ok := b.recorder.Recording()
	if !ok {
		return t, ErrNoRecording
	}
	return t, nil
}

// EndRecording ends the recording and gives it; ErrNoRecording when none is being made.
func (b *Branch) EndRecording() (recording.Recording, error) {
	t, ok := b.recorder.Stop()
	if !ok {
		return recording.Recording{}, ErrNoRecording
	}
	b.notifyPlayback()
	return t, nil
}

// Scenarios are those of recording.Scenarios that fit the branch.
func (b *Branch) Scenarios() map[string]recording.Recording {
	fitting := make(map[string]recording.Recording)
	for name, t := range recording.Scenarios {
		if b.fits(t) == nil {
			fitting[name] = t
		}
	}
	return fitting
}

// Replay lets a recording happen to the branch, in place of one that does. The agent
// and the cloud cannot tell it from what it was made of. Errors match
// recording.ErrInvalid.
func (b *Branch) Replay(t recording.Recording, speed float64) error {
	if !(speed >= recording.MinSpeed && speed <= recording.MaxSpeed) { // also for NaN
		return fmt.Errorf("%w: a speed of %g, want %g to %g", recording.ErrInvalid, speed, recording.MinSpeed, recording.MaxSpeed)
	}
	if err := errors.Join(t.Validate(), b.fits(t)); err != nil {
		return err
	}
	b.player.Play(t, speed)
	b.notifyPlayback()
	return nil
}

// StopReplay ends a replay, if there is one.
func (b *Branch) StopReplay() { b.player.Stop() }

// fits reports whether the branch has everything that a recording is about.
func (b *Branch) fits(t recording.Recording) error {
	s := b.hardware.State()
	door := func(device string) bool {
		return slices.ContainsFunc(s.Doors, func(d hardware.Door) bool { return d.Device == device })
	}
	for i, step := range t.Steps {
		ok := true
		switch {
		case step.Sensor != nil:
			ok = slices.ContainsFunc(s.Sensors, func(p hardware.Sensor) bool { return p.Location == step.Sensor.Location }) &&
				hardware.ValidAir(step.Sensor.Thermometer, step.Sensor.Hygrometer)
		case step.Door != nil:
			ok = door(step.Door.Device)
		case step.Exit != nil:
			ok = door(step.Exit.Device)
		case step.Keypad != nil:
			ok = door(step.Keypad.Device)
		case step.Signal != nil:
			ok = slices.ContainsFunc(s.AirConditioners, func(u hardware.AirConditioner) bool { return u.Name == step.Signal.Unit })
		case step.Faults != nil:
			ok = !slices.ContainsFunc(*step.Faults, func(f fault.Fault) bool { return f.Device != "" && !b.hardware.HasDevice(f.Device) })
		}
		if !ok {
			return fmt.Errorf("%w: step %d is about something that %s does not have, or cannot be", recording.ErrInvalid, i+1, b.cfg.Branch)
		}
	}
	return nil
}

// act lets a step of a recording that fits happen.
func (b *Branch) act(s recording.Step) {
	var err error
	switch {
	case s.Sensor != nil:
		_, err = b.hardware.SetAir(s.Sensor.Location, &s.Sensor.Thermometer, &s.Sensor.Hygrometer, true)
	case s.Door != nil:
		_, err = b.hardware.OpenLeaf(s.Door.Device, s.Door.Open)
	case s.Exit != nil:
		_, err = b.hardware.PressExit(s.Exit.Device)
	case s.Keypad != nil:
		err = b.hardware.Keypad(s.Keypad.Device, s.Keypad.Right)
	case s.Signal != nil:
		err = b.hardware.Hear(s.Signal.Unit, s.Signal.CarrierHz, s.Signal.Durations)
	case s.Faults != nil:
		b.change(func(fault.List) fault.List { return slices.Clone(*s.Faults) })
	}
	if err != nil {
		b.cfg.Logger.Error("step of a recording", "branch", b.cfg.Branch, "error", err)
	}
}

// replayed is told that a recording is over: the air that it held may drift again.
func (b *Branch) replayed(t recording.Recording) {
	for _, s := range t.Steps {
		if s.Sensor != nil {
			// The recording fits: there is such a sensor.
			_, _ = b.hardware.SetAir(s.Sensor.Location, nil, nil, false)
		}
	}
	b.notifyPlayback()
}
