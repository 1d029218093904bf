package rig

import (
	"strconv"

	"github.com/yeolda/yeolda/firmware-sim/internal/infrared"
)

// A unit's display speaks the language of its remote control: the words that
// the agent's code sets have in their option tree, so that the panel shows what
// was pressed.
var (
	modeLabels = map[string]string{"cool": "냉방", "heat": "난방", "auto": "자동", "dry": "제습", "fan": "송풍"}
	fanLabels  = map[string]string{
		"lowest": "최약", "low": "약", "mid": "중", "high": "강", "max": "최강", "auto": "자동",
	}
	directionLabels = map[string]string{"on": "회전", "off": "고정"}
)

// show writes a decoded state onto the display. Words unknown here, as of a
// raw code set, stay as they are.
func (a *AirConditioner) show(s infrared.State) {
	a.Power, a.Temperature = s.Power, s.Temperature
	a.Mode, a.Fan, a.Direction = label(modeLabels, s.Mode), label(fanLabels, s.Fan), label(directionLabels, s.Direction)
}

func label(labels map[string]string, word string) string {
	if l, ok := labels[word]; ok {
		return l
	}
	return word
}

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
