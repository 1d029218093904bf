package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/climate"
	"github.com/yeolda/yeolda/agent/internal/door"
	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/agent/keypad"
	"github.com/yeolda/yeolda/agent/sensor"
	"github.com/yeolda/yeolda/protocol"
)

// Board is the hardware of one branch, in periph's interface types. It separates the agent from the hardware: the Raspberry
// Pi and the simulator each provide one.
type Board struct {
	Locks           []Lock
	AirConditioners []AirConditioner
	Sensors         []Sensor
	Keypads         []Keypad
}

// Keypad is a keypad or scanner at a door. A door may have several.
type Keypad struct {
	Device string // of the door
	Reader keypad.Reader
}

// Lock is the lock of one door. Logical High on Relay means energised and unlocked, regardless of the wiring.
//
// Relay.Read must read the driven line back without changing it. periph's gpioioctl pin is unsuitable: its Read turns an
// output into an input, which releases the relay, and its first Out drives the line Low before it drives it High.
//
// An input may have a method Fault() error, which returns why its last read failed: a level that could not be read is not a change.
type Lock struct {
	Device  string            // "front_1", "front_2", "room_3"; see protocol.ParseDevice
	Kind    protocol.DoorKind // of Device
	Pulse   time.Duration     // how long the relay is energised; 0: as in the grant
	Relay   gpio.PinIO
	Sense   gpio.PinIn // the lock's sense line: High = the bolt is released; nil if not fitted
	Contact gpio.PinIn // the door leaf: High = open; nil if not fitted
	Exit    gpio.PinIn // the exit button, only observed: High = pressed; nil if not fitted
}

// AirConditioner is a unit, the codes it accepts and the transmitter that reaches it. Units may share a transmitter.
type AirConditioner struct {
	Name        string // unique in the branch; the top level of the option tree if the branch has several
	Codes       *ir.CodeSet
	Transmitter ir.Transmitter
}

// Sensor is the thermo-hygrometer of one location.
type Sensor struct {
	Location string
	Reader   sensor.Reader
}

// inventory describes the board to the cloud.
func (b Board) inventory() protocol.Inventory {
	v := protocol.Inventory{
		Doors:           make([]protocol.Door, 0, len(b.Locks)),
		AirConditioners: make([]protocol.AirConditioner, 0, len(b.AirConditioners)),
		Sensors:         make([]string, 0, len(b.Sensors)),
	}
	for _, l := range b.Locks {
		v.Doors = append(v.Doors, protocol.Door{
			Device: l.Device, Kind: l.Kind, Sense: l.Sense != nil, Contact: l.Contact != nil, Exit: l.Exit != nil,
		})
	}
	for _, a := range b.AirConditioners {
		v.AirConditioners = append(v.AirConditioners, protocol.AirConditioner{Name: a.Name, Options: a.Codes.Options()})
	}
	for _, s := range b.Sensors {
		v.Sensors = append(v.Sensors, s.Location)
	}
	v.Keypads = b.keypads()
	return v
}

// keypads returns the doors that have a keypad.
func (b Board) keypads() []string {
	var devices []string
	for _, k := range b.Keypads {
		if !slices.Contains(devices, k.Device) {
			devices = append(devices, k.Device)
		}
	}
	return devices
}

// validate rejects an incomplete board before any hardware is touched. Names are checked when the inventory is encoded.
func (b Board) validate() error {
	var err error
	for _, l := range b.Locks {
		if l.Relay == nil {
			err = errors.Join(err, fmt.Errorf("lock %s has no relay", l.Device))
		}
	}
	for _, a := range b.AirConditioners {
		if a.Codes == nil || a.Transmitter == nil {
			err = errors.Join(err, fmt.Errorf("air conditioner %q lacks codes or a transmitter", a.Name))
		}
	}
	for _, k := range b.Keypads {
		if k.Reader == nil || !slices.ContainsFunc(b.Locks, func(l Lock) bool { return l.Device == k.Device }) {
			err = errors.Join(err, fmt.Errorf("keypad of %s has no reader, or no lock", k.Device))
		}
	}
	for _, s := range b.Sensors {
		if s.Reader == nil {
			err = errors.Join(err, fmt.Errorf("sensor %q has no reader", s.Location))
		}
	}
	return err
}

// Check reports whether the board is complete and its inventory fits into a status.
func (b Board) Check() error {
	v := b.inventory()
	_, err := protocol.EncodeStatus(protocol.Status{State: protocol.Online, BootID: "check", Inventory: &v})
	return errors.Join(b.validate(), err)
}

func (b Board) locks() []door.Lock {
	locks := make([]door.Lock, len(b.Locks))
	for i, l := range b.Locks {
		locks[i] = door.Lock(l)
	}
	return locks
}

func (b Board) units() []climate.Unit {
	units := make([]climate.Unit, len(b.AirConditioners))
	for i, a := range b.AirConditioners {
		units[i] = climate.Unit(a)
	}
	return units
}

func (b Board) sensors() []climate.Sensor {
	sensors := make([]climate.Sensor, len(b.Sensors))
	for i, s := range b.Sensors {
		sensors[i] = climate.Sensor(s)
	}
	return sensors
}
