package hardware_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
)

// TestSensorsMeasureTheAir runs in real time: a driver polls its chip without a pause, and the clock of a synctest
// bubble would never advance.
func TestSensorsMeasureTheAir(t *testing.T) {
	t.Parallel()
	r, board := powered(t)
	if _, err := r.SetAir("lobby", ptr(31.5), ptr(71.0), true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for i, s := range board.Sensors {
		reading, err := s.Reader.Read(ctx)
		if err != nil {
			t.Fatalf("%s: %v", s.Location, err)
		}
		want := r.State().Sensors[i]
		if math.Abs(reading.Celsius-want.Thermometer) > 0.02 || math.Abs(reading.RelativeHumidity-want.Hygrometer) > 0.1 {
			t.Errorf("%s: %+v, want %+v", s.Location, reading, want)
		}
	}
	r.SetFaults(fault.List{{Kind: fault.SensorDead, Device: "1"}})
	if _, err := board.Sensors[1].Reader.Read(ctx); err == nil {
		t.Error("a dead sensor answered")
	}
	if _, err := board.Sensors[2].Reader.Read(ctx); err != nil {
		t.Errorf("its neighbour: %v", err)
	}
	for name, v := range map[string]float64{"hot": 61, "nothing": math.NaN()} {
		if _, err := r.SetAir("lobby", &v, nil, true); !errors.Is(err, hardware.ErrValue) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnitCoolsTheAir cools a hot lobby and then switches the unit off.
func TestUnitCoolsTheAir(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = r.Run(ctx) }()
		lobby := func() hardware.Sensor { return r.State().Sensors[0] }
		unit := board.AirConditioners[0]
		for path, code := range unit.Codes.Leaves() {
			if len(path) == 4 && path[0] == "냉방" && path[1] == "20" {
				send(t, unit.Transmitter, code)
				break
			}
		}
		time.Sleep(20 * time.Minute)
		if s := lobby(); math.Abs(s.Thermometer-20) > 0.5 || s.Hygrometer > 45 {
			t.Errorf("after 20 minutes at 20 °C: %+v", s)
		}
		send(t, unit.Transmitter, unit.Codes.Roots[0].Code)
		time.Sleep(time.Hour)
		if s := lobby(); math.Abs(s.Thermometer-27) > 1 {
			t.Errorf("an hour later: %+v", s)
		}
		if _, err := r.SetAir("lobby", ptr(25.0), nil, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s := lobby(); s.Thermometer != 25 || !s.Held {
			t.Errorf("held: %+v", s)
		}
		stop()
	})
}

func ptr(v float64) *float64 { return &v }

// An open window keeps a unit from its set point and lets the room warm up sooner once the unit is off.
func TestWindowOpens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, board := powered(t)
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = r.Run(ctx) }()
		defer stop()
		lobby := func() float64 { return r.State().Sensors[0].Thermometer }
		unit := board.AirConditioners[0]
		for path, code := range unit.Codes.Leaves() {
			if len(path) == 4 && path[0] == "냉방" && path[1] == "20" {
				send(t, unit.Transmitter, code)
				break
			}
		}
		time.Sleep(20 * time.Minute)
		closed := lobby()
		r.SetFaults(fault.List{{Kind: fault.WindowOpen, Device: r.State().Sensors[0].Location}})
		time.Sleep(20 * time.Minute)
		if open := lobby(); open < closed+2 || open > 25 {
			t.Errorf("%.1f °C with a closed window, %.1f °C with an open one", closed, open)
		}
		send(t, unit.Transmitter, unit.Codes.Roots[0].Code)
		time.Sleep(10 * time.Minute)
		if s := lobby(); math.Abs(s-27) > 1 {
			t.Errorf("ten minutes after switching off: %.1f °C, want about 27", s)
		}
	})
}
