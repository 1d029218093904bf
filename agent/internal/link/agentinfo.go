package link

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// AgentInfo describes the agent to the cloud.
type AgentInfo struct {
	BootID    string // new at each start
	Version   string
	StartedAt time.Time // wall clock
	Began     time.Time // monotonic clock
	Inventory protocol.Inventory
	Current   func() Current // nil: nothing changes
	Nonce     func() string  // for a heartbeat that is about to be sent; nil: the agent needs no beacons
}

// Current holds the parts of the status that change while the agent runs.
type Current struct {
	SelfTest []protocol.SelfTest
	Contacts []protocol.Contact
	KeyEpoch uint64
	// BrokerEpoch is nil if the agent takes no list of brokers.
	BrokerEpoch *uint64
	SealKey     string
	Passes      *protocol.AppliedPasses
	Update      *protocol.UpdateStatus
	Settings    *protocol.SettingsStatus

	Diagnostics *protocol.DiagnosticsStatus
}

func (a AgentInfo) status(connection uint32) protocol.Status {
	s := protocol.Status{
		State: protocol.Online, BootID: a.BootID, Connection: connection, AgentVersion: a.Version,
		StartedAt: a.StartedAt, Inventory: &a.Inventory,
	}
	if a.Current != nil {
		c := a.Current()
		s.SelfTest, s.Contacts, s.KeyEpoch, s.SealKey, s.Passes, s.Update, s.Settings, s.BrokerEpoch = c.SelfTest, c.Contacts, c.KeyEpoch, c.SealKey, c.Passes, c.Update, c.Settings, c.BrokerEpoch
		s.Diagnostics = c.Diagnostics
	}
	return s
}

// online encodes the status. A self-test that cannot be encoded must not keep the agent offline, so the status then goes
// without self-tests.
func (a AgentInfo) online(connection uint32) []byte {
	s := a.status(connection)
	payload, err := encodeStatus(s)
	if err != nil {
		s.SelfTest = nil
		payload, err = encodeStatus(s)
	}
	if err != nil {
		payload, err = protocol.EncodeStatus(a.constant(connection))
	}
	if err != nil {
		panic(err) // Run has validated it
	}
	return payload
}

// constant returns the status without the parts that change.
func (a AgentInfo) constant(connection uint32) protocol.Status {
	a.Current = nil
	return a.status(connection)
}

// encodeStatus encodes a status. If it is too large, it goes without the last air conditioners: a door that fails must be reported.
func encodeStatus(s protocol.Status) ([]byte, error) {
	payload, err := protocol.EncodeStatus(s)
	for n := len(s.Inventory.AirConditioners) - 1; n >= 0 && errors.Is(err, protocol.ErrTooLarge); n-- {
		payload, err = protocol.EncodeStatus(withoutUnits(s, n))
	}
	return payload, err
}

// withoutUnits returns a status with the first n air conditioners, and a self-test that names the others.
func withoutUnits(s protocol.Status, n int) protocol.Status {
	inventory := *s.Inventory
	detail := "the status is too large: without the air conditioners"
	for _, u := range inventory.AirConditioners[n:] {
		detail += " " + strconv.Quote(u.Name)
	}
	inventory.AirConditioners = inventory.AirConditioners[:n]
	s.Inventory = &inventory
	s.SelfTest = append(slices.Clone(s.SelfTest), protocol.SelfTest{Name: "status", Detail: protocol.Clip(detail)})
	return s
}

func (a AgentInfo) offline(connection uint32) []byte {
	return mustEncode(protocol.Status{State: protocol.Offline, BootID: a.BootID, Connection: connection})
}

func (a AgentInfo) heartbeat(connection uint32) []byte {
	m := protocol.Heartbeat{BootID: a.BootID, Connection: connection, UptimeMs: time.Since(a.Began).Milliseconds()}
	if a.Nonce != nil {
		m.Nonce = a.Nonce()
	}
	return mustEncode(m)
}

// mustEncode encodes messages that Run has validated.
func mustEncode(m protocol.Message) []byte {
	payload, err := protocol.Encode(m)
	if err != nil {
		panic(err)
	}
	return payload
}
