package rpi

import (
	"errors"

	"github.com/warthog618/go-gpiocdev"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/keypad"
)

// wiegandBuffer is the number of edges that the kernel keeps while the process does not run: several keys.
const wiegandBuffer = 512

// Keypads returns the keypads and scanners of all doors. Devices that are missing are opened later.
func Keypads(doors []config.Door) []agent.Keypad {
	var keypads []agent.Keypad
	for _, d := range doors {
		for _, k := range d.Keypads {
			var reader keypad.Reader
			if k.USB != "" {
				reader = keypad.NewUSB(k.USB)
			} else {
				reader = keypad.NewWiegand(func(edge func(keypad.Edge)) (keypad.Lines, error) { return requestWiegand(k, d.Device, edge) })
			}
			keypads = append(keypads, agent.Keypad{Device: d.Device, Reader: reader})
		}
	}
	return keypads
}

// wiegandLines are both lines of a keypad, requested together: the kernel then numbers their edges in order.
type wiegandLines struct{ *gpiocdev.Lines }

// Probe implements keypad.Lines.
func (l wiegandLines) Probe() error { return l.Values(make([]int, 2)) }

func requestWiegand(k config.Keypad, device string, edge func(keypad.Edge)) (keypad.Lines, error) {
	zero, err := locate(*k.D0)
	if err != nil {
		return nil, err
	}
	one, err := locate(*k.D1)
	if err != nil {
		return nil, err
	}
	if zero.chip != one.chip {
		return nil, errors.New("d0 and d1 are on different chips")
	}
	start := keypad.KernelStart()
	options := []gpiocdev.LineReqOption{
		gpiocdev.WithConsumer(Consumer + device + " keypad"), gpiocdev.AsInput, gpiocdev.WithMonotonicEventClock,
		gpiocdev.WithEventBufferSize(wiegandBuffer),
		gpiocdev.WithEventHandler(func(e gpiocdev.LineEvent) {
			edge(keypad.Edge{One: e.Offset == one.offset, At: start.Add(e.Timestamp), Seq: e.Seqno})
		}),
	}
	// A pulse is Low at the keypad; a level shifter that inverts makes it High.
	if k.D0.ActiveLow {
		options = append(options, gpiocdev.WithRisingEdge)
	} else {
		options = append(options, gpiocdev.WithFallingEdge)
	}
	switch k.D0.Pull {
	case "up":
		options = append(options, gpiocdev.WithPullUp)
	case "down":
		options = append(options, gpiocdev.WithPullDown)
	case "none":
		options = append(options, gpiocdev.WithBiasDisabled)
	}
	lines, err := gpiocdev.RequestLines(zero.chip, []int{zero.offset, one.offset}, options...)
	if err != nil {
		return nil, err
	}
	return wiegandLines{lines}, nil
}
