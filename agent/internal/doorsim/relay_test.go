package doorsim

import (
	"errors"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"
)

// relayLine is the relay of one door with the sense line of its lock. It outlives the process of the agent.
type relayLine struct {
	w      *fixture
	device string
	owner  string // prefix in the trace: which Pi has it

	mu     sync.Mutex
	level  gpio.Level
	since  time.Time // of the level
	driven time.Time // when the driver was last told to energise the relay
	faults []defect
}

// defect is a fault of a line during an interval.
type defect struct {
	from, to time.Time
	kind     string
	slow     time.Duration
}

// The kinds of defects.
const (
	dead    = "dead"    // driving the relay fails
	stuck   = "stuck"   // releasing the relay fails
	deaf    = "deaf"    // the sense line does not confirm
	lagging = "lagging" // the sense line confirms late
	slow    = "slow"    // the driver is slow
	panics  = "panics"
)

// defects are the kinds from which a seed chooses.
var defects = []string{dead, stuck, deaf, lagging, slow, panics}

func (l *relayLine) defect() defect {
	now := time.Now()
	for _, f := range l.faults {
		if !now.Before(f.from) && now.Before(f.to) {
			return f
		}
	}
	return defect{}
}

func (l *relayLine) set(level gpio.Level) {
	if level == l.level {
		return
	}
	now := time.Now()
	if level == gpio.Low {
		l.w.released(l, l.driven, l.since, now)
	}
	l.level, l.since = level, now
	l.w.note("%s%s is %s", l.owner, l.device, level)
}

// off releases the line, as the kernel does when the process that held it dies.
func (l *relayLine) off() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(gpio.Low)
}

// lastDrive returns when the driver was last told to energise the relay.
func (l *relayLine) lastDrive() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.driven
}

func (l *relayLine) high() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.level == gpio.High
}

// relay is the line in the hands of one process. Calls of a dead process have no effect.
type relay struct {
	gpio.PinIO
	line *relayLine
	life *life
}

func (r relay) Out(level gpio.Level) error {
	l := r.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.life.over() {
		return nil
	}
	if level == gpio.High {
		l.driven = time.Now()
	}
	f := l.defect()
	switch {
	case f.kind == panics:
		panic("gpio: the device went away")
	case f.kind == dead, f.kind == stuck && level == gpio.Low:
		return errors.New("input/output error")
	case f.kind == slow:
		l.mu.Unlock()
		time.Sleep(f.slow)
		l.mu.Lock()
		if r.life.over() {
			return nil
		}
	}
	l.set(level)
	return nil
}

func (r relay) Read() gpio.Level {
	if r.life.over() {
		return gpio.Low
	}
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.line.level
}

// sense is the sense line of a lock.
type sense struct {
	gpio.PinIn
	line *relayLine
}

func (sense) In(gpio.Pull, gpio.Edge) error { return nil }

func (s sense) Read() gpio.Level {
	l := s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	switch f := l.defect(); {
	case l.level == gpio.Low, f.kind == deaf:
		return gpio.Low
	case f.kind == lagging:
		return time.Since(l.since) >= f.slow
	}
	return gpio.High
}
