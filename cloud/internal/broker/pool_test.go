package broker

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/protocol"
)

// twoMosquittos starts the brokers of a pool.
func twoMosquittos(t *testing.T) (a, b *mosquittoServer) {
	t.Helper()
	return mustMosquitto(t), mustMosquitto(t)
}

func mosquittoOutside(t *testing.T) (addr string) { return mustMosquitto(t).addr }

// mustMosquitto starts a Mosquitto, or skips the test if none is installed and none is required.
func mustMosquitto(t *testing.T) *mosquittoServer {
	t.Helper()
	m, ok := newMosquitto(t)
	if !ok {
		if os.Getenv("E2E_REQUIRED") == "1" {
			t.Fatal("mosquitto is not installed")
		}
		t.Skip("mosquitto is not installed")
	}
	return m
}

// agentAt connects an agent to a broker; connection is its number since the agent's start.
func agentAt(t *testing.T, branch, addr string, connection uint32) *agenttest.Agent {
	t.Helper()
	return agenttest.Connect(t, agenttest.Config{Branch: branch, Dial: agenttest.TCP(addr), Connection: connection})
}

var requests atomic.Int64

// mustClaim sends an ask to a branch from a replica, once, and waits for the claim, which any replica may receive.
func mustClaim(t *testing.T, branch string, from replica) {
	t.Helper()
	id := fmt.Sprintf("11111111-2222-4333-8444-%012d", requests.Add(1))
	if err := from.Send(to(branch), protocol.Ask{RequestID: id, Doors: []string{"front_1"}}); err != nil {
		t.Fatal(err)
	}
	for {
		h := receive(t, from.doors)
		if claim, ok := h.message.(protocol.Claim); ok && claim.RequestID == id {
			if h.branch != branch {
				t.Errorf("the claim is of %s, want %s", h.branch, branch)
			}
			return
		}
	}
}

// Agents are spread over two brokers. Each replica reaches each of them. When one broker is killed, the agents of the other
// one do not notice, and its own are reached at the other one.
func TestPoolOfBrokers(t *testing.T) {
	t.Parallel()
	a, b := twoMosquittos(t)
	both := newVerbs()
	first, second := joinWith(t, both, a.addr, b.addr), joinWith(t, both, a.addr, b.addr)
	replicas := []replica{first, second}
	for _, r := range replicas {
		wait(t, "both brokers", func() bool { s := r.Stats(); return s.Brokers[a.addr] && s.Brokers[b.addr] })
	}
	online := func(branch string) {
		t.Helper()
		for _, r := range replicas {
			wait(t, branch+" to be online", func() bool { return len(r.Online(branch)) == 1 })
		}
	}
	moving := agentAt(t, "gangnam", a.addr, 1)
	agentAt(t, "hongdae", b.addr, 1)
	online("gangnam")
	online("hongdae")
	for _, r := range replicas {
		mustClaim(t, "hongdae", r)
		mustClaim(t, "gangnam", r) // through the broker that is lost next, so no copy of an earlier message is in its queue
	}

	a.kill()
	<-moving.Gone()
	for _, r := range replicas {
		wait(t, "the loss of the broker", func() bool { return !r.Stats().Brokers[a.addr] })
		if !r.Connected() {
			t.Error("a replica is not connected although one broker is there")
		}
		mustClaim(t, "hongdae", r)
		if n := r.Stats().Unsent; n != 0 {
			t.Errorf("%d messages unsent, want 0", n)
		}
	}
	moved := agentAt(t, "gangnam", b.addr, 2)
	online("gangnam")
	for _, r := range replicas {
		mustClaim(t, "gangnam", r)
	}

	// The broker is back, and so is its agent. The will of the connection that the agent has left comes late.
	a.start()
	for _, r := range replicas {
		wait(t, "the broker to be back", func() bool { return r.Stats().Brokers[a.addr] })
	}
	agentAt(t, "gangnam", a.addr, 3)
	for _, r := range replicas {
		mustClaim(t, "gangnam", r)
		wait(t, "the new connection", func() bool {
			r.branches.mu.RLock()
			defer r.branches.mu.RUnlock()
			return r.branches.byCode["gangnam"].agents[to("gangnam").Agent].connection == 3
		})
	}
	moved.Close()
	for _, r := range replicas {
		wait(t, "the late will", func() bool {
			r.branches.mu.RLock()
			defer r.branches.mu.RUnlock()
			return r.branches.byCode["gangnam"].lost.connection == 2
		})
		if len(r.Online("gangnam")) != 1 {
			t.Error("offline after the will of the connection that the agent has left")
		}
	}
}
