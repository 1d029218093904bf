package recording_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/firmware-sim/internal/recording"
)

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tooMany := `{"lengthMs":1,"steps":[` + strings.Repeat(`{"atMs":0,"exit":{"device":"a"}},`, recording.MaxSteps) + `{"atMs":0,"exit":{"device":"a"}}]}`
	for name, text := range map[string]string{
		"nothing":          ``,
		"no steps":         `{"lengthMs":1}`,
		"unknown field":    `{"lengthMs":1,"steps":[{"atMs":0,"relay":{"device":"room_1"}}]}`,
		"nothing happens":  `{"lengthMs":1,"steps":[{"atMs":0}]}`,
		"two at once":      `{"lengthMs":1,"steps":[{"atMs":0,"exit":{"device":"a"},"door":{"device":"a"}}]}`,
		"back in time":     `{"lengthMs":9,"steps":[{"atMs":5,"exit":{"device":"a"}},{"atMs":4,"exit":{"device":"a"}}]}`,
		"after the end":    `{"lengthMs":1,"steps":[{"atMs":2,"exit":{"device":"a"}}]}`,
		"before it begins": `{"lengthMs":1,"steps":[{"atMs":-1,"exit":{"device":"a"}}]}`,
		"days":             `{"lengthMs":86400001,"steps":[{"atMs":2,"exit":{"device":"a"}}]}`,
		"too many":         tooMany,
		"unknown fault":    `{"lengthMs":1,"steps":[{"atMs":0,"faults":[{"kind":"fire"}]}]}`,
		"ends on a gap":    `{"lengthMs":1,"steps":[{"atMs":0,"signal":{"unit":"a","carrierHz":1,"durations":[1,2]}}]}`,
		"another value":    `{"lengthMs":1,"steps":[{"atMs":0,"exit":{"device":"a"}}]} {}`,
	} {
		if _, err := recording.Parse([]byte(text)); !errors.Is(err, recording.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParse checks that a valid recording can be encoded and parsed again, and plays to its end.
func FuzzParse(f *testing.F) {
	for _, s := range recording.Scenarios {
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"lengthMs":1,"steps":[{"atMs":0,"sensor":{"location":"a","thermometer":1e308,"hygrometer":-0}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := recording.Parse(text)
		if err != nil {
			return
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := recording.Parse(written); err != nil || !reflect.DeepEqual(first, again) {
			t.Errorf("%+v, then %+v (%v)", first, again, err)
		}
	})
}

// TestRecorder checks that a recording starts with the current state and contains external events, not the agent's
// actions.
func TestRecorder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recording.Recorder
		open := hardware.Door{Device: "room_1", Open: true}
		r.Changed(hardware.Change{Door: &open}) // before the recording starts
		if _, ok := r.Stop(); ok {
			t.Error("Stop succeeded without a recording")
		}
		r.Start(hardware.State{
			Doors:   []hardware.Door{{Device: "room_1", Locked: true}},
			Sensors: []hardware.Sensor{{Location: "로비", Thermometer: 21, Hygrometer: 40}},
			Faults:  fault.List{{Kind: fault.Duplicate}},
		})
		time.Sleep(time.Second)
		unlocked := hardware.Door{Device: "room_1", Released: true}
		r.Changed(hardware.Change{Door: &unlocked})
		r.Changed(hardware.Change{Actuation: &hardware.Actuation{Device: "room_1"}})
		r.Changed(hardware.Change{Door: &open})
		time.Sleep(time.Second)
		pressed := hardware.Door{Device: "room_1", Open: true, Exit: true}
		r.Changed(hardware.Change{Door: &pressed})
		r.Changed(hardware.Change{Door: &pressed})
		r.Changed(hardware.Change{Keypad: &hardware.Keypad{Device: "room_1", Right: true}})
		r.Changed(hardware.Change{Sensor: &hardware.Sensor{Location: "로비", Thermometer: 22, Hygrometer: 41}})
		r.Changed(hardware.Change{AirConditioner: &hardware.AirConditioner{Name: "로비", Signal: &hardware.Signal{CarrierHz: 38_000, Durations: []uint32{9}}}})
		r.Faults(nil)
		time.Sleep(time.Second)
		got, ok := r.Stop()
		if !ok {
			t.Error("nothing was recorded")
		}
		r.Faults(nil)
		if last, ok := r.Recording(); !ok || !reflect.DeepEqual(last, got) {
			t.Errorf("the last recording is %+v", last)
		}
		const want = `{"lengthMs":3000,"steps":[` +
			`{"atMs":0,"sensor":{"location":"로비","thermometer":21,"hygrometer":40}},` +
			`{"atMs":0,"door":{"device":"room_1","open":false}},` +
			`{"atMs":0,"faults":[{"kind":"duplicate"}]},` +
			`{"atMs":1000,"door":{"device":"room_1","open":true}},` +
			`{"atMs":2000,"exit":{"device":"room_1"}},` +
			`{"atMs":2000,"keypad":{"device":"room_1","right":true}},` +
			`{"atMs":2000,"sensor":{"location":"로비","thermometer":22,"hygrometer":41}},` +
			`{"atMs":2000,"signal":{"unit":"로비","carrierHz":38000,"durations":[9]}},` +
			`{"atMs":2000,"faults":[]}]}`
		text, err := json.Marshal(got)
		if err != nil || string(text) != want {
			t.Errorf("%s (%v)\nwant\n%s", text, err, want)
		}
		if _, err := recording.Parse(text); err != nil {
			t.Error(err)
		}
	})
}

// TestFullRecording checks that a recording at its limit ignores further events and stays valid.
func TestFullRecording(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recording.Recorder
		r.Start(hardware.State{})
		for range recording.MaxSteps {
			r.Changed(hardware.Change{Keypad: &hardware.Keypad{Device: "room_1"}})
		}
		time.Sleep(2 * recording.MaxLength)
		r.Changed(hardware.Change{Keypad: &hardware.Keypad{Device: "room_1"}})
		got, _ := r.Stop()
		if err := got.Validate(); err != nil || len(got.Steps) != recording.MaxSteps {
			t.Errorf("%d steps: %v", len(got.Steps), err)
		}
	})
}

