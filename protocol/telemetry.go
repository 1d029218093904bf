package protocol

import (
	"errors"
	"fmt"
	"time"
)

// Telemetry tells what happens at the branch without being asked: the readings of all sensors every TelemetryInterval,
// and events as they happen.
type Telemetry struct {
	At       time.Time `json:"at"` // the agent's clock, which may be wrong: the cloud keeps its own time of arrival too
	Readings []Reading `json:"readings,omitempty"`
	Events   []Event   `json:"events,omitempty"`
}

// EventKind is what happened at a door.
type EventKind string

const (
	EventEnergized    EventKind = "energized"     // the lock's line was driven, for RequestID
	EventReleased     EventKind = "released"      // the line is idle again after EnergizedMs; RequestID is the last that held it
	EventRelayError   EventKind = "relay-error"   // the line could not be driven, released or read back
	EventWasEnergized EventKind = "was-energized" // the agent found the line driven when it started, and released it
	EventDoorOpened   EventKind = "door-opened"   // the door leaf, where a contact is fitted
	EventDoorClosed   EventKind = "door-closed"
	EventExitPressed  EventKind = "exit-pressed"
)

// Event is one thing that happened at a door.
type Event struct {
	Kind        EventKind `json:"kind"`
	Device      string    `json:"device"`
	RequestID   string    `json:"requestId,omitempty"`
	EnergizedMs uint32    `json:"energizedMs,omitempty"`
	Detail      string    `json:"detail,omitempty"`
}

const maxEvents = 64

// Kind implements Message.
func (Telemetry) Kind() Kind { return KindTelemetry }

// Validate implements Message.
func (m Telemetry) Validate() error {
	if len(m.Events) > maxEvents {
		return fmt.Errorf("more than %d events", maxEvents)
	}
	for _, e := range m.Events {
		if err := e.validate(); err != nil {
			return err
		}
	}
	return checkReadings(m.Readings)
}

func (e Event) validate() error {
	var err error
	switch e.Kind {
	case EventEnergized, EventReleased, EventRelayError, EventWasEnergized, EventDoorOpened, EventDoorClosed, EventExitPressed:
	default:
		err = fmt.Errorf("event %q is unknown", e.Kind)
	}
	if e.RequestID != "" {
		err = errors.Join(err, checkRequestID(e.RequestID))
	}
	_, _, deviceErr := ParseDevice(e.Device)
	return errors.Join(err, deviceErr, checkText("detail", e.Detail, maxDetail, false))
}
