package agent_test

import (
	"bytes"
	"crypto/ed25519"
	"path/filepath"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// TestListOfBrokers sends an agent the addresses of a pool. When its broker is lost, it connects to the other one, also after a
// restart; and it takes no list that is older, unsigned, of other credentials, or less protected than its own address.
func TestListOfBrokers(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	other := brokertest.Start(t, "127.0.0.1:0")
	b.config.BrokerFile = filepath.Join(t.TempDir(), "brokers.json")
	own := protocol.Agent{Branch: "gangnam", Username: protocol.AgentID("gangnam")}
	list := func(epoch uint64, addresses ...string) protocol.BrokerList {
		return protocol.BrokerList{Epoch: epoch, Brokers: addresses}
	}
	until := func(at *brokertest.Broker, epoch uint64) {
		t.Helper()
		for {
			if s := brokertest.Await[protocol.Status](at); s.State == protocol.Online && *s.BrokerEpoch == epoch {
				return
			}
		}
	}

	b.start(t)
	until(b.broker, 0)
	stranger := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, ed25519.SeedSize))
	b.broker.SendTo(own, list(9, "mqtt://127.0.0.1:1").Sign(stranger))
	b.broker.SendTo(own, list(8, "mqtt://broker.example.com").Sign(brokertest.Key)) // exposed
	b.broker.SendTo(own, list(2, "mqtt://"+other.Addr).Sign(brokertest.Key))
	until(b.broker, 2)
	b.broker.SendTo(own, list(1, "mqtt://127.0.0.1:1").Sign(brokertest.Key)) // replayed

	b.broker.Stop()
	until(other, 2)
	b.stop()
	b.start(t)
	until(other, 2)
	other.SendTo(own, list(3).Sign(brokertest.Key))
	until(other, 3)
	b.stop()

	again := brokertest.Start(t, b.broker.Addr)
	b.start(t)
	until(again, 3)
	again.SendTo(own, list(4, "mqtt://"+other.Addr).Sign(brokertest.Key))
	until(again, 4)
	b.stop()
	b.config.Username = protocol.AgentID("gangnam") + "-new" // enrolled again
	b.start(t)
	until(again, 0)
}
