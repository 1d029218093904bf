package hardware

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
)

// Plan lists the devices of a branch.
type Plan struct {
	Doors           []DoorPlan
	AirConditioners []UnitPlan
	Sensors         []SensorPlan
}

// DoorPlan is a door with a lock, a contact, an exit button and a keypad.
type DoorPlan struct {
	Device string // front_1, room_3
	PIN    string // opens the lock at a standalone keypad; empty: no PIN does
	Agent  bool   // the agent reads the keypad; otherwise it is standalone
	Bare   bool   // has neither a contact nor an exit button, and no client watches them
}

// UnitPlan is an air conditioner.
type UnitPlan struct {
	Name  string
	Cools []string // locations whose air it treats
	Codes *ir.CodeSet
}

// SensorPlan is a thermo-hygrometer and the air at its location while no air conditioner treats it.
type SensorPlan struct {
	Location          string
	Kind              string // see chip.Kinds
	Celsius, Humidity float64
}

// Errors of actions at the panel; match with errors.Is.
var (
	ErrNoDevice = errors.New("no such device")
	ErrValue    = errors.New("value out of range")
)

// Installation is the hardware of one branch. It is safe for concurrent use.
type Installation struct {
	// changed is called with mu held and must neither block nor call back.
	changed func(Change)

	mu         sync.Mutex
	power      *supply // nil: off
	faults     fault.List
	doors      []*door
	units      []*unit
	sensors    []*probe
	actuations []*Actuation
	timers     map[*time.Timer]struct{}
}

// supply is one PowerOn; pins of an earlier one are disconnected.
type supply struct{ off chan struct{} }

// New returns the hardware of a plan, without power. It reports every change to changed, in order; changed must neither
// block nor call back into the installation.
func New(plan Plan, changed func(Change)) (*Installation, error) {
	r := &Installation{changed: changed, timers: make(map[*time.Timer]struct{})}
	for i, p := range plan.Doors {
		d, err := newDoor(r, i, p)
		if err != nil {
			return nil, err
		}
		r.doors = append(r.doors, d)
	}
	for i, p := range plan.Sensors {
		s, err := newProbe(r, i, p)
		if err != nil {
			return nil, err
		}
		r.sensors = append(r.sensors, s)
	}
	for _, p := range plan.AirConditioners {
		for _, location := range p.Cools {
			if !slices.ContainsFunc(r.sensors, func(s *probe) bool { return s.Location == location }) {
				return nil, fmt.Errorf("hardware: air conditioner %q cools %q, where there is no sensor", p.Name, location)
			}
		}
		r.units = append(r.units, &unit{installation: r, plan: p, row: AirConditioner{Name: p.Name}, losses: rand.New(rand.NewPCG(uint64(len(r.units)), 1))})
	}
	return r, nil
}

// PowerOn connects an agent's board. PowerOff must have disconnected an earlier one.
func (r *Installation) PowerOn() (agent.Board, error) {
	power := &supply{off: make(chan struct{})}
	var board agent.Board
	r.mu.Lock()
	r.power = power
	for _, d := range r.doors {
		board.Locks = append(board.Locks, d.fit(power))
		if d.plan.Agent {
			d.keys = &keys{power: power, typed: make(chan typed)}
			board.Keypads = append(board.Keypads, agent.Keypad{Device: d.plan.Device, Reader: d.keys})
		}
	}
	r.mu.Unlock()

	for _, u := range r.units {
		board.AirConditioners = append(board.AirConditioners, agent.AirConditioner{
			Name: u.plan.Name, Codes: u.plan.Codes, Transmitter: &emitter{unit: u, power: power},
		})
	}
	for _, p := range r.sensors {
		reader, err := p.open() // may access the chip, which locks mu
		if err != nil {
			return agent.Board{}, fmt.Errorf("hardware: sensor %q: %w", p.Location, err)
		}
		board.Sensors = append(board.Sensors, agent.Sensor{Location: p.Location, Reader: reader})
	}
	return board, nil
}

// PowerOff switches the power off: every relay is released at once.
func (r *Installation) PowerOff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.power == nil {
		return
	}
	close(r.power.off)
	r.power = nil
	for _, d := range r.doors {
		d.energize(false)
	}
}

// on reports whether the board of a supply is still connected. mu is held.
func (r *Installation) on(s *supply) bool { return r.power == s }

// SetFaults replaces the faults and ignores kinds that do not concern hardware. A stuck lock follows its relay again
// when its fault ends.
func (r *Installation) SetFaults(faults fault.List) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = faults
	for _, d := range r.doors {
		if r.lost(d.row.Device) {
			d.energize(false)
		}
		d.follow()
		d.look()
	}
}

// lost reports whether the GPIO chip of a door has disappeared. mu is held.
func (r *Installation) lost(device string) bool {
	_, lost := r.faults.At(fault.LostChip, device)
	return lost
}

// HasDevice reports whether a fault can be restricted to a device: a door, front for all front doors, an air
// conditioner's name or a sensor's location.
func (r *Installation) HasDevice(name string) bool {
	return name == "front" ||
		slices.ContainsFunc(r.doors, func(d *door) bool { return d.row.Device == name }) ||
		slices.ContainsFunc(r.units, func(u *unit) bool { return u.plan.Name == name }) ||
		slices.ContainsFunc(r.sensors, func(s *probe) bool { return s.Location == name })
}

// State returns the rows of the panel; the caller sets Branch, Online and Powered.
func (r *Installation) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{
		Doors:           make([]Door, 0, len(r.doors)),
		AirConditioners: make([]AirConditioner, 0, len(r.units)),
		Sensors:         make([]Sensor, 0, len(r.sensors)),
		Faults:          append(fault.List{}, r.faults...),
	}
	for _, d := range r.doors {
		s.Doors = append(s.Doors, d.row)
	}
	for _, u := range r.units {
		s.AirConditioners = append(s.AirConditioners, u.row)
	}
	for _, p := range r.sensors {
		s.Sensors = append(s.Sensors, p.row())
	}
	return s
}

// airInterval is the time between two steps of the simulated air.
const airInterval = time.Second

// Run warms, cools and drifts the air of the branch until ctx ends.
func (r *Installation) Run(ctx context.Context) error {
	defer r.stopTimers()
	if len(r.sensors) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	tick := time.NewTicker(airInterval)
	defer tick.Stop()
	start := time.Now()
	for {
		select {
		case now := <-tick.C:
			r.mu.Lock()
			for _, s := range r.sensors {
				s.drift(now.Sub(start), airInterval)
			}
			r.mu.Unlock()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// after calls f after d, with mu held. mu is held.
func (r *Installation) after(d time.Duration, f func()) *time.Timer {
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, waiting := r.timers[t]; !waiting {
			return
		}
		delete(r.timers, t)
		f()
	})
	r.timers[t] = struct{}{}
	return t
}

// stop cancels an after. mu is held; t may be nil or done.
func (r *Installation) stop(t *time.Timer) {
	if t != nil {
		t.Stop()
		delete(r.timers, t)
	}
}

func (r *Installation) stopTimers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := range r.timers {
		r.stop(t)
	}
}

// find returns the first matching element of a list.
func find[T any](list []T, fits func(T) bool) (T, error) {
	if i := slices.IndexFunc(list, fits); i >= 0 {
		return list[i], nil
	}
	return *new(T), ErrNoDevice
}
