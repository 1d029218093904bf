package booking

import (
	"maps"
	"slices"
	"strings"
)

// Keypad is the kind of keypad at a door (docs/specification.md, Passes 6).
type Keypad string

// The kinds of keypads.
const (
	KeypadAgent      Keypad = "agent"      // wired to the agent: it takes passes and one-time codes
	KeypadStandalone Keypad = "standalone" // out of reach of the system: it has a static PIN
	KeypadNone       Keypad = "none"
)

// Valid reports whether k is one of the kinds.
func (k Keypad) Valid() bool { return k == KeypadAgent || k == KeypadStandalone || k == KeypadNone }

// Devices returns the doors of the branch, the front doors first: front_1, room_2.
func (b Branch) Devices() []string {
	devices := slices.Clone(b.FrontDoors)
	for _, room := range b.Rooms {
		devices = append(devices, room.Device())
	}
	return devices
}

// Keypad returns the kind of keypad of a door. The device "front" is all front doors: agent if one of them has such a
// keypad, because any of them takes a code for the front.
func (b Branch) Keypad(device string) Keypad {
	if device != "front" {
		if kind, ok := b.Keypads[device]; ok {
			return kind
		}
		return KeypadStandalone
	}
	found := KeypadNone
	for _, door := range b.FrontDoors {
		switch b.Keypad(door) {
		case KeypadAgent:
			return KeypadAgent
		case KeypadStandalone:
			found = KeypadStandalone
		}
	}
	return found
}

// WithKeypad returns the keypads of the branch with one set.
func (b Branch) WithKeypad(device string, kind Keypad) map[string]Keypad {
	keypads := maps.Clone(b.Keypads)
	if keypads == nil {
		keypads = map[string]Keypad{}
	}
	if delete(keypads, device); kind != KeypadStandalone {
		keypads[device] = kind
	}
	return keypads
}

// checkKeypads returns an [InvalidError] for a keypad of a door that the branch does not have, or of an unknown kind.
func (b Branch) checkKeypads() error {
	devices := b.Devices()
	for _, device := range slices.Sorted(maps.Keys(b.Keypads)) {
		if !slices.Contains(devices, device) {
			return invalid("doors", "%s is not a door of the branch", device)
		}
		if !b.Keypads[device].Valid() {
			return invalid("doors", "%s has the keypad %q; expected agent, standalone or none", device, b.Keypads[device])
		}
	}
	return nil
}

// formatKeypads names the doors whose keypad is not standalone.
func formatKeypads(keypads map[string]Keypad) string {
	var list []string
	for _, device := range slices.Sorted(maps.Keys(keypads)) {
		list = append(list, device+" "+string(keypads[device]))
	}
	if list == nil {
		return "standalone"
	}
	return strings.Join(list, ", ")
}

// PassDoors returns the doors that the pass of a stay in a room opens: the front doors and the room's, as far as they have
// an agent keypad.
func (b Branch) PassDoors(room Room) []string {
	return b.withAgentKeypad(append(slices.Clone(b.FrontDoors), room.Device()))
}

// PINDoors returns the doors at which the PIN of a stay in a room works, as its guest knows them: "front" is any of the front doors.
func (b Branch) PINDoors(room Room) []string {
	return b.withAgentKeypad([]string{"front", room.Device()})
}

func (b Branch) withAgentKeypad(devices []string) []string {
	var doors []string
	for _, device := range devices {
		if b.Keypad(device) == KeypadAgent {
			doors = append(doors, device)
		}
	}
	return doors
}
