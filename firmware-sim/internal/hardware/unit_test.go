package hardware_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
)

// TestEveryLeafEndsInItsState sends each code of each remote control in random order with slightly wrong timing, and
// checks that the unit reaches exactly the code's state, whatever its state was before.
func TestEveryLeafEndsInItsState(t *testing.T) {
	t.Parallel()
	for _, remote := range ir.Remotes() {
		t.Run(remote, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { pressAll(t, remote) })
		})
	}
}

func pressAll(t *testing.T, remote string) {
	codes, err := fleetconfig.Remote(remote)
	if err != nil {
		t.Fatal(err)
	}
	r, err := hardware.New(hardware.Plan{AirConditioners: []hardware.UnitPlan{{Name: "lobby", Codes: codes}}}, func(hardware.Change) {})
	if err != nil {
		t.Fatal(err)
	}
	board, err := r.PowerOn()
	if err != nil {
		t.Fatal(err)
	}
	type leaf struct {
		path []string
		code ir.Code
	}
	var leaves []leaf
	for path, code := range codes.Leaves() {
		leaves = append(leaves, leaf{slices.Clone(path), code})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
	pressed, setPoint := 0, "0"
	for _, l := range leaves {
		path := l.path
		if len(path) == 4 {
			setPoint = path[1]
		}
		worn := slices.Clone(l.code[0].Durations)
		for i, d := range worn {
			worn[i] = uint32(float64(d) * (0.8 + 0.4*rng.Float64()))
		}
		send(t, board.AirConditioners[0].Transmitter, ir.Code{{CarrierHz: 38_500, Durations: worn}})
		pressed++
		u := r.State().AirConditioners[0]
		if u.Frames != pressed || u.Noise != 0 {
			t.Fatalf("%v: %d signals heard, %d noise, want %d and 0", path, u.Frames, u.Noise, pressed)
		}
		if got, want := shown(u), expected(path, setPoint); got != want {
			t.Errorf("%v: the unit shows %s, want %s", path, got, want)
		}
	}
}

func send(t *testing.T, to ir.Transmitter, code ir.Code) {
	t.Helper()
	for _, s := range code {
		if err := to.Send(t.Context(), s.CarrierHz, s.Durations); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInfraredFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		unit := board.AirConditioners[0]
		off := unit.Codes.Roots[0].Code[0]
		if err := unit.Transmitter.Send(t.Context(), 56_000, off.Durations); err != nil {
			t.Fatal(err)
		}
		if err := unit.Transmitter.Send(t.Context(), 38_000, off.Durations[:20]); err != nil {
			t.Fatal(err)
		}
		if u := r.State().AirConditioners[0]; u.Frames != 0 || u.Noise != 2 {
			t.Errorf("a wrong carrier and half a frame: %+v", u)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := unit.Transmitter.Send(ctx, 38_000, off.Durations); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send of a signal cut short: %v", err)
		}
		r.SetFaults(fault.List{{Kind: fault.IRDead}})
		if err := unit.Transmitter.Send(t.Context(), 38_000, off.Durations); err == nil {
			t.Error("Send succeeded with ir-dead")
		}
		if u := r.State().AirConditioners[0]; u.Frames != 0 || u.Noise != 2 {
			t.Errorf("ir-dead: heard something: %+v", u)
		}
	})
}

// TestForeignProtocol checks that the code set decodes signals that are neither LG's nor Samsung's.
func TestForeignProtocol(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		frame := []uint32{4400, 4400, 550, 1600, 550, 550, 550, 1600, 550}
		leaf := ir.Node{Name: "on", Code: ir.Code{{CarrierHz: 38_000, Durations: frame}}}
		codes := &ir.CodeSet{Roots: []ir.Node{{Name: "cool", Children: []ir.Node{
			{Name: "21", Children: []ir.Node{{Name: "low", Children: []ir.Node{leaf}}}},
		}}}}
		r, err := hardware.New(hardware.Plan{AirConditioners: []hardware.UnitPlan{{Name: "winia", Codes: codes}}}, func(hardware.Change) {})
		if err != nil {
			t.Fatal(err)
		}
		board, err := r.PowerOn()
		if err != nil {
			t.Fatal(err)
		}
		late := make([]uint32, len(frame))
		for i, d := range frame {
			late[i] = d * 11 / 10
		}
		if err := board.AirConditioners[0].Transmitter.Send(t.Context(), 38_000, late); err != nil {
			t.Fatal(err)
		}
		u := r.State().AirConditioners[0]
		if got := shown(u); got != "on 냉방 21 약 회전" || u.Signal.Protocol != "raw" {
			t.Errorf("the unit shows %s after %+v", got, u.Signal)
		}
	})
}

// shown formats the display of a unit.
func shown(u hardware.AirConditioner) string {
	if !u.Power {
		return "off"
	}
	return fmt.Sprintf("on %s %d %s %s", u.Mode, u.Temperature, u.Fan, u.Direction)
}

// expected is the display after the code at a path of the demo's code set. Drying and fan mode do not change the set
// point.
func expected(path []string, setPoint string) string {
	switch len(path) {
	case 1:
		return "off"
	case 3:
		return fmt.Sprintf("on %s %s %s %s", path[0], setPoint, path[1], path[2])
	}
	return fmt.Sprintf("on %s %s %s %s", path[0], path[1], path[2], path[3])
}

// With ir-loss the unit hears the remaining signals only, and with ir-ignore it hears all and ignores every fifth. The
// transmitter notices neither.
func TestUnitMissesSignals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		unit := board.AirConditioners[0]
		off, on := unit.Codes.Roots[0].Code, ir.Code(nil)
		for path, code := range unit.Codes.Leaves() {
			if len(path) == 4 && path[0] == "냉방" {
				on = code
				break
			}
		}
		heard := func() int { return r.State().AirConditioners[0].Frames }
		r.SetFaults(fault.List{{Kind: fault.IRLoss, Percent: 20}})
		for range 500 {
			send(t, unit.Transmitter, off)
		}
		if n := heard(); n < 370 || n > 430 {
			t.Errorf("heard %d of 500 signals, want about 400", n)
		}
		r.SetFaults(fault.List{{Kind: fault.IRIgnore}})
		ignored := 0
		for heard()%5 != 0 { // start at a multiple of five
			send(t, unit.Transmitter, off)
		}
		for i := range 50 {
			code, power := on, true
			if i%2 == 1 {
				code, power = off, false
			}
			send(t, unit.Transmitter, code)
			if r.State().AirConditioners[0].Power != power {
				ignored++
			}
		}
		if ignored != 10 {
			t.Errorf("ignored %d of 50 signals, want 10", ignored)
		}
	})
}
