package link

import (
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// Self is what the agent tells the cloud about itself.
type Self struct {
	BootID    string // new at each start
	Version   string
	StartedAt time.Time // wall clock
	Began     time.Time // the same by the monotonic clock
	Inventory protocol.Inventory
	SelfTest  []protocol.SelfTest
}

func (s Self) status(connection uint32) protocol.Status {
	return protocol.Status{
		State: protocol.Online, BootID: s.BootID, Connection: connection, AgentVersion: s.Version,
		StartedAt: s.StartedAt, Inventory: &s.Inventory, SelfTest: s.SelfTest,
	}
}

func (s Self) online(connection uint32) []byte { return mustEncode(s.status(connection)) }

func (s Self) offline(connection uint32) []byte {
	return mustEncode(protocol.Status{State: protocol.Offline, BootID: s.BootID, Connection: connection})
}

func (s Self) heartbeat(connection uint32) []byte {
	return mustEncode(protocol.Heartbeat{BootID: s.BootID, Connection: connection, UptimeMs: time.Since(s.Began).Milliseconds()})
}

// mustEncode is for what Run has seen to be valid.
func mustEncode(m protocol.Message) []byte {
	payload, err := protocol.Encode(m)
	if err != nil {
		panic(err)
	}
	return payload
}
