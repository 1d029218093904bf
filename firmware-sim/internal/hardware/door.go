package hardware

import (
	"crypto/subtle"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/protocol"
)

const (
	// keypadOpens is how long a lock stays released after the right PIN.
	keypadOpens = 5 * time.Second
	// exitPress is how long the exit button stays pressed.
	exitPress = 500 * time.Millisecond
)

// firstPin is the GPIO line of the first relay. The lines from here on are Low at power-on, before any software runs.
const firstPin = 9

// door is a door with its lock, contact, exit button and keypad. Installation.mu guards all fields.
type door struct {
	installation *Installation
	plan         DoorPlan
	row          Door

	bolt    bool        // the lock follows the relay: it is released
	keyed   bool        // released by the keypad
	turning *time.Timer // a slow bolt, or nil
	keypad  *time.Timer
	finger  *time.Timer

	driving *Actuation // nil while the relay is idle
	latest  *Actuation // nil before the first
	keys    *keys      // of the keypad that the agent reads; nil: never powered, or standalone
	inputs  []*inputPin
}

func newDoor(r *Installation, i int, p DoorPlan) (*door, error) {
	kind, _, err := protocol.ParseDevice(p.Device)
	if err != nil {
		return nil, fmt.Errorf("hardware: %w", err)
	}
	return &door{installation: r, plan: p, row: Door{Device: p.Device, Kind: kind, Locked: true, Pin: firstPin + i}}, nil
}

// fit returns the lines of the door for one power supply.
func (d *door) fit(power *supply) agent.Lock {
	l := func(what string, number int) line {
		return line{installation: d.installation, power: power, device: d.row.Device, name: d.row.Device + " " + what, number: number}
	}
	// The inputs are on an expander, from line 100 on.
	input := func(what string, number int, level func() bool) *inputPin {
		p := newInputPin(l(what, 100+3*d.row.Pin+number), level)
		d.inputs = append(d.inputs, p)
		return p
	}
	d.inputs = nil
	lock := agent.Lock{
		Device: d.row.Device, Kind: d.row.Kind,
		Relay: &relayPin{line: l("relay", d.row.Pin), door: d},
		Sense: input("sense", 0, d.senses),
	}
	if !d.plan.Bare {
		lock.Contact = input("contact", 1, func() bool { return d.row.Open })
		lock.Exit = input("exit", 2, func() bool { return d.row.Exit })
	}
	return lock
}

// energize drives the relay.
func (d *door) energize(on bool) {
	d.record(on)
	if d.row.Locked != on {
		return
	}
	d.row.Locked = !on
	d.follow()
	d.installation.changed(Change{Door: d.copy()})
}

// follow moves the bolt after the relay, as far as the faults allow.
func (d *door) follow() {
	d.installation.stop(d.turning)
	d.turning = nil
	want := !d.row.Locked
	if _, stuck := d.installation.faults.At(fault.Stuck, d.row.Device); stuck {
		want = false
	}
	if d.bolt == want {
		return
	}
	turn := func() {
		d.bolt, d.turning = want, nil
		d.look()
	}
	if slow, ok := d.installation.faults.At(fault.Slow, d.row.Device); ok {
		d.turning = d.installation.after(slow.Delay(), turn)
		return
	}
	turn()
}

// senses returns the level of the sense line.
func (d *door) senses() bool {
	_, open := d.installation.faults.At(fault.SenseOpen, d.row.Device)
	return d.bolt || d.keyed || open
}

// look reports the current levels of the inputs.
func (d *door) look() {
	for _, p := range d.inputs {
		p.look()
	}
	if d.row.Released != d.senses() {
		d.row.Released = d.senses()
		d.installation.changed(Change{Door: d.copy()})
	}
}

func (d *door) copy() *Door {
	row := d.row
	return &row
}

func (r *Installation) door(device string) (*door, error) {
	return find(r.doors, func(d *door) bool { return d.row.Device == device })
}

// OpenLeaf opens or closes the leaf of a door. The leaf opens even when the lock is locked, so that a forced door can
// be simulated.
func (r *Installation) OpenLeaf(device string, open bool) (Door, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.door(device)
	if err != nil {
		return Door{}, err
	}
	if d.row.Open != open {
		d.row.Open = open
		d.look()
		r.changed(Change{Door: d.copy()})
	}
	return d.row, nil
}

// PressExit presses the exit button of a door for half a second. The button releases the lock in hardware, without any
// relay of the agent.
func (r *Installation) PressExit(device string) (Door, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.door(device)
	if err != nil {
		return Door{}, err
	}
	r.stop(d.finger)
	d.setExit(true)
	d.finger = r.after(exitPress, func() { d.setExit(false) })
	return d.row, nil
}

func (d *door) setExit(pressed bool) {
	d.row.Exit = pressed
	d.look()
	d.installation.changed(Change{Door: d.copy()})
}

// EnterPIN types a PIN at the keypad of a door. If the PIN is right, opened is true and the lock is released for five
// seconds, without relay or agent.
func (r *Installation) EnterPIN(device, pin string) (opened bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.door(device)
	if err != nil {
		return false, err
	}
	right := d.plan.PIN != "" && subtle.ConstantTimeCompare([]byte(d.plan.PIN), []byte(pin)) == 1
	d.enter(right)
	return right, nil
}

// Keypad is EnterPIN for a caller that knows whether the PIN is right, but not the PIN.
func (r *Installation) Keypad(device string, right bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.door(device)
	if err == nil {
		d.enter(right)
	}
	return err
}

func (d *door) enter(right bool) {
	r := d.installation
	r.changed(Change{Keypad: &Keypad{Device: d.row.Device, Right: right}})
	if right {
		r.stop(d.keypad)
		d.setKeyed(true)
		d.keypad = r.after(keypadOpens, func() { d.setKeyed(false) })
	}
}

func (d *door) setKeyed(keyed bool) {
	d.keyed = keyed
	d.look()
}
