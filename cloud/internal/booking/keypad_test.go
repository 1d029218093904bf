package booking_test

import (
	"errors"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func TestKeypads(t *testing.T) {
	t.Parallel()
	const agent, standalone, none = booking.KeypadAgent, booking.KeypadStandalone, booking.KeypadNone
	b := booking.Branch{FrontDoors: []string{"front_1", "front_2"}, Rooms: []booking.Room{{No: 1}, {No: 2}}}
	equal(t, "doors", b.Devices(), []string{"front_1", "front_2", "room_1", "room_2"})
	for _, c := range []struct {
		one, two, front booking.Keypad
	}{
		{agent, agent, agent}, {none, agent, agent}, {standalone, agent, agent}, {none, standalone, standalone},
		{standalone, none, standalone}, {standalone, standalone, standalone}, {none, none, none},
	} {
		b.Keypads = map[string]booking.Keypad{"front_1": c.one, "front_2": c.two}
		if got := b.Keypad("front"); got != c.front {
			t.Errorf("front doors with %s and %s: %s, want %s", c.one, c.two, got, c.front)
		}
	}
	b.Keypads = nil
	if got := b.Keypad("room_1"); got != standalone {
		t.Errorf("a door without a setting: %s", got)
	}

	b.Keypads = b.WithKeypad("front_2", agent)
	b.Keypads = b.WithKeypad("room_2", agent)
	b.Keypads = b.WithKeypad("room_1", none)
	before := b.Keypads
	equal(t, "after standalone", b.WithKeypad("room_1", standalone), map[string]booking.Keypad{"front_2": agent, "room_2": agent})
	equal(t, "the branch is as before", before, map[string]booking.Keypad{"front_2": agent, "room_2": agent, "room_1": none})
	equal(t, "doors of a pass", b.PassDoors(b.Rooms[1]), []string{"front_2", "room_2"})
	equal(t, "doors of a PIN", b.PINDoors(b.Rooms[1]), []string{"front", "room_2"})
	equal(t, "doors of a PIN in another room", b.PINDoors(b.Rooms[0]), []string{"front"})
}

func TestKeypadsAreOfDoors(t *testing.T) {
	t.Parallel()
	b := booking.Branch{FrontDoors: []string{"front_1"}, Rooms: []booking.Room{{No: 1}}}
	for device, kinds := range map[string]map[booking.Keypad]bool{
		"front_1": {booking.KeypadAgent: true, booking.KeypadStandalone: true, booking.KeypadNone: true, "": false, "usb": false},
		"room_1":  {booking.KeypadAgent: true},
		"room_2":  {booking.KeypadAgent: false},
		"front":   {booking.KeypadAgent: false},
	} {
		for kind, valid := range kinds {
			b.Keypads = map[string]booking.Keypad{device: kind}
			if err := b.ValidateDoors(); valid != (err == nil) || !valid && !errors.Is(err, booking.ErrInvalid) {
				t.Errorf("%s with %q: %v", device, kind, err)
			}
		}
	}
}
