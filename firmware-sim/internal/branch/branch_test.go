package branch_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/firmware-sim/internal/branch"
	"github.com/yeolda/yeolda/firmware-sim/internal/cloudtest"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	name = "gangnam"
	// testTimeout ends the wait for an event that does not come.
	testTimeout = 30 * time.Second
)

func TestUnlock(t *testing.T) {
	t.Parallel()
	s := run(t)
	id := s.cloud.Unlock(name, "front_1", "front_2")
	for _, device := range []string{"front_1", "front_2"} {
		if r := s.cloud.Result(id, device, testTimeout); r.Outcome != protocol.Opened {
			t.Errorf("%s: %+v", device, r)
		}
	}
	s.until("locked again", func() bool {
		return !slices.ContainsFunc(s.State().Doors, func(d hardware.Door) bool { return !d.Locked })
	})
	list := s.of(id)
	if len(list) != 2 || len(s.Hardware().Actuations()) != 2 {
		t.Fatalf("actuations: %+v", s.Hardware().Actuations())
	}
	for _, a := range list {
		if a.Energized || a.EnergizedMs < 600 || a.EnergizedMs > 2000 {
			t.Errorf("a pulse of 600 ms: %+v", a)
		}
	}
}

// TestRequestsAtOneDoor presses one door from many clients at once: each request has exactly one actuation.
func TestRequestsAtOneDoor(t *testing.T) {
	t.Parallel()
	s := run(t)
	ids := make([]string, 8)
	for i := range ids {
		ids[i] = s.cloud.Unlock(name, "room_1")
	}
	for _, id := range ids {
		if r := s.cloud.Result(id, "room_1", testTimeout); r.Outcome != protocol.Opened {
			t.Errorf("%+v", r)
		}
		if n := len(s.of(id)); n != 1 {
			t.Errorf("request %s moved the relay %d times, want once", id, n)
		}
	}
}

func TestLockFaultsAsTheCloudSeesThem(t *testing.T) {
	t.Parallel()
	s := run(t)
	s.fault(fault.Fault{Kind: fault.Stuck, Device: "room_1"})
	s.fault(fault.Fault{Kind: fault.RelayDead, Device: "room_2"})
	s.fault(fault.Fault{Kind: fault.Slow, Device: "room_3", DelayMs: 100})
	s.fault(fault.Fault{Kind: fault.Slow, Device: "room_4", DelayMs: 900})
	for _, tt := range []struct {
		device     string
		want       protocol.Outcome
		actuations int
	}{
		{"room_1", protocol.Failed, 1}, {"room_2", protocol.Failed, 0}, {"room_3", protocol.Opened, 1},
		{"room_4", protocol.Failed, 1}, {"room_5", protocol.Opened, 1},
	} {
		r, id := s.outcome(tt.device)
		if r.Outcome != tt.want {
			t.Errorf("%s: %+v, want %s", tt.device, r, tt.want)
		}
		if n := len(s.of(id)); n != tt.actuations {
			t.Errorf("%s: %d actuations, want %d", tt.device, n, tt.actuations)
		}
	}
	s.ClearFaults()
	for _, device := range []string{"room_1", "room_2", "room_4"} {
		if r, _ := s.outcome(device); r.Outcome != protocol.Opened {
			t.Errorf("%s after the faults: %+v", device, r)
		}
	}
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	s := run(t)
	s.fault(fault.Fault{Kind: fault.Duplicate})
	for range 5 {
		r, id := s.outcome("room_1")
		if n := len(s.of(id)); r.Outcome != protocol.Opened || n != 1 {
			t.Errorf("%+v with %d actuations, want opened once", r, n)
		}
	}
}

