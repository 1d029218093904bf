package link

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/protocol"
)

// TestStatusThatIsTooLarge checks what is left out of a status that is too large: the last air conditioners before any self-test, and the
// self-tests before the doors.
func TestStatusThatIsTooLarge(t *testing.T) {
	t.Parallel()
	inventory := protocol.Inventory{Doors: []protocol.Door{{Device: "room_1", Kind: protocol.DoorRoom}}, Sensors: []string{}}
	for i := range 6 {
		u := protocol.AirConditioner{Name: fmt.Sprintf("unit %d", i+1)}
		for j := range 100 {
			u.Options = append(u.Options, protocol.Option{Name: fmt.Sprint(i, " ", j, strings.Repeat("x", 80))})
		}
		inventory.AirConditioners = append(inventory.AirConditioners, u)
	}
	for name, c := range map[string]struct{ tests, units, want int }{
		"none":                    {0, 6, 0},
		"few":                     {40, 5, 41},
		"many":                    {150, 2, 151},
		"too large by themselves": {500, 6, 0},
	} {
		var tests []protocol.SelfTest
		for i := range c.tests {
			tests = append(tests, protocol.SelfTest{Name: fmt.Sprint("relay ", i), Detail: strings.Repeat("x", 230)})
		}
		info := AgentInfo{BootID: "boot", Inventory: inventory, Current: func() Current { return Current{SelfTest: tests} }}
		s, err := protocol.Decode[protocol.Status](info.online(1))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s.Inventory.AirConditioners) != c.units || len(s.SelfTest) != c.want || len(s.Inventory.Doors) != 1 {
			t.Errorf("%s: got %d units and %d self-tests, want %d and %d", name, len(s.Inventory.AirConditioners), len(s.SelfTest), c.units, c.want)
		}
		if n := len(s.SelfTest); n > c.tests && (s.SelfTest[n-1].OK || !strings.Contains(s.SelfTest[n-1].Detail, `"unit 6"`)) {
			t.Errorf("%s: got %+v, want the units that are left out", name, s.SelfTest[n-1])
		}
	}
}
