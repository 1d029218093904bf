package ir

import (
	"slices"
	"strconv"
	"strings"
)

// The labels that administrators see, by the keys of published code sets.
var (
	modeLabels = map[string]string{
		"off": "전원 끄기", "on": "전원 켜기", "auto": "자동", "heat_cool": "자동", "cool": "냉방", "heat": "난방", "dry": "제습",
		"fan_only": "송풍", "fan": "송풍",
	}
	speedLabels = map[string]string{
		"auto": "자동", "lowest": "최약", "low": "약", "mid": "중", "med": "중", "medium": "중", "middle": "중", "high": "강", "highest": "최강",
		"max": "최강", "quiet": "정숙", "silent": "정숙", "turbo": "터보", "powerful": "터보",
		"level1": "1단", "level2": "2단", "level3": "3단", "level4": "4단", "level5": "5단",
		"on": "회전", "swing": "회전", "off": "고정", "stop": "고정", "fixed": "고정",
	}
)

// label replaces the keys of a code set with the labels for administrators: labels for these nodes, speedLabels for all
// levels below. A key without a label, or whose label a sibling already has, keeps its name.
func label(nodes []Node, labels map[string]string) {
	taken := make([]string, 0, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		name := labels[strings.ToLower(n.Name)]
		if value, ok := number(n.Name); ok {
			name = strconv.FormatFloat(value, 'f', -1, 64) // "18.0" is "18"
		}
		if name != "" && !slices.Contains(taken, name) {
			n.Name = name
		}
		if slices.Contains(taken, n.Name) { // the key equals the label of a sibling
			n.Name += " " + strconv.Itoa(i+1)
		}
		taken = append(taken, n.Name)
		label(n.Children, speedLabels)
	}
}
