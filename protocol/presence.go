package protocol

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// The intervals of presence and telemetry.
const (
	KeepAlive         = 10 * time.Second // MQTT keep-alive of agents
	HeartbeatInterval = 5 * time.Second
	OfflineTimeout    = 12 * time.Second // silence after which an agent counts as offline
	StatusInterval    = time.Minute      // the retained status is repeated in case a late will has replaced it
	TelemetryInterval = time.Minute      // readings
)

// FirstHeartbeat returns when an agent sends its first heartbeat after it has connected: after a random part of HeartbeatInterval.
// All agents connect at once when the service is back. With one phase, every interval would begin with the heartbeats of all, and
// the presses of that moment would wait for them.
func FirstHeartbeat() time.Duration {
	return rand.N(HeartbeatInterval) //nolint:gosec // no secret
}

// FirstStatusAgain returns when an agent repeats its status for the first time after it has connected: after a random part of
// StatusInterval, at least half of it. All agents connect at once when the service is back, and would report at once every minute.
func FirstStatusAgain() time.Duration {
	return StatusInterval/2 + rand.N(StatusInterval/2) //nolint:gosec // no secret
}

const (
	maxUnits     = 64
	maxLocks     = 256
	maxSelfTests = 512
)

// State is the agent's connection state.
type State string

const (
	Online  State = "online"
	Offline State = "offline"
)

// Status is the retained description of an agent. The will is a Status with only State, BootID and Connection.
type Status struct {
	State        State      `json:"state"`
	BootID       string     `json:"bootId"`     // random, new at each start of the agent
	Connection   uint32     `json:"connection"` // counts the connections since that start, from 1
	AgentVersion string     `json:"agentVersion,omitempty"`
	StartedAt    time.Time  `json:"startedAt,omitzero"` // by the agent's clock, which may be wrong: a Pi has no battery
	Inventory    *Inventory `json:"inventory,omitempty"`
	SelfTest     []SelfTest `json:"selfTest,omitempty"`
	Contacts     []Contact  `json:"contacts,omitempty"` // the levels of the door contacts when the status was made; see Contact
	KeyEpoch     uint64     `json:"keyEpoch,omitempty"` // of the grant keys in use; see KeyList
	// BrokerEpoch is that of the list of brokers in use, 0 without one; see BrokerList. It is nil if the agent takes none.
	BrokerEpoch *uint64 `json:"brokerEpoch,omitempty"`
	// Update is the last update that the agent was asked for, unless it runs that version.
	Update *UpdateStatus `json:"update,omitempty"`
	// Settings is nil if the agent takes no settings from the cloud.
	Settings *SettingsStatus `json:"settings,omitempty"`
	// Diagnostics is nil if the agent opens no window of diagnostics.
	Diagnostics *DiagnosticsStatus `json:"diagnostics,omitempty"`
	// SealKey is the agent's X25519 public key (base64, standard, with padding), to which the key of the one-time codes is
	// sealed; see PassList. It is empty if the agent judges no passes.
	SealKey string         `json:"sealKey,omitempty"`
	Passes  *AppliedPasses `json:"passes,omitempty"` // nil if the agent judges no passes
}

// Contact is the level of a door contact. A status carries levels because events that are older than the agent's outbox,
// or that happened while it was off, are never sent. A contact that could not be read since the agent started is missing.
type Contact struct {
	Device string `json:"device"`
	Open   bool   `json:"open"`
	ForMs  uint64 `json:"forMs"` // monotonic time since the level changed, or since the agent started
}

// Inventory lists the devices wired to the agent.
type Inventory struct {
	Doors           []Door           `json:"doors"`
	AirConditioners []AirConditioner `json:"airConditioners"`
	Sensors         []string         `json:"sensors"`           // locations
	Keypads         []string         `json:"keypads,omitempty"` // devices of the doors with a keypad that the agent reads
}

// Door is a lock and its inputs.
type Door struct {
	Device  string   `json:"device"`
	Kind    DoorKind `json:"kind"`
	Sense   bool     `json:"sense"`   // the lock reports that it is released
	Contact bool     `json:"contact"` // a contact reports the door open or closed
	Exit    bool     `json:"exit"`    // the exit button is connected
}

