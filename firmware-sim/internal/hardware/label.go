package hardware

import (
	"strconv"

	"github.com/yeolda/yeolda/agent/ir"
)

// A unit's display speaks the language of its remote control: the words that
// the agent's code sets have in their option tree, so that the panel shows what
// was pressed.
var (
	modeLabels = map[string]string{"cool": "냉방", "heat": "난방", "auto": "자동", "dry": "제습", "fan": "송풍"}
	fanLabels  = map[string]string{
		"lowest": "약", "low": "약", "mid": "중", "high": "강", "max": "강", "auto": "자동",
	}
	swingLabels = map[string]string{"on": "회전", "off": "고정"}
)

// show writes a setting onto the display. Words unknown here, as of a raw code
// set, stay as they are.
func (a *AirConditioner) show(s ir.Setting) {
	a.Power, a.Temperature = s.Power, s.Celsius
	a.Mode, a.Fan, a.Direction = label(modeLabels, s.Mode), label(fanLabels, s.Fan), label(swingLabels, s.Swing)
}

func label(labels map[string]string, word string) string {
	if l, ok := labels[word]; ok {
		return l
	}
	return word
}

// settingAt reads a leaf's place in an option tree: mode, temperature, fan
// speed, fan direction, of which levels may be missing; a lone leaf switches
// off. It serves units whose protocol is unknown here, so the words are taken as
// they stand in the tree.
func settingAt(path []string) ir.Setting {
	if len(path) == 1 {
		return ir.Setting{}
	}
	s := ir.Setting{Power: true, Mode: path[0]}
	rest := path[1:]
	if degrees, err := strconv.Atoi(rest[0]); err == nil {
		s.Celsius, rest = degrees, rest[1:]
	}
	if len(rest) > 0 {
		s.Fan = rest[0]
	}
	if len(rest) > 1 {
		s.Swing = rest[1]
	}
	return s
}
