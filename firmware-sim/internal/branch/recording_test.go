package branch_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/internal/branch"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/firmware-sim/internal/recording"
	"github.com/yeolda/yeolda/protocol"
)

// TestRecordingReplays plays the recording of one branch on another, whose agent reports the same events to its cloud.
func TestRecordingReplays(t *testing.T) {
	t.Parallel()
	const room = "room_1"
	pin := func(p *hardware.Plan) { // the only entries that a recording can replay are those at a standalone keypad
		i := slices.IndexFunc(p.Doors, func(d hardware.DoorPlan) bool { return d.Device == room })
		p.Doors[i].Agent, p.Doors[i].PIN = false, "481901"
	}
	first := run(t, pin)
	first.Record()
	celsius, percent := 31.5, 64.0
	hands := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := first.Hardware().SetAir("로비", &celsius, &percent, true)
	hands("air", err)
	_, err = first.Hardware().EnterPIN(room, "481901")
	hands("keypad", err)
	_, err = first.Hardware().OpenLeaf("room_2", true)
	hands("leaf", err)
	_, err = first.Hardware().PressExit("front_1")
	hands("exit", err)
	first.fault(fault.Fault{Kind: fault.Stuck, Device: "room_3"})
	if r, _ := first.outcome("room_3"); r.Outcome != protocol.Failed {
		t.Errorf("%+v", r)
	}
	got, err := first.EndRecording()
	if err != nil {
		t.Fatal(err)
	}

	second := run(t, pin)
	if err := second.Replay(got, 10); err != nil {
		t.Fatal(err)
	}
	lobby := func() (rowC, rowH float64, held bool) {
		s := second.State().Sensors[0]
		return s.Thermometer, s.Hygrometer, s.Held
	}
	second.until("the fault comes", func() bool { return len(second.Presence().Faults) == 1 })
	if doors := second.State().Doors; !doors[2].Released || !doors[3].Open {
		t.Errorf("room 1 by keypad: %+v; room 2: %+v", doors[2], doors[3])
	}
	if c, h, held := lobby(); c != celsius || h != percent || !held {
		t.Errorf("the lobby has %g °C and %g %%, held: %v", c, h, held)
	}
	if r, _ := second.outcome("room_3"); r.Outcome != protocol.Failed {
		t.Errorf("the stuck lock of the recording: %+v", r)
	}
	second.until("the replay ends", func() bool { return second.Playback().Replay == nil })
	second.until("the air drifts again", func() bool { _, _, held := lobby(); return !held })
	want := []protocol.EventKind{protocol.EventDoorOpened, protocol.EventExitPressed}
	for _, kind := range want {
		second.cloud.Event(name, kind, testTimeout)
	}
	if n := len(second.Hardware().Actuations()); n != 1 { // the press above
		t.Errorf("got %d actuations, want only that of the press", n)
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	s := build(t)
	step := func(st recording.Step) recording.Recording { return recording.Recording{Steps: []recording.Step{st}} }
	for what, tt := range map[string]struct {
		rec   recording.Recording
		speed float64
	}{
		"no steps":   {recording.Recording{}, 1},
		"no door":    {step(recording.Step{Door: &recording.Leaf{Device: "room_9"}}), 1},
		"no unit":    {step(recording.Step{Signal: &recording.Signal{Unit: "attic", Durations: []uint32{1}}}), 1},
		"no sensor":  {step(recording.Step{Sensor: &recording.Air{Location: "attic"}}), 1},
		"too hot":    {step(recording.Step{Sensor: &recording.Air{Location: "로비", Thermometer: 99}}), 1},
		"no device":  {step(recording.Step{Faults: &fault.List{{Kind: fault.Stuck, Device: "room_9"}}}), 1},
		"too fast":   {step(recording.Step{Exit: &recording.Button{Device: "room_1"}}), 1000},
		"stands":     {step(recording.Step{Exit: &recording.Button{Device: "room_1"}}), 0},
		"no keypad":  {step(recording.Step{Keypad: &recording.Entry{Device: "room_9"}}), 1},
		"two things": {step(recording.Step{Exit: &recording.Button{Device: "room_1"}, Keypad: &recording.Entry{Device: "room_1"}}), 1},
	} {
		if err := s.Replay(tt.rec, tt.speed); !errors.Is(err, recording.ErrInvalid) || s.Playback().Replay != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.EndRecording(); !errors.Is(err, branch.ErrNoRecording) {
		t.Errorf("the end of no recording: %v", err)
	}
	if _, err := s.Recording(); !errors.Is(err, branch.ErrNoRecording) {
		t.Errorf("no recording: %v", err)
	}
}

// TestScenarios plays each scenario on the demo branch and checks that the branch is as before.
func TestScenarios(t *testing.T) {
	t.Parallel()
	s := run(t)
	before := s.State()
	for scenario, tp := range recording.Scenarios {
		if _, fits := s.Scenarios()[scenario]; !fits || tp.Title["ko"] == "" || tp.Title["en"] == "" {
			t.Errorf("%s is not offered, or has no title: %v", scenario, tp.Title)
			continue
		}
		if err := s.Replay(tp, recording.MaxSpeed); err != nil {
			t.Fatal(err)
		}
		s.until(scenario+" is over", func() bool { return s.Playback().Replay == nil })
		s.until("online again", func() bool { return s.State().Online })
		after := s.State()
		if !reflect.DeepEqual(after.Faults, before.Faults) || slices.ContainsFunc(after.Doors, open) {
			t.Errorf("%s: faults %v, doors %+v", scenario, after.Faults, after.Doors)
		}
	}
}

func open(d hardware.Door) bool { return d.Open }
