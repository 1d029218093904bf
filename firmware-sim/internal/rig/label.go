package rig

import (
	"strconv"

	"github.com/yeolda/yeolda/firmware-sim/internal/infrared"
)

// stateOf reads a leaf's place in an option tree: mode, temperature, fan speed,
// fan direction, of which levels may be missing; a lone leaf switches off. It
// serves units whose protocol is unknown here, so the words are taken as they
// stand in the tree.
func stateOf(path []string) infrared.State {
	if len(path) == 1 {
		return infrared.State{}
	}
	s := infrared.State{Power: true, Mode: path[0]}
	rest := path[1:]
	if degrees, err := strconv.Atoi(rest[0]); err == nil {
		s.Temperature, rest = degrees, rest[1:]
	}
	if len(rest) > 0 {
		s.Fan = rest[0]
	}
	if len(rest) > 1 {
		s.Direction = rest[1]
	}
	return s
}
