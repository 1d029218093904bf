package rpi

import (
	"time"

	"github.com/warthog618/go-gpiocdev"
	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// input is a line that is observed, as a periph pin: High is what the settings call active. The kernel debounces it.
type input struct {
	gpio.PinIn // has no edges to wait for
	line       *gpioLine
}

func newInput(settings config.Line, consumer string) *input {
	options := []gpiocdev.LineReqOption{gpiocdev.AsInput}
	switch settings.Pull {
	case "up":
		options = append(options, gpiocdev.WithPullUp)
	case "down":
		options = append(options, gpiocdev.WithPullDown)
	case "none":
		options = append(options, gpiocdev.WithBiasDisabled)
	}
	if settings.Debounce() > 0 {
		options = append(options, gpiocdev.WithDebounce(settings.Debounce().Truncate(time.Microsecond)))
	}
	return &input{PinIn: gpio.INVALID, line: newGPIOLine(settings, consumer, options...)}
}

func (i *input) String() string { return i.line.name() }
func (i *input) Name() string   { return i.line.name() }

// In reports whether the line can be had. Pull and edges are the settings' business.
func (i *input) In(gpio.Pull, gpio.Edge) error {
	_, err := i.line.get()
	return err
}

// Read gives the level; of a line that cannot be read, Low: not released, not open, not pressed.
func (i *input) Read() gpio.Level {
	held, err := i.line.get()
	if err != nil {
		return gpio.Low
	}
	value, err := held.Value()
	return err == nil && value == 1
}
