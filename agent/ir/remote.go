package ir

import (
	"maps"
	"slices"
	"strconv"
)

// remotes are the built-in remote controls.
var remotes = map[string]func() *CodeSet{"lg": LG, "lg2": LG2, "samsung": Samsung}

// Remotes returns the names of the built-in remote controls.
func Remotes() []string { return slices.Sorted(maps.Keys(remotes)) }

// Remote returns the code set of a built-in remote control.
func Remote(name string) (set *CodeSet, known bool) {
	build, known := remotes[name]
	if !known {
		return nil, false
	}
	return build(), true
}

// The range of set points that built-in remotes offer.
const minCelsius, maxCelsius = 18, 30

// anyCelsius is the temperature in frames for modes that ignore it.
const anyCelsius = 24

// remote describes a remote control by its options.
type remote struct {
	modes  []mode
	encode func(Setting) (Code, error)
}

type mode struct {
	name        string
	temperature bool // whether the mode uses the temperature
	speeds      []speed
}

// speed is a fan speed: its label and its Setting.Fan.
type speed struct{ label, fan string }

// codeSet builds the tree of all settings.
func (r remote) codeSet() *CodeSet {
	set := &CodeSet{Roots: []Node{{Name: modeLabels["off"], Code: r.must(Setting{})}}}
	for _, m := range r.modes {
		node := Node{Name: modeLabels[m.name]}
		if m.temperature {
			for celsius := minCelsius; celsius <= maxCelsius; celsius++ {
				node.Children = append(node.Children, Node{Name: strconv.Itoa(celsius), Children: r.speeds(m, celsius)})
			}
		} else {
			node.Children = r.speeds(m, anyCelsius)
		}
		set.Roots = append(set.Roots, node)
	}
	return set
}

func (r remote) speeds(m mode, celsius int) []Node {
	var nodes []Node
	for _, s := range m.speeds {
		node := Node{Name: speedLabels[s.label]}
		for _, swing := range []string{"off", "on"} {
			code := r.must(Setting{Power: true, Mode: m.name, Celsius: celsius, Fan: s.fan, Swing: swing})
			node.Children = append(node.Children, Node{Name: speedLabels[swing], Code: code})
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// must encodes a setting from the table of a built-in remote and panics if the table is wrong.
func (r remote) must(s Setting) Code {
	code, err := r.encode(s)
	if err != nil {
		panic(err)
	}
	return code
}
