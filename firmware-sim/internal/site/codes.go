package site

import (
	"fmt"
	"strconv"

	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/firmware-sim/internal/infrared"
)

// carrier is that of LG's remotes, in Hz.
const carrier = 38_000

// LGCodes makes the code set of an LG unit with a louvre: power off, and for
// each mode and temperature every fan speed with the louvre swinging or not.
// Drying and blowing know no temperature, so their fan speeds come next.
func LGCodes() (*ir.CodeSet, error) {
	off, err := leaf("off", infrared.State{})
	if err != nil {
		return nil, err
	}
	set := &ir.CodeSet{Roots: []ir.Node{off}}
	for _, mode := range []string{"cool", "heat", "auto", "dry", "fan"} {
		node := ir.Node{Name: mode}
		if mode == "dry" || mode == "fan" {
			// The frame has a set point all the same; units ignore it.
			node.Children, err = fans(infrared.State{Power: true, Mode: mode, Temperature: 24})
			if err != nil {
				return nil, err
			}
		} else {
			for t := 18; t <= 30; t++ {
				speeds, err := fans(infrared.State{Power: true, Mode: mode, Temperature: t})
				if err != nil {
					return nil, err
				}
				node.Children = append(node.Children, ir.Node{Name: strconv.Itoa(t), Children: speeds})
			}
		}
		set.Roots = append(set.Roots, node)
	}
	return set, nil
}

// fans makes the levels below a temperature.
func fans(s infrared.State) ([]ir.Node, error) {
	var speeds []ir.Node
	for _, fan := range []string{"low", "mid", "high", "auto"} {
		node := ir.Node{Name: fan}
		for _, direction := range []string{"off", "on"} {
			s.Fan, s.Direction = fan, direction
			l, err := leaf(direction, s)
			if err != nil {
				return nil, err
			}
			node.Children = append(node.Children, l)
		}
		speeds = append(speeds, node)
	}
	return speeds, nil
}

func leaf(name string, s infrared.State) (ir.Node, error) {
	train, err := infrared.EncodeLG(s)
	if err != nil {
		return ir.Node{}, fmt.Errorf("code set: %w", err)
	}
	return ir.Node{Name: name, Code: ir.Code{{CarrierHz: carrier, Durations: train}}}, nil
}