// TestReorderedAndLost duplicates, delays and reorders messages: a door opens once or not at all.
func TestReorderedAndLost(t *testing.T) {
	t.Parallel()
	s := run(t)
	s.fault(fault.Fault{Kind: fault.Duplicate})
	s.fault(fault.Fault{Kind: fault.Reorder, DelayMs: 300})
	s.fault(fault.Fault{Kind: fault.Loss, Percent: 30})
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = s.cloud.Unlock(name, "room_1")
	}
	s.until("a door opens", func() bool { return len(s.Hardware().Actuations()) > 0 })
	time.Sleep(protocol.ClaimLimit) // requests in progress have ended by then
	opened := 0
	for _, id := range ids {
		n := len(s.of(id))
		if n > 1 {
			t.Errorf("request %s moved the relay %d times", id, n)
		}
		opened += n
	}
	if opened != len(s.Hardware().Actuations()) || opened == len(ids) {
		t.Errorf("%d requests opened the door %d times", opened, len(s.Hardware().Actuations()))
	}
}

// TestClock changes the time of day, also in the middle of an unlock: doors do not depend on it.
func TestClock(t *testing.T) {
	t.Parallel()
	s := run(t)
	for _, jump := range []time.Duration{-time.Hour, time.Hour, -time.Since(time.Unix(0, 0)), 20 * 365 * 24 * time.Hour} {
		s.fault(fault.Fault{Kind: fault.Clock, OffsetMs: jump.Milliseconds()})
		id := s.cloud.Unlock(name, "room_1")
		if r := s.cloud.Result(id, "room_1", testTimeout); r.Outcome != protocol.Opened {
			t.Errorf("%v: %+v", jump, r)
		}
		s.ClearFaults() // the clock jumps back during the pulse
		s.until("locked again", func() bool { return !s.of(id)[0].Energized })
		if a := s.of(id); len(a) != 1 || a[0].EnergizedMs < 600 || a[0].EnergizedMs > 2000 {
			t.Errorf("%v: a pulse of 600 ms: %+v", jump, a)
		}
	}

	s.fault(fault.Fault{Kind: fault.PowerOff})
	s.fault(fault.Fault{Kind: fault.Clock, OffsetMs: -time.Hour.Milliseconds()})
	on := time.Now()
	s.ClearFault(fault.PowerOff, "")
	started := s.cloud.Status(name, protocol.Online, on, testTimeout).StartedAt
	if off := time.Until(started) + time.Hour; off.Abs() > time.Minute {
		t.Errorf("agent with a clock one hour slow reports startedAt %v", started)
	}
}

func TestNetworkLag(t *testing.T) {
	t.Parallel()
	s := run(t)
	s.fault(fault.Fault{Kind: fault.NetworkLag, DelayMs: 200})
	start := time.Now()
	r, _ := s.outcome("room_1")
	// ask, claim, grant and result: four one-way delays
	if took := time.Since(start); r.Outcome != protocol.Opened || took < 800*time.Millisecond {
		t.Errorf("%s after %v", r.Outcome, took)
	}
	// The round trip is longer than a grant's maximum age, so no door opens.
	s.fault(fault.Fault{Kind: fault.NetworkLag, DelayMs: 800})
	id := s.cloud.Unlock(name, "room_2")
	if r := s.cloud.Result(id, "room_2", testTimeout); r.Outcome != protocol.Dropped || len(s.of(id)) != 0 {
		t.Errorf("%+v with %d actuations, want dropped", r, len(s.of(id)))
	}
}

// TestNetworkCut asks during a partition: the request never opens a door, not even after the partition, and the agent
// reconnects.
func TestNetworkCut(t *testing.T) {
	t.Parallel()
	s := run(t)
	s.fault(fault.Fault{Kind: fault.NetworkCut})
	if s.State().Online {
		t.Error("the branch is online during a partition")
	}
	lost := s.cloud.Unlock(name, "room_1")
	cut := time.Now()
	time.Sleep(time.Second) // the fault itself
	s.ClearFaults()
	s.until("online after the cut", func() bool { return s.State().Online })
	s.cloud.Status(name, protocol.Online, cut, testTimeout)
	if n := len(s.of(lost)); n != 0 {
		t.Errorf("a request from the partition drove a relay %d times", n)
	}
	if r, _ := s.outcome("room_1"); r.Outcome != protocol.Opened {
		t.Errorf("after the cut: %+v", r)
	}
}

