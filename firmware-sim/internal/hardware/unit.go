package hardware

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
)

// The carrier a unit's receiver hears: 38 kHz and 2 kHz either way.
const minCarrier, maxCarrier = 36_000, 40_000 // Hz

// ignoredFrame is how many frames a unit with fault.IRIgnore hears for each one that it ignores.
const ignoredFrame = 5

var errIRDead = errors.New("the transmitter does not answer")

// unit is an air conditioner. Installation.mu guards its fields.
type unit struct {
	installation *Installation
	plan         UnitPlan
	setting      ir.Setting     // the last setting, in the terms of code sets
	row          AirConditioner // what the display shows of it
	losses       *rand.Rand     // which of the agent's signals the receiver misses
}

// emitter is the infrared LED in front of a unit.
type emitter struct {
	unit  *unit
	power *supply
}

var _ ir.Transmitter = (*emitter)(nil)

// Send implements ir.Transmitter.
func (e *emitter) Send(ctx context.Context, carrierHz int, durations []uint32) error {
	if err := e.check(); err != nil {
		return err
	}
	var length time.Duration
	for _, d := range durations {
		length += time.Duration(d) * time.Microsecond
	}
	t := time.NewTimer(length)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.power.off:
	}
	if err := e.check(); err != nil {
		return err
	}
	if !e.missed() {
		e.unit.hear(carrierHz, durations)
	}
	return nil
}

// missed reports whether the signal does not reach the unit's receiver, as in bright sunlight.
func (e *emitter) missed() bool {
	r := e.unit.installation
	r.mu.Lock()
	defer r.mu.Unlock()
	f, on := r.faults.At(fault.IRLoss, e.unit.plan.Name)
	return on && e.unit.losses.IntN(100) < f.Percent
}

func (e *emitter) check() error {
	r := e.unit.installation
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on(e.power) {
		return fmt.Errorf("infrared at %q: %w", e.unit.plan.Name, errUnpowered)
	}
	if _, dead := r.faults.At(fault.IRDead, e.unit.plan.Name); dead {
		return fmt.Errorf("infrared at %q: %w", e.unit.plan.Name, errIRDead)
	}
	return nil
}

// Hear gives a unit's receiver a signal that is not the agent's, for example from a guest's remote control.
func (r *Installation) Hear(name string, carrierHz int, durations []uint32) error {
	u, err := find(r.units, func(u *unit) bool { return u.plan.Name == name })
	if err == nil {
		u.hear(carrierHz, durations)
	}
	return err
}

// hear processes a signal as the unit's receiver does.
func (u *unit) hear(carrierHz int, durations []uint32) {
	signal := Signal{At: time.Now(), CarrierHz: carrierHz, Durations: slices.Clone(durations)}
	u.installation.mu.Lock()
	defer u.installation.mu.Unlock()
	before := u.setting
	heard := carrierHz >= minCarrier && carrierHz <= maxCarrier && (u.decode(&signal) || u.match(&signal))
	if heard {
		u.row.Frames++
		if _, ignores := u.installation.faults.At(fault.IRIgnore, u.plan.Name); ignores && u.row.Frames%ignoredFrame == 0 {
			u.setting = before
		}
		u.row.show(u.setting)
	} else {
		u.row.Noise++
	}
	u.row.Signal = &signal
	row := u.row
	u.installation.changed(Change{AirConditioner: &row})
}

// decode reads the signal as frames of a remote and applies them. All frames must be known: a partial signal is noise.
func (u *unit) decode(signal *Signal) bool {
	next := u.setting
	protocol := ""
	for _, frame := range split(signal.Durations) {
		s, err := ir.DecodeLG(frame)
		protocol = "LG"
		if err != nil {
			s, err = ir.DecodeSamsung(frame)
			protocol = "Samsung"
		}
		if err != nil {
			return false
		}
		// These frames carry the set point of the remote's register.
		if s.Mode == "fan" || s.Mode == "dry" && protocol == "LG" {
			s.Celsius = next.Celsius
		}
		obey(&next, s)
	}
	if protocol == "" {
		return false
	}
	signal.Protocol = protocol
	u.setting = next
	return true
}

// obey applies a frame. Switching off keeps the settings; a frame for the louvre has no mode and changes nothing else.
func obey(now *ir.Setting, frame ir.Setting) {
	if !frame.Power {
		now.Power = false
		return
	}
	if frame.Swing != "" {
		now.Swing = frame.Swing
	}
	if frame.Mode != "" {
		now.Power, now.Mode, now.Celsius, now.Fan = true, frame.Mode, frame.Celsius, frame.Fan
	}
}

// match finds the signal in the unit's own code set and takes the setting from its path in the tree.
func (u *unit) match(signal *Signal) bool {
	for path, code := range u.plan.Codes.Leaves() {
		for _, s := range code {
			if similar(signal.Durations, s.Durations) {
				signal.Protocol = "raw"
				u.setting = settingAt(path)
				return true
			}
		}
	}
	return false
}
