// Package ir turns what people choose on an air conditioner into infrared signals: code sets with their option tree,
// encoders and decoders of the protocols most Korean rooms use, and readers for the formats in which codes are published.
package ir

import (
	"context"
	"iter"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// Transmitter sends one signal: durations in µs, a mark first, marks modulated on a carrier in Hz. Send blocks for the
// length of the signal. It is not called concurrently.
type Transmitter interface {
	Send(ctx context.Context, carrierHz int, durations []uint32) error
}

// Signal is one frame in the air.
type Signal struct {
	CarrierHz int
	Durations []uint32 // µs, mark and space in turn, beginning and ending with a mark
}

// Code is what one leaf of the option tree sends: usually one signal, sometimes several, SignalPause apart.
type Code []Signal

// SignalPause lies between the signals of a Code: units ignore what comes sooner.
const SignalPause = 500 * time.Millisecond

// CodeSet is what a unit understands, as a tree in the order of interface.md: mode, temperature, fan speed, fan
// direction. Levels that a unit does not have are left out; a leaf may stand at any level.
type CodeSet struct {
	Roots []Node
}

// Node is one option: a leaf with a Code or an inner node with Children, never both.
type Node struct {
	Name     string
	Code     Code
	Children []Node
}

// Options is the tree without the codes, as agents describe it to the cloud.
func (s *CodeSet) Options() []protocol.Option { return options(s.Roots) }

func options(nodes []Node) []protocol.Option {
	if len(nodes) == 0 {
		return nil
	}
	list := make([]protocol.Option, len(nodes))
	for i, n := range nodes {
		list[i] = protocol.Option{Name: n.Name, Children: options(n.Children)}
	}
	return list
}

// Leaves yields every code with the names on the path to it. The path is only valid until the next step.
func (s *CodeSet) Leaves() iter.Seq2[[]string, Code] {
	return func(yield func([]string, Code) bool) { walk(nil, s.Roots, yield) }
}

func walk(path []string, nodes []Node, yield func([]string, Code) bool) bool {
	for _, n := range nodes {
		below := append(path, n.Name)
		if len(n.Children) == 0 {
			if !yield(below, n.Code) {
				return false
			}
		} else if !walk(below, n.Children, yield) {
			return false
		}
	}
	return true
}
