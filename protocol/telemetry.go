package protocol

import (
	"errors"
	"fmt"
	"time"
)

// Telemetry carries the readings of all sensors every TelemetryInterval, and door events as they happen.
type Telemetry struct {
	At time.Time `json:"at"` // by the agent's clock, which may be wrong
	// AgeMs is the monotonic time for which the message has waited for a connection, from a second on. The cloud subtracts it from
	// the time of arrival, so that events of an outage have their own time.
	AgeMs    uint32    `json:"ageMs,omitempty"`
	Readings []Reading `json:"readings,omitempty"`
	Events   []Event   `json:"events,omitempty"`
}

// EventKind is a kind of door event. Receivers ignore kinds they do not know, so that either side may be updated first.
type EventKind string

const (
	EventEnergized    EventKind = "energized"     // the lock's line was driven, for RequestID
	EventReleased     EventKind = "released"      // the line is idle again after EnergizedMs; RequestID is the last that held it
	EventRelayError   EventKind = "relay-error"   // the line could not be driven, released or read back
	EventWasEnergized EventKind = "was-energized" // the agent found the line driven when it started, and released it
	EventDoorOpened   EventKind = "door-opened"   // by the door's contact, where one is fitted
	EventDoorClosed   EventKind = "door-closed"
	EventExitPressed  EventKind = "exit-pressed"
	// EventLockReleased: the sense line reports the lock released while the relay is idle, so a keypad or a key opened it.
	EventLockReleased EventKind = "lock-released"
)

// Event is a door event.
type Event struct {
	Kind        EventKind `json:"kind"`
	Device      string    `json:"device"`
	RequestID   string    `json:"requestId,omitempty"`
	EnergizedMs uint32    `json:"energizedMs,omitempty"`
	Detail      string    `json:"detail,omitempty"`
	Source      Source    `json:"source,omitempty"` // the line was driven for an attempt at the keypad; empty: for RequestID
}

const maxEvents = 64

// maxAge bounds AgeMs: events wait for ten minutes at most.
const maxAge = time.Hour

// Age is AgeMs as a duration.
func (m Telemetry) Age() time.Duration { return time.Duration(m.AgeMs) * time.Millisecond }

// Aged returns the message with the time for which it has waited.
func (m Telemetry) Aged(age time.Duration) Telemetry {
	if m.AgeMs = 0; age >= time.Second {
		m.AgeMs = uint32(min(age, maxAge).Milliseconds())
	}
	return m
}

// Kind implements Message.
func (Telemetry) Kind() Kind { return KindTelemetry }

// Validate implements Message.
func (m Telemetry) Validate() error {
	if len(m.Events) > maxEvents {
		return fmt.Errorf("more than %d events", maxEvents)
	}
	if m.Age() > maxAge {
		return fmt.Errorf("ageMs is more than %d", maxAge.Milliseconds())
	}
	for _, e := range m.Events {
		if err := e.validate(); err != nil {
			return err
		}
	}
	return checkReadings(m.Readings)
}

// Known reports whether this release knows the kind.
func (k EventKind) Known() bool {
	switch k {
	case EventEnergized, EventReleased, EventRelayError, EventWasEnergized, EventDoorOpened, EventDoorClosed, EventExitPressed,
		EventLockReleased:
		return true
	}
	return false
}

func (e Event) validate() error {
	err := checkText("event kind", string(e.Kind), maxName, true)
	if e.RequestID != "" {
		err = errors.Join(err, checkRequestID(e.RequestID))
	}
	_, _, deviceErr := ParseDevice(e.Device)
	return errors.Join(err, deviceErr, checkText("detail", e.Detail, maxDetail, false))
}
