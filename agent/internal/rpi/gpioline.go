package rpi

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/warthog618/go-gpiocdev"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// requestInterval is how long a line that could not be had is left alone.
const requestInterval = time.Second

// line is a line of the kernel's, requested once and kept until the process ends. Direction, polarity and level go into
// the one request: the line is never anything else in between. One that cannot be had, because its expander is not
// there yet or another program sits on it, is asked for again when it is needed, and costs nothing but itself.
type gpioLine struct {
	settings config.Line
	consumer string // shown by gpioinfo
	options  []gpiocdev.LineReqOption

	mu    sync.Mutex
	held  *gpiocdev.Line
	tried time.Time
	err   error // of the last attempt
}

func newGPIOLine(settings config.Line, consumer string, options ...gpiocdev.LineReqOption) *gpioLine {
	if settings.ActiveLow {
		options = append(options, gpiocdev.AsActiveLow)
	}
	return &gpioLine{settings: settings, consumer: consumer, options: options}
}

// get gives the line, requesting it when it is not held.
func (l *gpioLine) get() (*gpiocdev.Line, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil || l.err != nil && time.Since(l.tried) < requestInterval {
		return l.held, l.err
	}
	l.held, l.err = l.request()
	l.tried = time.Now()
	return l.held, l.err
}

func (l *gpioLine) request() (*gpiocdev.Line, error) {
	p, err := locate(l.settings.Chip, l.settings.Name)
	if err != nil {
		return nil, err
	}
	options := append([]gpiocdev.LineReqOption{gpiocdev.WithConsumer(l.consumer), gpiocdev.WithABIVersion(2)}, l.options...)
	held, err := gpiocdev.RequestLine(p.chip, p.offset, options...)
	if errors.Is(err, syscall.EBUSY) {
		return nil, fmt.Errorf("line %s of %s is held by another program: %w", l.settings.Name, p.label, err)
	}
	if err != nil {
		return nil, fmt.Errorf("line %s of %s: %w", l.settings.Name, p.label, err)
	}
	return held, nil
}

// has reports whether the line is held, without asking for it.
func (l *gpioLine) has() (*gpiocdev.Line, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held, l.held != nil
}

func (l *gpioLine) name() string { return l.settings.Name }