// stage notes when a player opens which door.
type stage struct {
	*recording.Player
	began time.Time
	seen  []string
	ended int
}

func newStage() *stage {
	s := &stage{began: time.Now()}
	s.Player = recording.NewPlayer(func(step recording.Step) {
		s.seen = append(s.seen, fmt.Sprint(step.Exit.Device, " ", time.Since(s.began)))
	}, func(recording.Recording) { s.ended++ })
	return s
}

var three = recording.Recording{LengthMs: 4000, Steps: []recording.Step{
	{AtMs: 1000, Exit: &recording.Button{Device: "a"}},
	{AtMs: 1000, Exit: &recording.Button{Device: "b"}},
	{AtMs: 3000, Exit: &recording.Button{Device: "c"}},
}}

func TestPlayer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		if s.Progress() != nil {
			t.Error("the player has progress before Play")
		}
		s.Play(three, 2)
		time.Sleep(time.Second)
		synctest.Wait()
		if p := s.Progress(); p == nil || p.AtMs != 2000 || p.Step != 2 || p.Steps != 3 {
			t.Errorf("after a second at double speed: %+v", p)
		}
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		if s.ended != 0 {
			t.Error("the recording ended early")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if want := []string{"a 500ms", "b 500ms", "c 1.5s"}; !slices.Equal(s.seen, want) || s.ended != 1 || s.Progress() != nil {
			t.Errorf("happened: %v, ended %d times, %+v", s.seen, s.ended, s.Progress())
		}
	})
}

func TestStopAndPlayAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.Play(three, 1)
		time.Sleep(2 * time.Second)
		s.Play(three, 1) // ends the first
		time.Sleep(2 * time.Second)
		s.Stop()
		s.Stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"a 1s", "b 1s", "a 3s", "b 3s"}; !slices.Equal(s.seen, want) || s.ended != 2 {
			t.Errorf("happened: %v, ended %d times", s.seen, s.ended)
		}
	})
}
