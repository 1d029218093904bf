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

// ErrNoRecording is returned when no recording is in progress, or none exists yet.
var ErrNoRecording = errors.New("no recording")

// Playback is the state of the branch's recorder and player.
type Playback struct {
	Recording *time.Time          `json:"recording"` // start of the recording in progress; null: none
	Replay    *recording.Progress `json:"replay"`    // null: none
}

// Playback returns the state of the recorder and the player.
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

// Record starts a recording of the branch and discards an earlier one.
func (b *Branch) Record() {
	b.recorder.Start(b.State())
	b.notifyPlayback()
}

// Recording returns the recording in progress, or else the last one. It returns ErrNoRecording if there is neither.
func (b *Branch) Recording() (recording.Recording, error) {
	t, ok := b.recorder.Recording()
	if !ok {
		return t, ErrNoRecording
	}
	return t, nil
}

// EndRecording ends and returns the recording. It returns ErrNoRecording if none is in progress.
func (b *Branch) EndRecording() (recording.Recording, error) {
	t, ok := b.recorder.Stop()
	if !ok {
		return recording.Recording{}, ErrNoRecording
	}
	b.notifyPlayback()
	return t, nil
}

// Scenarios returns those of recording.Scenarios that fit the branch.
func (b *Branch) Scenarios() map[string]recording.Recording {
	fitting := make(map[string]recording.Recording)
	for name, t := range recording.Scenarios {
		if b.fits(t) == nil {
			fitting[name] = t
		}
	}
	return fitting
}

// Replay plays a recording on the branch and replaces one that is playing. Agent and cloud cannot distinguish it from
// the recorded events. Errors match recording.ErrInvalid.
func (b *Branch) Replay(t recording.Recording, speed float64) error {
	if !(speed >= recording.MinSpeed && speed <= recording.MaxSpeed) { // NaN fails too
		return fmt.Errorf("%w: a speed of %g, want %g to %g", recording.ErrInvalid, speed, recording.MinSpeed, recording.MaxSpeed)
	}
	if err := errors.Join(t.Validate(), b.fits(t)); err != nil {
		return err
	}
	b.player.Play(t, speed)
	b.notifyPlayback()
	return nil
}

// StopReplay ends a replay, if one is playing.
func (b *Branch) StopReplay() { b.player.Stop() }

// fits reports whether the branch has every device of a recording.
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
			return fmt.Errorf("%w: step %d names a device that %s does not have, or an impossible value", recording.ErrInvalid, i+1, b.cfg.Branch)
		}
	}
	return nil
}

// act applies one step of a recording that fits.
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
		b.cfg.Logger.Error("apply a step of a recording", "branch", b.cfg.Branch, "error", err)
	}
}

// replayed is called at the end of a recording: air that it held may drift again.
func (b *Branch) replayed(t recording.Recording) {
	for _, s := range t.Steps {
		if s.Sensor != nil {
			// The recording fits, so the sensor exists.
			_, _ = b.hardware.SetAir(s.Sensor.Location, nil, nil, false)
		}
	}
	b.notifyPlayback()
}
