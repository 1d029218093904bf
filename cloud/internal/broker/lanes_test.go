package broker

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/firmware-sim/testkit/mqttserver"
	"github.com/yeolda/yeolda/protocol"
)

// laneHook records over which connections the messages to each branch come. It rejects all but the first connection of a replica
// if asked to.
type laneHook struct {
	mqtt.HookBase
	firstOnly bool

	mu       sync.Mutex
	clients  map[string]map[string]int // by branch and client id
	messages int
}

func (*laneHook) Provides(b byte) bool {
	return b == mqtt.OnConnectAuthenticate || b == mqtt.OnACLCheck || b == mqtt.OnPublished
}

func (h *laneHook) OnConnectAuthenticate(_ *mqtt.Client, pk packets.Packet) bool {
	return !h.firstOnly || strings.HasSuffix(pk.Connect.ClientIdentifier, "-0")
}

func (*laneHook) OnACLCheck(*mqtt.Client, string, bool) bool { return true }

func (h *laneHook) OnPublished(client *mqtt.Client, pk packets.Packet) {
	to, _, ok := protocol.ParseAgentTopic(pk.TopicName)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients == nil {
		h.clients = make(map[string]map[string]int)
	}
	if h.clients[to.Branch] == nil {
		h.clients[to.Branch] = make(map[string]int)
	}
	h.clients[to.Branch][client.ID]++
	h.messages++
}

// Messages to the branches of an external broker go over several connections, those of one branch over the same. A broker that
// allows only one receives them over that.
func TestMessagesGoOverSeveralConnections(t *testing.T) {
	t.Parallel()
	const branches, each = 40, 3
	for _, firstOnly := range []bool{false, true} {
		hook := &laneHook{firstOnly: firstOnly}
		r := join(t, mqttserver.Start(t, hook))
		lanes := r.all()[0].lanes
		wait(t, "the connections", func() bool {
			for n, l := range lanes {
				if l.connected.Load() == (firstOnly && n > 0) {
					return false
				}
			}
			return r.Connected()
		})
		for n := range branches * each {
			branch := fmt.Sprintf("branch-%d", n%branches)
			if err := r.Send(to(branch), protocol.Ask{RequestID: "11111111-2222-4333-8444-555555555555", Doors: []string{"front_1"}}); err != nil {
				t.Fatal(err)
			}
		}
		wait(t, "the messages", func() bool {
			hook.mu.Lock()
			defer hook.mu.Unlock()
			return hook.messages == branches*each
		})
		used := make(map[string]bool)
		for branch, clients := range hook.clients {
			if len(clients) != 1 {
				t.Errorf("messages to %s came over %v, want one connection", branch, clients)
			}
			for client := range clients {
				used[client] = true
			}
		}
		if got := len(used) > 1; got == firstOnly {
			t.Errorf("first connection only %t: messages came over %d connections", firstOnly, len(used))
		}
	}
}
