package hardware

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/physic"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
)

var (
	errUnpowered = errors.New("no power")
	errRelayDead = errors.New("the line does not answer")
	errWrongWay  = errors.New("not supported by this line")
)

// line is the common part of all simulated GPIO lines.
type line struct {
	installation *Installation
	power        *supply
	device       string
	name         string
	number       int
}

func (l *line) String() string         { return l.name }
func (l *line) Name() string           { return l.name }
func (l *line) Number() int            { return l.number }
func (l *line) Function() string       { return "" }
func (l *line) Pull() gpio.Pull        { return gpio.PullDown }
func (l *line) DefaultPull() gpio.Pull { return gpio.PullDown }

// relayPin drives a relay. Unlike periph's driver it reads back the driven level and never changes direction.
type relayPin struct {
	line
	door *door
}

var _ gpio.PinIO = (*relayPin)(nil)

func (p *relayPin) Halt() error { return nil }

// Out drives the relay; High energises it.
func (p *relayPin) Out(l gpio.Level) error {
	p.installation.mu.Lock()
	defer p.installation.mu.Unlock()
	if !p.installation.on(p.power) {
		return fmt.Errorf("%s: %w", p.name, errUnpowered)
	}
	if p.installation.lost(p.device) {
		return fmt.Errorf("%s: %w", p.name, syscall.ENODEV)
	}
	if _, dead := p.installation.faults.At(fault.RelayDead, p.door.row.Device); dead {
		return fmt.Errorf("%s: %w", p.name, errRelayDead)
	}
	p.door.energize(bool(l))
	return nil
}

// Read returns the driven level.
func (p *relayPin) Read() gpio.Level {
	p.installation.mu.Lock()
	defer p.installation.mu.Unlock()
	return gpio.Level(p.installation.on(p.power) && !p.door.row.Locked)
}

func (p *relayPin) In(gpio.Pull, gpio.Edge) error {
	return fmt.Errorf("%s: in: %w", p.name, errWrongWay)
}
func (p *relayPin) WaitForEdge(time.Duration) bool { return false }
func (p *relayPin) PWM(gpio.Duty, physic.Frequency) error {
	return fmt.Errorf("%s: pwm: %w", p.name, errWrongWay)
}

// inputPin is an input of the branch.
type inputPin struct {
	line
	level func() bool // mu is held

	// Installation.mu guards the fields below.
	edge  gpio.Edge
	last  bool
	edges chan struct{} // holds one edge without a waiter
	again chan struct{} // closed by the next In or Halt
}

var _ gpio.PinIn = (*inputPin)(nil)

func newInputPin(l line, level func() bool) *inputPin {
	return &inputPin{line: l, level: level, last: level(), edges: make(chan struct{}, 1), again: make(chan struct{})}
}

// In implements gpio.PinIn; it ends a WaitForEdge and discards earlier edges.
func (p *inputPin) In(_ gpio.Pull, edge gpio.Edge) error {
	p.installation.mu.Lock()
	defer p.installation.mu.Unlock()
	if err := p.fault(); err != nil {
		return err
	}
	p.restart(edge)
	return nil
}

// Fault returns why the input cannot be read, or nil; see package door.
func (p *inputPin) Fault() error {
	p.installation.mu.Lock()
	defer p.installation.mu.Unlock()
	return p.fault()
}

// fault is Fault for a caller that holds the lock.
func (p *inputPin) fault() error {
	if !p.installation.on(p.power) {
		return fmt.Errorf("%s: %w", p.name, errUnpowered)
	}
	if p.installation.lost(p.device) {
		return fmt.Errorf("%s: %w", p.name, syscall.ENODEV)
	}
	return nil
}

// Halt ends a WaitForEdge and edge detection.
func (p *inputPin) Halt() error {
	p.installation.mu.Lock()
	defer p.installation.mu.Unlock()
	p.restart(gpio.NoEdge)
	return nil
}

func (p *inputPin) restart(edge gpio.Edge) {
	close(p.again)
	p.again, p.edges = make(chan struct{}), make(chan struct{}, 1)
	p.edge, p.last = edge, p.level()
}

// Read implements gpio.PinIn.
func (p *inputPin) Read() gpio.Level {
	p.installation.mu.Lock()
	defer p.installation.mu.Unlock()
	return gpio.Level(p.installation.on(p.power) && !p.installation.lost(p.device) && p.level())
}

// WaitForEdge implements gpio.PinIn; a negative timeout waits indefinitely.
func (p *inputPin) WaitForEdge(timeout time.Duration) bool {
	p.installation.mu.Lock()
	edges, again := p.edges, p.again
	p.installation.mu.Unlock()

	var late <-chan time.Time
	if timeout >= 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-edges:
		return true
	default:
	}
	select {
	case <-edges:
		return true
	case <-again:
	case <-p.power.off:
	case <-late:
	}
	return false
}

// look detects an edge. mu is held.
func (p *inputPin) look() {
	now := p.level()
	if now == p.last {
		return
	}
	p.last = now
	if p.edge == gpio.BothEdges || p.edge == gpio.RisingEdge && now || p.edge == gpio.FallingEdge && !now {
		select {
		case p.edges <- struct{}{}:
		default:
		}
	}
}
