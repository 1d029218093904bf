package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/infrared"
)

// The carrier a unit's receiver hears: 38 kHz and 2 kHz either way.
const minCarrier, maxCarrier = 36_000, 40_000 // Hz

var errIRDead = errors.New("the transmitter does not answer")

// unit is an air conditioner. Its fields belong to rig.mu.
type unit struct {
	rig   *Rig
	plan  UnitPlan
	state infrared.State // what was decoded last
	row   AirConditioner // what the display shows of it
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
	e.unit.hear(carrierHz, durations)
	return nil
}

func (e *emitter) check() error {
	r := e.unit.rig
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

// hear does what the unit's receiver does with a signal.
func (u *unit) hear(carrierHz int, durations []uint32) {
	signal := Signal{At: time.Now(), CarrierHz: carrierHz, Durations: append([]uint32(nil), durations...)}
	u.rig.mu.Lock()
	defer u.rig.mu.Unlock()
	state, heard := u.state, false
	if carrierHz >= minCarrier && carrierHz <= maxCarrier {
		heard = u.decode(&signal, &state) || u.match(&signal, &state)
	}
	if heard {
		u.row.Frames++
		u.state = state
		u.row.show(state)
	} else {
		u.row.Noise++
	}
	u.row.Signal = &signal
	row := u.row
	u.rig.changed(Change{AirConditioner: &row})
}

// decode reads the signal as a remote's frames. All of them must be known:
// half a signal is noise.
func (u *unit) decode(signal *Signal, state *infrared.State) bool {
	var codes []string
	next := *state
	for _, frame := range infrared.Split(signal.Durations) {
		m, ok := infrared.Decode(frame)
		if !ok {
			return false
		}
		m.Apply(&next)
		signal.Protocol = m.Protocol
		codes = append(codes, m.Code)
	}
	if len(codes) == 0 {
		return false
	}
	signal.Code = strings.Join(codes, " ")
	*state = next
	return true
}

// match finds the signal in the unit's own code set and takes the state from the
// leaf's place in the tree.
func (u *unit) match(signal *Signal, state *infrared.State) bool {
	for path, code := range u.plan.Codes.Leaves() {
		for _, s := range code {
			if infrared.Near(signal.Durations, s.Durations) {
				signal.Protocol, signal.Code = "raw", strings.Join(path, " / ")
				*state = stateOf(path)
				return true
			}
		}
	}
	return false
}
