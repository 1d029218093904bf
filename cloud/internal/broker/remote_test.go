package broker

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/hooks/auth"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/firmware-sim/testkit/mqttserver"
	"github.com/yeolda/yeolda/protocol"
)

// outside starts an external broker that allows every client everything.
func outside(t *testing.T) (addr string) {
	t.Helper()
	return mqttserver.Start(t, new(auth.AllowHook))
}

// replica is a replica of the cloud at external brokers.
type replica struct {
	*Pool
	*verbs
}

func join(t *testing.T, addrs ...string) replica {
	t.Helper()
	return joinWith(t, newVerbs(), addrs...)
}

// joinWith starts a replica whose messages go to given verbs.
func joinWith(t *testing.T, v *verbs, addrs ...string) replica {
	t.Helper()
	return joinAs(t, replica{verbs: v}, nil, addrs...)
}

func joinAs(t *testing.T, r replica, passes Passes, addrs ...string) replica {
	t.Helper()
	var brokers []*url.URL
	for _, addr := range addrs {
		brokers = append(brokers, &url.URL{Scheme: "mqtt", Host: addr, User: url.UserPassword("cloud", "secret")})
	}
	r.Pool = NewPool(PoolConfig{Brokers: brokers,
		Doors: r.verbs, Devices: r.verbs, Climate: r.verbs, Passes: passes, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestReplicasShareABrokerOutside(t *testing.T) {
	t.Parallel()
	addr := outside(t)
	first, second := join(t, addr), join(t, addr)
	for _, r := range []replica{first, second} { // a replica that subscribes later stores the retained status
		wait(t, "the connection", r.Connected)
	}
	a := agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(addr)})
	for _, r := range []replica{first, second} {
		wait(t, "the branch to be online at both", func() bool { return len(r.Online("gangnam")) > 0 })
	}
	// One of them stores the status and announces the agent.
	one, other := first, second
	select {
	case h := <-first.devices:
		mustBeStatus(t, h)
	case h := <-second.devices:
		one, other = second, first
		mustBeStatus(t, h)
	case <-time.After(time.Minute):
		t.Fatal("no replica stored the status")
	}
	if h := receive(t, one.comings); h.branch != "gangnam" || !h.online {
		t.Errorf("presence %+v", h)
	}
	// Each claim is received by exactly one replica, whichever sent the ask.
	const asks = 40
	for n := range asks {
		r := []replica{first, second}[n%2]
		id := fmt.Sprintf("11111111-2222-4333-8444-%012d", n)
		if err := r.Send(to("gangnam"), protocol.Ask{RequestID: id, Doors: []string{"front_1"}}); err != nil {
			t.Fatal(err)
		}
	}
	got := make(map[string]int)
	for range asks {
		select {
		case h := <-first.doors:
			got[h.message.(protocol.Claim).RequestID]++
		case h := <-second.doors:
			got[h.message.(protocol.Claim).RequestID]++
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d claims", len(got), asks)
		}
	}
	if len(got) != asks {
		t.Errorf("%d of %d requests were claimed", len(got), asks)
	}
	// Every replica receives an answer, because only the one that sent the request recognises it.
	const id = "99999999-2222-4333-8444-555555555555"
	if err := first.Send(to("gangnam"), protocol.SensorsRead{RequestID: id}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []replica{first, second} {
		h := receive(t, r.devices)
		if h.message.(protocol.SensorsReadings).RequestID != id {
			t.Errorf("got %+v", h)
		}
	}
	if n := len(other.comings); n != 0 {
		t.Errorf("the replica without the status announced %d changes of presence", n)
	}
	// Every replica announces an end, which no later message would repeat.
	a.Close()
	for _, r := range []replica{first, second} {
		if h := receive(t, r.comings); h.branch != "gangnam" || h.online {
			t.Errorf("presence %+v, want offline", h)
		}
	}
}

func mustBeStatus(t *testing.T, h heard) {
	t.Helper()
	if h.message.Kind() != protocol.KindStatus {
		t.Errorf("got %+v, want a status", h)
	}
}

// passVerbs counts the messages that a replica handles for passes.
type passVerbs struct{ announced, beats atomic.Int64 }

func (v *passVerbs) Beat(context.Context, protocol.Peer, protocol.Heartbeat) error {
	v.beats.Add(1)
	return nil
}

func (v *passVerbs) Announced(announced []device.Announcement) {
	for _, a := range announced {
		if a.Status != nil {
			v.announced.Add(1)
		}
	}
}

func (v *passVerbs) Applied(context.Context, protocol.Peer, protocol.PassApplied) error { return nil }
func (v *passVerbs) Entry(context.Context, protocol.Peer, protocol.PassEntry) error     { return nil }

// An agent repeats its status and asks for the time. One replica stores each status and answers each heartbeat; all know the
// agent.
func TestOneReplicaHandlesEachStatusAndHeartbeat(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) string{"mochi": outside, "Mosquitto": mosquittoOutside} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := start(t)
			var passes [2]passVerbs
			first, second := joinAs(t, replica{verbs: newVerbs()}, &passes[0], addr), joinAs(t, replica{verbs: newVerbs()}, &passes[1], addr)
			for _, r := range []replica{first, second} {
				wait(t, "the connection", r.Connected)
			}
			a := agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(addr), BootID: "boot", Connection: 1})
			const repeated = 20
			status := protocol.Status{State: protocol.Online, BootID: "boot", Connection: 1, AgentVersion: "test", StartedAt: time.Now(), Inventory: new(protocol.Inventory)}
			for range repeated {
				for _, m := range []protocol.Message{protocol.Heartbeat{BootID: "boot", Connection: 1, Nonce: protocol.NewNonce()}, status} {
					if err := a.Publish(m); err != nil {
						t.Fatal(err)
					}
				}
			}
			const statuses = 1 + repeated // with the one after connecting
			stored := func() int { return len(first.devices) + len(second.devices) }
			beats := func() int64 { return passes[0].beats.Load() + passes[1].beats.Load() }
			wait(t, "each status at both replicas", func() bool { return min(passes[0].announced.Load(), passes[1].announced.Load()) >= statuses })
			wait(t, "each status to be stored", func() bool { return stored() >= statuses })
			wait(t, "each heartbeat", func() bool { return beats() >= repeated })
			// A broker may acknowledge a subscription before it looks for the retained status, so each replica may store one twice.
			if n := stored(); n > statuses+len(passes) {
				t.Errorf("%d statuses stored, want %d", n, statuses)
			}
			if n := beats(); n != repeated {
				t.Errorf("%d heartbeats answered, want %d", n, repeated)
			}
		})
	}
}

