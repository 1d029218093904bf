package hardware_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func plan(t *testing.T) hardware.Plan {
	t.Helper()
	codes, err := fleetconfig.Remote("lg2")
	if err != nil {
		t.Fatal(err)
	}
	return hardware.Plan{
		Doors:           []hardware.DoorPlan{{Device: "front_1", PIN: "123456"}, {Device: "front_2"}, {Device: "room_1"}},
		AirConditioners: []hardware.UnitPlan{{Name: "lobby", Cools: []string{"lobby"}, Codes: codes}},
		Sensors: []hardware.SensorPlan{
			{Location: "lobby", Kind: "sht4x", Celsius: 27, Humidity: 60},
			{Location: "1", Kind: "aht20", Celsius: 22, Humidity: 45},
			{Location: "2", Kind: "sht3x", Celsius: 21, Humidity: 40},
			{Location: "3", Kind: "bme280", Celsius: 20, Humidity: 35},
		},
	}
}

func powered(t *testing.T) (*hardware.Installation, agent.Board) {
	t.Helper()
	r, err := hardware.New(plan(t), func(hardware.Change) {})
	if err != nil {
		t.Fatal(err)
	}
	board, err := r.PowerOn()
	if err != nil {
		t.Fatal(err)
	}
	return r, board
}

func drive(t *testing.T, l agent.Lock, level gpio.Level) {
	t.Helper()
	if err := l.Relay.Out(level); err != nil {
		t.Fatal(err)
	}
}

func TestRelayDrivesTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		lock := board.Locks[0]
		if lock.Relay.Read() != gpio.Low || lock.Sense.Read() != gpio.Low {
			t.Fatal("the lock is not locked at first")
		}
		drive(t, lock, gpio.High)
		r.Energized("front_1", "request 1", "")
		if lock.Relay.Read() != gpio.High || lock.Sense.Read() != gpio.High {
			t.Error("the lock does not follow its relay")
		}
		if d := r.State().Doors[0]; d.Locked || !d.Released || d.Actuations != 1 {
			t.Errorf("door: %+v", d)
		}
		time.Sleep(time.Second)
		if a := r.Actuations()[0]; !a.Energized || a.EnergizedMs != 1000 {
			t.Errorf("while energised: %+v", a)
		}
		drive(t, lock, gpio.Low)
		time.Sleep(time.Second)
		a := r.Actuations()[0]
		if a.Energized || a.EnergizedMs != 1000 || a.RequestID != "request 1" || a.Device != "front_1" {
			t.Errorf("afterwards: %+v", a)
		}
	})
}

// TestLongerPulse: a relay that is driven again for another request is an
// actuation of that request's own, though the relay never fell.
func TestLongerPulse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		for _, request := range []string{"a", "b"} {
			drive(t, board.Locks[2], gpio.High)
			r.Energized("room_1", request, "")
			time.Sleep(time.Second)
		}
		drive(t, board.Locks[2], gpio.Low)
		list := r.Actuations()
		if len(list) != 2 || list[0].RequestID != "a" || list[1].RequestID != "b" ||
			list[0].EnergizedMs != 1000 || list[1].EnergizedMs != 1000 {
			t.Errorf("actuations: %+v", list)
		}
	})
}

func TestLockFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		r.SetFaults(fault.List{
			{Kind: fault.Stuck, Device: "front_1"}, {Kind: fault.RelayDead, Device: "front_2"},
			{Kind: fault.Slow, Device: "room_1", DelayMs: 200},
		})
		stuck, dead, slow := board.Locks[0], board.Locks[1], board.Locks[2]

		drive(t, stuck, gpio.High)
		if stuck.Relay.Read() != gpio.High || stuck.Sense.Read() != gpio.Low {
			t.Error("stuck: want the line driven and no confirmation")
		}
		if err := dead.Relay.Out(gpio.High); err == nil || dead.Relay.Read() != gpio.Low {
			t.Errorf("relay-dead: the relay was driven (%v)", err)
		}
		drive(t, slow, gpio.High)
		time.Sleep(199 * time.Millisecond)
		if slow.Relay.Read() != gpio.High || slow.Sense.Read() != gpio.Low {
			t.Error("slow: want the line driven and no confirmation yet")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if slow.Sense.Read() != gpio.High {
			t.Error("slow: no confirmation after the delay")
		}
		if n := len(r.Actuations()); n != 2 {
			t.Errorf("%d actuations, want 2: a dead relay is not energised", n)
		}
		r.SetFaults(nil)
		if stuck.Sense.Read() != gpio.High {
			t.Error("the stuck lock does not come free")
		}
	})
}

func TestPowerOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		drive(t, board.Locks[0], gpio.High)
		time.Sleep(300 * time.Millisecond)
		r.PowerOff()
		if d := r.State().Doors[0]; !d.Locked || d.Released {
			t.Errorf("the relay did not fall: %+v", d)
		}
		if a := r.Actuations()[0]; a.Energized || a.EnergizedMs != 300 {
			t.Errorf("actuation: %+v", a)
		}
		again, err := r.PowerOn()
		if err != nil {
			t.Fatal(err)
		}
		if err := board.Locks[0].Relay.Out(gpio.High); err == nil {
			t.Error("the dead agent's board still drives")
		}
		drive(t, again.Locks[0], gpio.High)
	})
}

func TestInputsShowTheBranch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		lock := board.Locks[0]
		for _, p := range []gpio.PinIn{lock.Contact, lock.Exit} {
			if err := p.In(gpio.PullDown, gpio.BothEdges); err != nil {
				t.Fatal(err)
			}
		}
		if lock.Contact.WaitForEdge(time.Millisecond) {
			t.Error("an edge on an idle contact")
		}
		if _, err := r.OpenLeaf("front_1", true); err != nil {
			t.Fatal(err)
		}
		if !lock.Contact.WaitForEdge(time.Second) || lock.Contact.Read() != gpio.High {
			t.Error("the contact does not show the open leaf")
		}
		if _, err := r.PressExit("front_1"); err != nil {
			t.Fatal(err)
		}
		if !lock.Exit.WaitForEdge(-1) || lock.Exit.Read() != gpio.High {
			t.Error("the exit button is not pressed")
		}
		if !lock.Exit.WaitForEdge(-1) || lock.Exit.Read() != gpio.Low {
			t.Error("the exit button does not come back")
		}
		go func() {
			time.Sleep(time.Second)
			_ = lock.Contact.Halt()
		}()
		if lock.Contact.WaitForEdge(-1) {
			t.Error("Halt is not an edge")
		}
		if _, err := r.OpenLeaf("room_9", true); !errors.Is(err, hardware.ErrNoDevice) {
			t.Errorf("a door that is not there: %v", err)
		}
	})
}

func TestKeypad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		for _, tt := range []struct {
			device, pin string
			opened      bool
		}{{"front_1", "000000", false}, {"front_1", "", false}, {"front_2", "", false}, {"front_1", "123456", true}} {
			opened, err := r.EnterPIN(tt.device, tt.pin)
			if err != nil || opened != tt.opened {
				t.Errorf("%s %q: opened %v, %v", tt.device, tt.pin, opened, err)
			}
		}
		if d := r.State().Doors[0]; !d.Released || !d.Locked || d.Actuations != 0 {
			t.Errorf("the keypad released the lock: %+v; want the relay untouched", d)
		}
		if board.Locks[0].Sense.Read() != gpio.High {
			t.Error("the sense line does not show the released lock")
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if r.State().Doors[0].Released {
			t.Error("the lock stays released")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]hardware.Plan{
		"door":   {Doors: []hardware.DoorPlan{{Device: "window_1"}}},
		"sensor": {Sensors: []hardware.SensorPlan{{Location: "a", Kind: "dht11"}}},
		"unit":   {AirConditioners: []hardware.UnitPlan{{Name: "a", Cools: []string{"nowhere"}}}},
	} {
		if _, err := hardware.New(p, func(hardware.Change) {}); err == nil {
			t.Errorf("%s: a wrong plan was built", name)
		}
	}
}
