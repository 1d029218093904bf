// Package ir turns the options of an air conditioner into infrared signals: code sets with their option trees, encoders and
// decoders of the protocols common in Korea, and readers for published code formats.
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

// Signal is one infrared frame.
type Signal struct {
	CarrierHz int
	Durations []uint32 // µs, alternating marks and spaces, beginning and ending with a mark
}

// Code is what one leaf of the option tree sends: usually one signal, sometimes several, SignalPause apart.
type Code []Signal

// SignalPause separates the signals of a Code: units ignore a signal that follows sooner.
const SignalPause = 500 * time.Millisecond

// CodeSet holds the codes of a unit as a tree of mode, temperature, fan speed and fan direction (docs/specification.md).
// Levels that the unit does not have are omitted, so a leaf may be at any level.
type CodeSet struct {
	Roots []Node
}

// Node is one option: a leaf with a Code or an inner node with Children, never both.
type Node struct {
	Name     string
	Code     Code
	Children []Node
}

// Options returns the tree without the codes, as the agent describes it to the cloud.
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

// Leaves yields each code with the names on its path. The path is valid only until the next iteration.
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
