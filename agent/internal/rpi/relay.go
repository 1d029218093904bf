package rpi

import (
	"sync/atomic"

	"github.com/warthog618/go-gpiocdev"
	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// relay is the output that drives a lock, as a periph pin: High energises, whatever the wiring.
//
// periph's own pin would not do: its first Out drives the line Low before it drives it High, and its Read turns an output
// into an input.
type relay struct {
	gpio.PinIO // refuses what an output does not do
	line       *gpioLine
	driven     atomic.Bool // what the line was last told
}

func newRelay(settings config.Line, consumer string) *relay {
	return &relay{PinIO: gpio.INVALID, line: newGPIOLine(settings, consumer, gpiocdev.AsOutput(0))}
}

func (r *relay) String() string { return r.line.name() }
func (r *relay) Name() string   { return r.line.name() }

// Out drives the line. Requesting it has made it idle.
func (r *relay) Out(level gpio.Level) error {
	held, err := r.line.get()
	if err != nil {
		return err
	}
	value := 0
	if level == gpio.High {
		value = 1
	}
	r.driven.Store(bool(level))
	return held.SetValue(value)
}

// Read reads the driven line back, and leaves it as it is. A line that is not held is not driven. When the kernel does
// not answer, the level is the one that was not asked for: nothing is taken for confirmed that was not seen.
func (r *relay) Read() gpio.Level {
	held, ok := r.line.has()
	if !ok {
		return gpio.Low
	}
	value, err := held.Value()
	if err != nil {
		return gpio.Level(!r.driven.Load())
	}
	return value == 1
}
