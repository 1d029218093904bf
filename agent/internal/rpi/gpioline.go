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

// requestInterval limits how often an unavailable line is requested.
const requestInterval = 900 * time.Millisecond

// gpioLine is a line of the kernel, requested once and held until the process ends. The request includes direction, polarity
// and level, so the line never has another state in between. If the line is unavailable, because its expander is missing or
// another program holds it, or if its chip disappears later, it is requested again on the next use.
type gpioLine struct {
	settings config.Line
	request  func() (heldLine, error)

	mu    sync.Mutex
	held  heldLine
	tried time.Time
	err   error // of the last request
}

// heldLine is a line that this process holds.
type heldLine interface {
	SetValue(value int) error
	Value() (int, error)
	Close() error
}

func newGPIOLine(settings config.Line, consumer string, options ...gpiocdev.LineReqOption) *gpioLine {
	options = append(options, gpiocdev.WithConsumer(consumer), gpiocdev.WithABIVersion(2))
	if settings.ActiveLow {
		options = append(options, gpiocdev.AsActiveLow)
	}
	l := &gpioLine{settings: settings}
	l.request = func() (heldLine, error) { return requestLine(settings, options) }
	return l
}

func requestLine(settings config.Line, options []gpiocdev.LineReqOption) (heldLine, error) {
	p, err := locate(settings)
	if err != nil {
		return nil, err
	}
	held, err := gpiocdev.RequestLine(p.chip, p.offset, options...)
	if errors.Is(err, syscall.EBUSY) {
		return nil, fmt.Errorf("line %s of %s is held by another program: %w", settings, p.label, err)
	}
	if err != nil {
		return nil, fmt.Errorf("line %s of %s: %w", settings, p.label, err)
	}
	return held, nil
}

// set drives the line, requesting it if necessary.
func (l *gpioLine) set(value int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.hold(); err != nil {
		return err
	}
	return l.check(l.held.SetValue(value))
}

// value reads the line, requesting it if necessary.
func (l *gpioLine) value() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.hold(); err != nil {
		return 0, err
	}
	value, err := l.held.Value()
	return value, l.check(err)
}

// heldValue reads the line without requesting it. held is false if the line is not held.
func (l *gpioLine) heldValue() (value int, held bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		return 0, false, nil
	}
	value, err = l.held.Value()
	err = l.check(err)
	return value, l.held != nil, err
}

// available reports whether the line can be requested.
func (l *gpioLine) available() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold()
}

// hold requests the line unless it is held. The caller holds mu.
func (l *gpioLine) hold() error {
	if l.held != nil || l.err != nil && time.Since(l.tried) < requestInterval {
		return l.err
	}
	l.tried = time.Now()
	l.held, l.err = l.request()
	return l.err
}

// check closes a line whose chip has disappeared, so that it is requested again. The caller holds mu.
func (l *gpioLine) check(err error) error {
	if errors.Is(err, syscall.ENODEV) {
		_ = l.held.Close() // the chip no longer exists
		l.held = nil
	}
	return err
}

func (l *gpioLine) name() string { return l.settings.String() }
