package doorsim

import (
	"errors"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"
)

// line is the relay of one door with its lock's sense line, as the hardware is. It outlives the agent.
type line struct {
	w      *world
	device string

	mu     sync.Mutex
	level  gpio.Level
	since  time.Time // of the level
	drives int       // how often the driver was told to energise the relay
	faults []defect
}

// defect is something wrong with a line for a while.
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
	slow    = "slow"    // the driver takes its time
	panics  = "panics"
)

// defects are the kinds, for the seed to choose from.
var defects = []string{dead, stuck, deaf, lagging, slow, panics}

func (l *line) defect() defect {
	now := time.Now()
	for _, f := range l.faults {
		if !now.Before(f.from) && now.Before(f.to) {
			return f
		}
	}
	return defect{}
}

func (l *line) set(level gpio.Level) {
	if level == l.level {
		return
	}
	now := time.Now()
	if level == gpio.Low {
		l.w.released(l.device, l.since, now)
	}
	l.level, l.since = level, now
	l.w.note("%s is %s", l.device, level)
}

// off is what the hardware does when the process that held the line is gone.
func (l *line) off() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(gpio.Low)
}

func (l *line) high() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.level == gpio.High
}

// relay is the line as one process holds it. What a dead process does has no effect.
type relay struct {
	gpio.PinIO
	line *line
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
		l.drives++
		l.w.driven(l.device)
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

// sense is the lock's own word that it is released.
type sense struct {
	gpio.PinIn
	line *line
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