// SelfTest is a result of checking the hardware when the agent started.
type SelfTest struct {
	Name   string `json:"name"` // "relay front_1"
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"` // "was energised at start"
}

// Heartbeat shows that the agent is running. It is published every HeartbeatInterval and is small, unlike the status. Its
// acknowledgement shows the agent that the connection is not half open.
type Heartbeat struct {
	BootID     string `json:"bootId"`
	Connection uint32 `json:"connection"`
	UptimeMs   int64  `json:"uptimeMs"`        // monotonic, since the start of the agent
	Nonce      string `json:"nonce,omitempty"` // asks for a Beacon with this nonce
}

// Kind implements Message.
func (Status) Kind() Kind { return KindStatus }

// Kind implements Message.
func (Heartbeat) Kind() Kind { return KindHeartbeat }

// Validate implements Message.
func (m Status) Validate() error {
	var err error
	switch m.State {
	case Online:
		if m.Inventory == nil {
			return errors.New("inventory is missing")
		}
		err = m.Inventory.validate()
	case Offline:
	default:
		err = fmt.Errorf("state %q is unknown", m.State)
	}
	if len(m.SelfTest) > maxSelfTests {
		err = errors.Join(err, fmt.Errorf("more than %d self-tests", maxSelfTests))
	}
	for _, t := range m.SelfTest {
		err = errors.Join(err, checkText("self-test name", t.Name, maxName, true), checkText("self-test detail", t.Detail, maxDetail, false))
	}
	if len(m.Contacts) > maxLocks {
		err = errors.Join(err, fmt.Errorf("more than %d contacts", maxLocks))
	}
	for _, c := range m.Contacts {
		_, _, deviceErr := ParseDevice(c.Device)
		err = errors.Join(err, deviceErr)
	}
	if m.Update != nil {
		err = errors.Join(err, m.Update.validate())
	}
	if m.Settings != nil {
		err = errors.Join(err, m.Settings.validate())
	}
	if m.Diagnostics != nil {
		err = errors.Join(err, m.Diagnostics.validate())
	}
	if m.SealKey != "" {
		err = errors.Join(err, checkBytes("sealKey", m.SealKey, sealKeySize))
	}
	if m.Passes != nil {
		err = errors.Join(err, m.Passes.validate())
	}
	return errors.Join(err, checkBootID(m.BootID), checkText("agentVersion", m.AgentVersion, maxName, false))
}

// Validate implements Message.
func (m Heartbeat) Validate() error {
	err := checkBootID(m.BootID)
	if m.Nonce != "" {
		err = errors.Join(err, checkNonce(m.Nonce))
	}
	return err
}

func checkBootID(id string) error { return checkText("bootId", id, 36, true) }

func (v Inventory) validate() error {
	if len(v.Doors) > maxLocks || len(v.AirConditioners) > maxUnits || len(v.Sensors) > MaxSensors || len(v.Keypads) > maxLocks {
		return errors.New("inventory is too long")
	}
	names := make(map[string]struct{})
	once := func(what, name string) error {
		if _, twice := names[what+name]; twice {
			return fmt.Errorf("%s %q is listed more than once", what, name)
		}
		names[what+name] = struct{}{}
		return nil
	}
	for _, d := range v.Doors {
		kind, _, err := ParseDevice(d.Device)
		if err != nil {
			return err
		}
		if kind != d.Kind {
			return fmt.Errorf("door %s has kind %q", d.Device, d.Kind)
		}
		if err := once("door", d.Device); err != nil {
			return err
		}
	}
	for _, u := range v.AirConditioners {
		err := errors.Join(checkText("air conditioner", u.Name, maxName, true), once("air conditioner", u.Name),
			checkOptions(u.Options, maxOptions))
		if err != nil {
			return err
		}
	}
	if err := v.checkAllOptions(); err != nil {
		return err
	}
	for _, location := range v.Sensors {
		if err := errors.Join(checkText("sensor", location, maxName, true), once("sensor", location)); err != nil {
			return err
		}
	}
	for _, device := range v.Keypads {
		if _, _, err := ParseDevice(device); err != nil {
			return fmt.Errorf("keypad: %w", err)
		}
		if err := once("keypad", device); err != nil {
			return err
		}
	}
	return nil
}