// TestCutAfterGrant cuts the network during a pulse: the agent ends the pulse on its own.
func TestCutAfterGrant(t *testing.T) {
	t.Parallel()
	s := run(t)
	id := s.cloud.Unlock(name, "room_1")
	s.until("energised", func() bool { return len(s.of(id)) == 1 })
	s.fault(fault.Fault{Kind: fault.NetworkCut})
	s.until("locked again", func() bool { return !s.of(id)[0].Energized })
}

func TestPowerOff(t *testing.T) {
	t.Parallel()
	s := run(t)
	id := s.cloud.Unlock(name, "room_1")
	s.until("energised", func() bool { return len(s.of(id)) == 1 })
	off := time.Now()
	s.fault(fault.Fault{Kind: fault.PowerOff})
	state := s.State()
	if state.Online || state.Powered || slices.ContainsFunc(state.Doors, func(d hardware.Door) bool { return !d.Locked }) {
		t.Errorf("without power: %+v", state)
	}
	// The connection is reset instead of closed in order, so the broker sends the will.
	s.cloud.Status(name, protocol.Offline, off, testTimeout)
	lost := s.cloud.Unlock(name, "room_1")

	on := time.Now()
	s.ClearFaults()
	s.until("online again", func() bool { return s.State().Online })
	s.cloud.Status(name, protocol.Online, on, testTimeout)
	if r, _ := s.outcome("room_1"); r.Outcome != protocol.Opened {
		t.Errorf("with power again: %+v", r)
	}
	if n := len(s.of(lost)); n != 0 {
		t.Errorf("a request from before the power cut drove a relay %d times", n)
	}
}

// TestPowerOffAndOn switches power off and on in quick succession: in the end an agent runs.
func TestPowerOffAndOn(t *testing.T) {
	t.Parallel()
	s := run(t)
	for range 5 {
		s.fault(fault.Fault{Kind: fault.PowerOff})
		s.ClearFaults()
	}
	s.until("online", func() bool { return s.State().Online })
	if r, _ := s.outcome("front_1"); r.Outcome != protocol.Opened {
		t.Errorf("%+v", r)
	}
}

// TestLostChip removes the GPIO chip of a door: presses fail until it is back.
func TestLostChip(t *testing.T) {
	t.Parallel()
	s := run(t)
	s.fault(fault.Fault{Kind: fault.LostChip, Device: "room_1"})
	if r, id := s.outcome("room_1"); r.Outcome != protocol.Failed || len(s.of(id)) != 0 {
		t.Errorf("without the chip: %+v with %d actuations, want failed without", r, len(s.of(id)))
	}
	if r, _ := s.outcome("room_2"); r.Outcome != protocol.Opened {
		t.Errorf("the door of another chip: %+v", r)
	}
	s.ClearFaults()
	if r, _ := s.outcome("room_1"); r.Outcome != protocol.Opened {
		t.Errorf("with the chip again: %+v", r)
	}
}

// TestSenseOpen releases a lock without its relay: the agent reports it.
func TestSenseOpen(t *testing.T) {
	t.Parallel()
	s := run(t)
	time.Sleep(1200 * time.Millisecond) // for a second after the start, the agent attributes the change to the relay
	s.fault(fault.Fault{Kind: fault.SenseOpen, Device: "room_2"})
	if e := s.cloud.Event(name, protocol.EventLockReleased, testTimeout); e.Device != "room_2" {
		t.Errorf("got %+v, want the event at room_2", e)
	}
}

// TestClone connects another machine with the agent's credential: both take the connection over from each other, and the
// doors work again after the clone has left.
func TestClone(t *testing.T) {
	t.Parallel()
	s := run(t)
	s.fault(fault.Fault{Kind: fault.Clone})
	s.until("the agent is disconnected", func() bool { return !s.State().Online })
	s.ClearFault(fault.Clone, "")
	s.until("online again", func() bool { return s.State().Online })
	if r, _ := s.outcome("room_1"); r.Outcome != protocol.Opened {
		t.Errorf("after the clone: %+v", r)
	}
}

