package hardware

import (
	"strconv"

	"github.com/yeolda/yeolda/agent/ir"
)

// A unit's display uses the words of its remote control: those of the option tree of the agent's code sets, so that the
// panel shows the option that was pressed.
var (
	modeLabels = map[string]string{"cool": "냉방", "heat": "난방", "auto": "자동", "dry": "제습", "fan": "송풍"}
	fanLabels  = map[string]string{
		"lowest": "약", "low": "약", "mid": "중", "high": "강", "max": "강", "auto": "자동",
	}
	swingLabels = map[string]string{"on": "회전", "off": "고정"}
)

// show writes a setting onto the display. Unknown words, for example of a raw code set, are kept.
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

// settingAt returns the setting of a path in an option tree: mode, temperature, fan speed, fan direction, of which
// levels may be missing; a single leaf switches off. It is for units with an unknown protocol, so it keeps the words of
// the tree.
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
