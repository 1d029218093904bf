package rpi

import (
	"sync"
	"time"

	"github.com/warthog618/go-gpiocdev"
	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// input is an observed line as a periph pin: High is the level that the settings call active. The kernel debounces it.
type input struct {
	gpio.PinIn // supports no edge detection
	line       *gpioLine

	mu  sync.Mutex
	err error // of the last read
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

// In reports whether the line is available. The settings define its pull and debouncing.
func (i *input) In(gpio.Pull, gpio.Edge) error { return i.line.available() }

// Read returns the level, or Low for a line that cannot be read; see Fault.
func (i *input) Read() gpio.Level {
	value, err := i.line.value()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
	return err == nil && value == 1
}

// Fault returns why the last read failed, or nil.
func (i *input) Fault() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err
}
