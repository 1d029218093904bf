package rig_test

import (
	"fmt"

	"github.com/yeolda/yeolda/firmware-sim/internal/rig"
)

// shown is what the display of a unit says.
func shown(u rig.AirConditioner) string {
	if !u.Power {
		return "off"
	}
	return fmt.Sprintf("on %s %d %s %s", u.Mode, u.Temperature, u.Fan, u.Direction)
}

// expected is what it should say after the leaf at a path of the demo's code
// set. Drying and blowing leave the set point alone, which is the last one of
// the modes before them in the set.
func expected(path []string) string {
	switch len(path) {
	case 1:
		return "off"
	case 3:
		return fmt.Sprintf("on %s 30 %s %s", path[0], path[1], path[2])
	}
	return fmt.Sprintf("on %s %s %s %s", path[0], path[1], path[2], path[3])
}
