package rpi

import (
	"sync/atomic"

	"github.com/warthog618/go-gpiocdev"
	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// relay is the output that drives a lock, as a periph pin: High energises it, regardless of the wiring.
//
// periph's own pin is unsuitable: its first Out drives the line Low before it drives it High, and its Read turns an output
// into an input.
type relay struct {
	gpio.PinIO // rejects everything that an output does not support
	line       *gpioLine
	driven     atomic.Bool // the level set last
}

func newRelay(settings config.Line, consumer string) *relay {
	options := []gpiocdev.LineReqOption{gpiocdev.AsOutput(0)}
	if settings.OpenDrain {
		options = append(options, gpiocdev.AsOpenDrain)
	}
	return &relay{PinIO: gpio.INVALID, line: newGPIOLine(settings, consumer, options...)}
}

func (r *relay) String() string { return r.line.name() }
func (r *relay) Name() string   { return r.line.name() }

// Out drives the line. The request of the line makes it idle.
func (r *relay) Out(level gpio.Level) error {
	value := 0
	if level == gpio.High {
		value = 1
	}
	r.driven.Store(bool(level))
	return r.line.set(value)
}

// Read reads the driven line back without changing it. A line that is not held is not driven. If the kernel returns an error,
// Read returns the opposite of the level set last, so that a level is never confirmed without having been read.
func (r *relay) Read() gpio.Level {
	value, held, err := r.line.heldValue()
	switch {
	case !held:
		return gpio.Low
	case err != nil:
		return gpio.Level(!r.driven.Load())
	}
	return value == 1
}
