// Package boardtest provides hardware for tests that fails on demand: stuck relays, hanging drivers, missing inputs.
package boardtest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"
)

// Pulse is an interval during which a relay was energised.
type Pulse struct {
	At  time.Time
	For time.Duration // 0: still energised
}

// Lock is a lock with its relay and its sense line. The zero value is a healthy lock.
type Lock struct {
	mu     sync.Mutex
	level  gpio.Level
	pulses []Pulse
	faults Faults
}

// Faults of a lock; several may be set.
type Faults struct {
	Dead     bool          // driving the relay fails
	DeadLow  bool          // only releasing it fails
	Stuck    bool          // the relay is driven, the sense line never confirms
	Slow     time.Duration // the driver takes this long for each drive
	Hang     chan struct{} // the driver blocks until this channel is closed
	HangLow  chan struct{} // the same, but only when releasing
	Panic    bool          // the driver panics
	SenseLag time.Duration // delay of the sense line behind the relay
	Welded   bool          // the line always reads back as driven
}

// Break sets the faults; Break(Faults{}) repairs the lock.
func (l *Lock) Break(f Faults) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = f
}

// Energize drives the relay from outside, as a crashed agent may have left it behind.
func (l *Lock) Energize() { l.set(gpio.High) }

// Pulses returns the intervals during which the relay was energised.
func (l *Lock) Pulses() []Pulse {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.pulses)
}

// Locked reports whether the relay is idle.
func (l *Lock) Locked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.level == gpio.Low
}

// Relay returns the pin that drives the lock.
func (l *Lock) Relay() gpio.PinIO { return relay{PinIO: gpio.INVALID, lock: l} }

// Sense returns the pin on which the lock confirms that it is released.
func (l *Lock) Sense() gpio.PinIn { return sense{PinIn: gpio.INVALID, lock: l} }

func (l *Lock) set(level gpio.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if level == l.level {
		return
	}
	l.level = level
	now := time.Now()
	if level == gpio.High {
		l.pulses = append(l.pulses, Pulse{At: now})
	} else {
		last := &l.pulses[len(l.pulses)-1]
		last.For = now.Sub(last.At)
	}
}

type relay struct {
	gpio.PinIO
	lock *Lock
}

func (r relay) Out(level gpio.Level) error {
	r.lock.mu.Lock()
	f := r.lock.faults
	r.lock.mu.Unlock()
	if f.Panic {
		panic("gpio: the device disappeared")
	}
	if f.Dead || f.DeadLow && level == gpio.Low {
		return errors.New("input/output error")
	}
	if f.Slow > 0 {
		time.Sleep(f.Slow)
	}
	if f.Hang != nil && level == gpio.High {
		<-f.Hang
	}
	if f.HangLow != nil && level == gpio.Low {
		<-f.HangLow
	}
	r.lock.set(level)
	return nil
}

func (r relay) Read() gpio.Level {
	r.lock.mu.Lock()
	defer r.lock.mu.Unlock()
	return r.lock.level || gpio.Level(r.lock.faults.Welded)
}

type sense struct {
	gpio.PinIn
	lock *Lock
}

func (sense) In(gpio.Pull, gpio.Edge) error { return nil }

func (s sense) Read() gpio.Level {
	l := s.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.faults.Stuck || l.level == gpio.Low {
		return gpio.Low
	}
	return time.Since(l.pulses[len(l.pulses)-1].At) >= l.faults.SenseLag
}

// Contact is an input whose level a test sets.
type Contact struct {
	gpio.PinIn
	mu      sync.Mutex
	level   gpio.Level
	missing error
}

// NewContact returns an input that reads Low.
func NewContact() *Contact { return &Contact{PinIn: gpio.INVALID} }

// Set changes the level of the input.
func (c *Contact) Set(level gpio.Level) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level = level
}

// Lose makes every set-up and every read of the input fail with err.
func (c *Contact) Lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing = err
}

// In implements gpio.PinIn.
func (c *Contact) In(gpio.Pull, gpio.Edge) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missing
}

// Fault returns why the input cannot be read.
func (c *Contact) Fault() error { return c.In(gpio.PullNoChange, gpio.NoEdge) }

// Read implements gpio.PinIn.
func (c *Contact) Read() gpio.Level {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}
