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

// transmitter serialises commands on an ir.Transmitter, because overlapping frames are unreadable.
type transmitter struct {
	ir.Transmitter
	turn chan struct{}
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

// Command executes a command in the background and answers once.
func (c *Climate) Command(m protocol.ClimateCommand, answer func(protocol.ClimateResult)) {
	c.running.Go(func() {
		c.commands.once(m.RequestID, answer, func() protocol.ClimateResult {
			result := protocol.ClimateResult{RequestID: m.RequestID, AirConditionerID: m.AirConditionerID}
			l, known := c.leaves[m.AirConditionerID]
			if !known {
				result.Outcome = protocol.ClimateUnknown
			} else if err := c.send(l); err != nil {
				result.Outcome, result.Detail = protocol.ClimateFailed, protocol.Clip(err.Error())
			} else {
				result.Outcome = protocol.ClimateSent
			}
			c.log.Info("command to an air conditioner ended", "request", m.RequestID, "id", m.AirConditionerID, "outcome", result.Outcome, "detail", result.Detail)
			return result
		})
	})
}

func (c *Climate) send(l leaf) (err error) {
	ctx, cancel := context.WithTimeout(c.ctx, commandTimeout)
	defer cancel()
	select {
	case l.transmitter.turn <- struct{}{}:
		defer func() { <-l.transmitter.turn }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for the transmitter: %w", ctx.Err())
	}
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
	c.running.Go(func() {
		c.readings.once(m.RequestID, answer, func() protocol.SensorsReadings {
			return protocol.SensorsReadings{RequestID: m.RequestID, Readings: c.Readings()}
		})
	})
}

// Close waits for the commands and readings in progress; cancelling the context of New ends them.
func (c *Climate) Close() { c.running.Wait() }
