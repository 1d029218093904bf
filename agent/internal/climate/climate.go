// Package climate sends infrared codes and reads the sensors of a branch.
//
// The cloud repeats a command until it receives an answer, so each request id is executed once: a repetition is ignored
// while the command is in progress and receives the cached answer afterwards.
package climate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/agent/sensor"
	"github.com/yeolda/yeolda/protocol"
)

// commandTimeout limits a command, including the wait for the transmitter. After it the cloud no longer waits.
const commandTimeout = protocol.CommandTTL

// Unit is an air conditioner; see agent.AirConditioner.
type Unit struct {
	Name        string
	Codes       *ir.CodeSet
	Transmitter ir.Transmitter
}

// Sensor is a sensor; see agent.Sensor.
type Sensor struct {
	Location string
	Reader   sensor.Reader
}

// Climate controls the air conditioners and reads the sensors of a branch.
type Climate struct {
	ctx     context.Context // cancels commands and readings in progress
	log     *slog.Logger
	leaves  map[string]leaf
	sensors []*probe

	commands answers[protocol.ClimateResult]
	readings answers[protocol.SensorsReadings]
	running  sync.WaitGroup
}

// leaf is the target of an airconditioner_id.
type leaf struct {
	code        ir.Code
	transmitter *transmitter
}

// transmitter serialises commands on an ir.Transmitter, because overlapping frames are unreadable, in the order in which they were received.
type transmitter struct {
	ir.Transmitter
	turn chan struct{}
	last <-chan struct{} // closed when the command received last has its turn or has given up; nil: none was received
}

// place is the place of a command in the order of a transmitter.
type place struct {
	before <-chan struct{}
	own    chan struct{}
}

// enqueue is called in the order of the commands.
func (t *transmitter) enqueue() place {
	p := place{t.last, make(chan struct{})}
	t.last = p.own
	return p
}

// await waits for the turn of a command.
func (t *transmitter) await(ctx context.Context, p place) error {
	defer close(p.own)
	if p.before != nil {
		select {
		case <-p.before:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// New indexes the codes of the units. When ctx is done, commands in progress are cancelled.
func New(ctx context.Context, branch string, units []Unit, sensors []Sensor, log *slog.Logger) *Climate {
	c := &Climate{ctx: ctx, log: log, leaves: make(map[string]leaf)}
	transmitters := make(map[ir.Transmitter]*transmitter)
	for _, u := range units {
		t := transmitters[u.Transmitter]
		if t == nil {
			t = &transmitter{Transmitter: u.Transmitter, turn: make(chan struct{}, 1)}
			transmitters[u.Transmitter] = t
		}
		for path, code := range u.Codes.Leaves() {
			c.leaves[protocol.LeafID(branch, u.Name, path...)] = leaf{code: code, transmitter: t}
		}
	}
	for _, s := range sensors {
		p := &probe{sensor: s, idle: make(chan struct{}, 1)}
		p.fault.Log, p.fault.Name = log.With("location", s.Location), "sensor"
		c.sensors = append(c.sensors, p)
	}
	return c
}

// Command executes a command in the background and answers once. Calls are sequential.
func (c *Climate) Command(m protocol.ClimateCommand, answer func(protocol.ClimateResult)) {
	e := c.commands.begin(m.RequestID, answer)
	if e == nil {
		return
	}
	l, known := c.leaves[m.AirConditionerID]
	var turn place
	if known {
		turn = l.transmitter.enqueue()
	}
	c.running.Go(func() {
		result := protocol.ClimateResult{RequestID: m.RequestID, AirConditionerID: m.AirConditionerID}
		if !known {
			result.Outcome = protocol.ClimateUnknown
		} else if err := c.send(l, turn); err != nil {
			result.Outcome, result.Detail = protocol.ClimateFailed, protocol.Clip(err.Error())
		} else {
			result.Outcome = protocol.ClimateSent
		}
		c.log.Info("command to an air conditioner ended", "request", m.RequestID, "id", m.AirConditionerID, "outcome", result.Outcome, "detail", result.Detail)
		c.commands.end(e, result, answer)
	})
}

func (c *Climate) send(l leaf, turn place) (err error) {
	ctx, cancel := context.WithTimeout(c.ctx, commandTimeout)
	defer cancel()
	if err := l.transmitter.await(ctx, turn); err != nil {
		return fmt.Errorf("waiting for the transmitter: %w", err)
	}
	defer func() { <-l.transmitter.turn }()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("transmitter panicked: %v", p)
		}
	}()
	for i, signal := range l.code {
		if i > 0 {
			select {
			case <-time.After(ir.SignalPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := l.transmitter.Send(ctx, signal.CarrierHz, signal.Durations); err != nil {
			return fmt.Errorf("transmit: %w", err)
		}
	}
	return nil
}

// Read reads the sensors in the background and answers once.
func (c *Climate) Read(m protocol.SensorsRead, answer func(protocol.SensorsReadings)) {
	e := c.readings.begin(m.RequestID, answer)
	if e == nil {
		return
	}
	c.running.Go(func() {
		c.readings.end(e, protocol.SensorsReadings{RequestID: m.RequestID, Readings: c.Readings()}, answer)
	})
}

// Close waits for the commands and readings in progress; cancelling the context of New ends them.
func (c *Climate) Close() { c.running.Wait() }