func TestReplicaThatComesLaterKnowsWhoIsThere(t *testing.T) {
	t.Parallel()
	addr := outside(t)
	agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(addr)})
	r := join(t, addr)
	wait(t, "the retained status", func() bool { return len(r.Online("gangnam")) > 0 })
	mustBeStatus(t, receive(t, r.devices))
}

func TestSendDoesNotWaitForABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	r := NewPool(PoolConfig{Brokers: []*url.URL{{Scheme: "mqtt", Host: "127.0.0.1:1"}}, Doors: newVerbs(), Devices: newVerbs(), Climate: newVerbs(),
		Log: slog.New(slog.DiscardHandler)})
	for range 2 * remoteQueue {
		if err := r.Send(to("gangnam"), protocol.Ask{RequestID: "11111111-2222-4333-8444-555555555555", Doors: []string{"front_1"}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Stats().Unsent; n != remoteQueue {
		t.Errorf("%d unsent, want %d", n, remoteQueue)
	}
}

func TestBranchesFromMessages(t *testing.T) {
	t.Parallel()
	var clock fakeClock
	clock.set(time.Now())
	b := newBranches(clock.now)
	gangnam := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}
	online := func() bool { return len(b.online("gangnam")) > 0 }
	first, second := connID{"boot", 1}, connID{"boot", 2}
	if online() {
		t.Error("online before any message")
	}
	b.hear(gangnam, first, nil)
	if !online() {
		t.Error("offline after a status")
	}
	b.hear(gangnam, second, nil)
	b.lose("gangnam", first) // the late will of the earlier connection
	if !online() {
		t.Error("offline after a late will")
	}
	clock.set(clock.now().Add(protocol.OfflineTimeout - time.Millisecond))
	if !online() || b.count() != 1 {
		t.Error("offline too early")
	}
	clock.set(clock.now().Add(time.Millisecond))
	if online() || b.count() != 0 {
		t.Error("online after silence")
	}
	b.hear(gangnam, second, nil)
	b.lose("gangnam", second)
	if online() {
		t.Error("online after its own will")
	}
	// Will and status are on different topics, so a status of the connection that ended may arrive after its will.
	b.hear(gangnam, second, nil)
	if online() {
		t.Error("online by a status of the connection that ended")
	}
	// Another broker still has a message or the retained status of an earlier connection.
	b.hear(gangnam, connID{"boot", 3}, nil)
	if b.hear(gangnam, second, nil); !online() || !b.outdated(gangnam, second) {
		t.Error("a message of an earlier connection counts")
	}
	if b.outdated(gangnam, connID{"boot", 3}) || b.outdated(gangnam, connID{"boot", 4}) || !b.outdated(gangnam, connID{"earlier", 9}) {
		t.Error("a status is outdated if it is of another start, or of an earlier connection")
	}
	standby := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam-2"}
	b.hear(gangnam, connID{"boot", 3}, nil)
	b.hear(standby, connID{"other", 1}, nil)
	if n := len(b.online("gangnam")); n != 2 {
		t.Errorf("%d agents online, want 2", n)
	}
	b.lose("gangnam", connID{"other", 1})
	if got := b.online("gangnam"); !slices.Equal(got, []protocol.Agent{gangnam}) {
		t.Errorf("online: %v, want only %v", got, gangnam)
	}
}

// Two machines with one credential connect alternately. A restart has a new boot id, so an earlier boot id returns only if
// another machine uses the credential.
func TestAlternatingBootIDsAreATakeover(t *testing.T) {
	t.Parallel()
	b := newBranches(time.Now)
	agent := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}
	for _, step := range []struct {
		boot string
		want bool
	}{{"a", false}, {"a", false}, {"b", false}, {"b", false}, {"a", true}, {"a", false}, {"c", false}, {"d", false}, {"c", true}} {
		if got := b.hear(agent, connID{step.boot, 1}, nil); got != step.want {
			t.Errorf("boot %s: taken over %t, want %t", step.boot, got, step.want)
		}
	}
}
