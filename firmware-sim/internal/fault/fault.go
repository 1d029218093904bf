// Package fault defines the faults of a simulated branch (docs/specification.md, Simulator). The list of a branch's
// faults is plain data; hardware, network and power supply each look up the kinds that concern them.
package fault

import (
	"fmt"
	"strings"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults at a lock, a sensor or a transmitter. A device can restrict them.
const (
	Stuck      Kind = "stuck"       // the relay is driven, the lock's sense line never confirms it
	RelayDead  Kind = "relay-dead"  // driving the pin fails
	Slow       Kind = "slow"        // the lock, and so its sense line, follows the relay DelayMs late
	LostChip   Kind = "lost-chip"   // the GPIO chip has disappeared: every access fails with ENODEV, and the lock locks
	SenseOpen  Kind = "sense-open"  // the sense line shows a released lock, without relay or keypad
	SensorDead Kind = "sensor-dead" // the chip does not answer on its bus
	IRDead     Kind = "ir-dead"     // the transmitter reports an error and emits nothing
	IRLoss     Kind = "ir-loss"     // the unit does not hear Percent of the agent's signals
	IRIgnore   Kind = "ir-ignore"   // the unit ignores every fifth signal
	WindowOpen Kind = "window-open" // the air at a sensor mixes with the air outside
)

// The kinds of faults of a whole branch.
const (
	NetworkCut Kind = "network-cut" // packets to and from the broker are dropped, no connection is closed
	NetworkLag Kind = "network-lag" // packets take DelayMs more, each way
	Loss       Kind = "loss"        // Percent of the messages are lost, both ways
	Duplicate  Kind = "duplicate"   // every message to the agent is delivered twice
	Reorder    Kind = "reorder"     // messages take up to DelayMs more, each its own time, both ways, so that they overtake each other
	Clock      Kind = "clock"       // the agent's wall clock is OffsetMs ahead, or behind
	PowerOff   Kind = "power-off"   // the agent is killed at once and stays off
	ClockStep  Kind = "clock-step"  // the agent's system clock is set Seconds forward, or back; the hardware clock is not
	Reboot     Kind = "reboot"      // the machine restarts once, with or without a HardwareClock; it is not a lasting fault
	Clone      Kind = "clone"       // another machine without hardware connects with the agent's credential (a copied SD card)
)

// MaxDelay bounds DelayMs, MaxOffset OffsetMs: a clock can be as far back as 1970, and as far ahead.
const (
	MaxDelay  = time.Minute
	MaxOffset = 100 * 365 * 24 * time.Hour

	maxSeconds = int64(MaxOffset / time.Second)
)

// Kinds returns every kind, in the order of the panel.
func Kinds() []Kind {
	return []Kind{Stuck, RelayDead, Slow, LostChip, SenseOpen, SensorDead, IRDead, IRLoss, IRIgnore, WindowOpen, NetworkCut, NetworkLag, Loss, Duplicate, Reorder, Clock, ClockStep, PowerOff, Reboot, Clone}
}

// delayed reports whether the kind needs a DelayMs.
func (k Kind) delayed() bool { return k == Slow || k == NetworkLag || k == Reorder }

// partial reports whether the kind needs a Percent.
func (k Kind) partial() bool { return k == Loss || k == IRLoss }

// ofDevice reports whether a device can restrict the kind.
func (k Kind) ofDevice() bool {
	switch k {
	case Stuck, RelayDead, Slow, LostChip, SenseOpen, SensorDead, IRDead, IRLoss, IRIgnore, WindowOpen:
		return true
	}
	return false
}

// Fault is one fault that is switched on.
type Fault struct {
	// Device restricts the fault: front_1, room_2, front for all front doors, a
	// sensor's location, an air conditioner's name. Empty: everything.
	Device   string `json:"device,omitempty"`
	Kind     Kind   `json:"kind"`
	DelayMs  int    `json:"delayMs,omitempty"`
	Percent  int    `json:"percent,omitempty"`  // of Loss and IRLoss, 1 to 100
	OffsetMs int64  `json:"offsetMs,omitempty"` // of Clock
	Seconds  int64  `json:"seconds,omitempty"`  // of ClockStep
	// HardwareClock: whether the machine has a hardware clock after Reboot.
	HardwareClock bool `json:"hardwareClock,omitempty"`
}

// Delay is DelayMs as a duration.
func (f Fault) Delay() time.Duration { return time.Duration(f.DelayMs) * time.Millisecond }

// Offset is OffsetMs and Seconds as a duration.
func (f Fault) Offset() time.Duration {
	return time.Duration(f.OffsetMs)*time.Millisecond + time.Duration(f.Seconds)*time.Second
}

// Validate checks the fault itself. The branch checks whether it has the device.
func (f Fault) Validate() error {
	known := false
	for _, k := range Kinds() {
		known = known || k == f.Kind
	}
	switch {
	case !known:
		return fmt.Errorf("unknown kind %q (there are %v)", f.Kind, Kinds())
	case f.Device != "" && !f.Kind.ofDevice():
		return fmt.Errorf("%s is a fault of the whole branch, not of device %q", f.Kind, f.Device)
	case f.Kind.delayed() && (f.DelayMs <= 0 || f.Delay() > MaxDelay):
		return fmt.Errorf("%s needs a delayMs of 1 to %d", f.Kind, MaxDelay.Milliseconds())
	case !f.Kind.delayed() && f.DelayMs != 0:
		return fmt.Errorf("%s has no delayMs", f.Kind)
	case f.Kind.partial() && (f.Percent < 1 || f.Percent > 100):
		return fmt.Errorf("%s needs a percent of 1 to 100", f.Kind)
	case !f.Kind.partial() && f.Percent != 0:
		return fmt.Errorf("%s has no percent", f.Kind)
	case f.Kind == Clock && (f.OffsetMs == 0 || f.OffsetMs < -MaxOffset.Milliseconds() || f.OffsetMs > MaxOffset.Milliseconds()):
		return fmt.Errorf("%s needs an offsetMs of up to %d either way, and not 0", f.Kind, MaxOffset.Milliseconds())
	case f.Kind == ClockStep && (f.Seconds == 0 || f.Seconds < -maxSeconds || f.Seconds > maxSeconds):
		return fmt.Errorf("%s needs seconds of up to %d either way, and not 0", f.Kind, maxSeconds)
	case f.Kind != ClockStep && f.Seconds != 0:
		return fmt.Errorf("%s has no seconds", f.Kind)
	case f.Kind != Reboot && f.HardwareClock:
		return fmt.Errorf("%s has no hardwareClock", f.Kind)
	case f.Kind != Clock && f.OffsetMs != 0:
		return fmt.Errorf("%s has no offsetMs", f.Kind)
	}
	return nil
}

// List contains the faults of a branch. A list is never changed in place.
type List []Fault

// With returns the list with f added; f replaces an earlier fault of its kind and device.
func (l List) With(f Fault) List { return append(l.Without(f.Kind, f.Device), f) }

// Without returns the list without the fault of exactly this kind and device.
func (l List) Without(kind Kind, device string) List {
	out := make(List, 0, len(l)+1)
	for _, f := range l {
		if f.Kind != kind || f.Device != device {
			out = append(out, f)
		}
	}
	return out
}

// At returns the fault of a kind that affects a device, or the whole branch for "". If several match, the latest wins.
func (l List) At(kind Kind, device string) (Fault, bool) {
	for i := len(l) - 1; i >= 0; i-- {
		f := l[i]
		if f.Kind == kind && (f.Device == "" || f.Device == device || f.Device == "front" && strings.HasPrefix(device, "front_")) {
			return f, true
		}
	}
	return Fault{}, false
}