// TestStop ends a branch: its agent is not started again.
func TestStop(t *testing.T) {
	t.Parallel()
	s := build(t)
	const times = 6
	for range times {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		s.until("online", func() bool { return s.State().Online })
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if s.State().Online {
			t.Error("the branch is online after Run returned")
		}
	}
	if n := s.cloud.Connections(); n != times {
		t.Errorf("%d connections for %d runs", n, times)
	}
}

func TestClimateCommand(t *testing.T) {
	t.Parallel()
	s := run(t)
	command := func(path ...string) protocol.ClimateResult {
		c := protocol.ClimateCommand{RequestID: uuid.NewString(), AirConditionerID: protocol.LeafID(name, "로비", path...)}
		s.cloud.Send(name, c)
		m := s.cloud.Wait("climate result", testTimeout, func(m cloudtest.Message) bool {
			r, err := protocol.Decode[protocol.ClimateResult](m.Payload)
			return m.Kind == protocol.KindClimateResult && err == nil && r.RequestID == c.RequestID
		})
		r, err := protocol.Decode[protocol.ClimateResult](m.Payload)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	unit := func() hardware.AirConditioner { return s.State().AirConditioners[0] }

	if r := command("냉방", "24", "자동", "회전"); r.Outcome != protocol.ClimateSent {
		t.Errorf("%+v", r)
	}
	want := hardware.AirConditioner{Name: "로비", Power: true, Mode: "냉방", Temperature: 24, Fan: "자동", Direction: "회전", Frames: 1}
	if got := unit(); got.Signal == nil || got.Signal.Protocol != "LG" || withoutSignal(got) != want {
		t.Errorf("the unit shows %+v", got)
	}
	s.fault(fault.Fault{Kind: fault.IRDead})
	if r := command("전원 끄기"); r.Outcome != protocol.ClimateFailed || !unit().Power {
		t.Errorf("with a dead transmitter: %+v", r)
	}
	s.ClearFaults()
	if r := command("전원 끄기"); r.Outcome != protocol.ClimateSent || unit().Power {
		t.Errorf("off: %+v, %+v", r, unit())
	}
}

func withoutSignal(u hardware.AirConditioner) hardware.AirConditioner {
	u.Signal = nil
	return u
}

func TestSensors(t *testing.T) {
	t.Parallel()
	s := run(t)
	read := func() []protocol.Reading {
		ask := protocol.SensorsRead{RequestID: uuid.NewString()}
		s.cloud.Send(name, ask)
		var readings []protocol.Reading
		s.cloud.Wait("readings", testTimeout, func(m cloudtest.Message) bool {
			r, err := protocol.Decode[protocol.SensorsReadings](m.Payload)
			readings = r.Readings
			return m.Kind == protocol.KindSensorsReadings && err == nil && r.RequestID == ask.RequestID
		})
		return readings
	}
	celsius, percent := 19.5, 33.0
	for _, p := range s.State().Sensors {
		if _, err := s.Hardware().SetAir(p.Location, &celsius, &percent, true); err != nil {
			t.Fatal(err)
		}
	}
	got := read()
	if len(got) != 5 {
		t.Errorf("%d readings, want 5", len(got))
	}
	for _, r := range got {
		if math.Abs(r.Celsius-celsius) > 0.1 || math.Abs(r.RelativeHumidity-percent) > 0.2 {
			t.Errorf("%+v, want %g °C and %g %%", r, celsius, percent)
		}
	}
	s.fault(fault.Fault{Kind: fault.SensorDead, Device: "2번 룸"})
	got = read()
	if len(got) != 4 || slices.ContainsFunc(got, func(r protocol.Reading) bool { return r.Location == "2번 룸" }) {
		t.Errorf("with a dead sensor: %+v", got)
	}
}

func TestSetFaultRefuses(t *testing.T) {
	t.Parallel()
	s := run(t)
	for _, f := range []fault.Fault{
		{Kind: "broken"}, {Kind: fault.Stuck, Device: "room_9"}, {Kind: fault.NetworkCut, Device: "room_1"}, {Kind: fault.Slow},
	} {
		if err := s.SetFault(f); !errors.Is(err, branch.ErrFault) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
