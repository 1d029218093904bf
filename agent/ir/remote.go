package ir

import (
	"maps"
	"slices"
	"strconv"
)

// remotes are the remote controls that are known without a file.
var remotes = map[string]func() *CodeSet{"lg": LG, "lg2": LG2, "samsung": Samsung}

// Remotes are the names that Remote knows.
func Remotes() []string { return slices.Sorted(maps.Keys(remotes)) }

// Remote is the code set of a remote control that needs no file.
func Remote(name string) (set *CodeSet, known bool) {
	build, known := remotes[name]
	if !known {
		return nil, false
	}
	return build(), true
}

// The set points that built-in remotes offer; interface.md leaves them to the branch.
const minCelsius, maxCelsius = 18, 30

// anyCelsius is what frames hold of which the unit takes no notice of the temperature.
const anyCelsius = 24

// remote describes a remote control by what people can choose on it.
type remote struct {
	modes  []mode
	encode func(Setting) (Code, error)
}

type mode struct {
	name        string
	temperature bool // the others take no notice of it
	speeds      []speed
}

// speed is a fan speed: what it is called, and the Setting.Fan it means.
type speed struct{ label, fan string }

// codeSet is the tree of every setting.
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

// must encodes what the table of a built-in remote says it can; a table that is wrong fails every test.
func (r remote) must(s Setting) Code {
	code, err := r.encode(s)
	if err != nil {
		panic(err)
	}
	return code
}
