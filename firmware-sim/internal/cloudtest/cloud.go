// Package cloudtest provides the cloud for tests: a real MQTT broker on a TCP socket, and the part of the cloud that an
// agent needs to open doors.
package cloudtest

import (
	"crypto/ed25519"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/firmware-sim/testkit/mqttserver"
	"github.com/yeolda/yeolda/protocol"
)

// Cloud grants every claim of a request that it has asked for.
type Cloud struct {
	// URL is the broker's address.
	URL *url.URL
	// GrantKey is the key that agents trust.
	GrantKey ed25519.PublicKey

	t      testing.TB
	server *mqtt.Server
	self   *mqtt.Client
	key    ed25519.PrivateKey
	gate   gate

	mu       sync.Mutex
	asked    map[string]protocol.Ask
	received []Message
	news     chan struct{} // closed at the next message
}

// Message is a message from an agent.
type Message struct {
	At      time.Time
	Branch  string
	Kind    protocol.Kind
	Payload []byte
}

// New starts a cloud that ends with the test.
func New(t testing.TB) *Cloud {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	caps := mqtt.NewDefaultServerCapabilities()
	caps.MinimumProtocolVersion = 5
	server := mqtt.New(&mqtt.Options{
		InlineClient: true, Capabilities: caps, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	c := &Cloud{
		URL: &url.URL{Scheme: "mqtt", Host: listener.Addr().String()}, GrantKey: public, key: private,
		t: t, server: server, self: server.NewClient(nil, "local", "cloud", true),
		asked: make(map[string]protocol.Ask), news: make(chan struct{}),
	}
	c.self.Properties.ProtocolVersion = 5
	if err := server.AddHook(&c.gate, nil); err != nil {
		t.Fatal(err)
	}
	if err := server.AddListener(mqttserver.Listener(server, listener)); err != nil {
		t.Fatal(err)
	}
	id := 0
	for _, filter := range protocol.CloudFilters() {
		id++
		if err := server.Subscribe(filter, id, c.receive); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Connections() // see gate
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// gate accepts every client. mochi adds to a wait group in each connection and waits for it in Close without ordering
// the two for the race detector; the counter does.
type gate struct {
	auth.AllowHook
	connections atomic.Int64
}

// OnConnectAuthenticate implements mqtt.Hook.
func (g *gate) OnConnectAuthenticate(*mqtt.Client, packets.Packet) bool {
	g.connections.Add(1)
	return true
}

// Connections returns the number of logins so far.
func (c *Cloud) Connections() int { return int(c.gate.connections.Load()) }

// receive runs in the broker's read loop of an agent.
func (c *Cloud) receive(_ *mqtt.Client, _ packets.Subscription, p packets.Packet) {
	branch, kind, ok := protocol.ParseTopic(p.TopicName)
	if !ok {
		return
	}
	c.mu.Lock()
	c.received = append(c.received, Message{time.Now(), branch, kind, p.Payload})
	close(c.news)
	c.news = make(chan struct{})
	c.mu.Unlock()
	if kind == protocol.KindHeartbeat {
		c.sendBeacon(branch, p.Payload)
	}
	if kind != protocol.KindDoorClaim {
		return
	}
	claim, err := protocol.Decode[protocol.Claim](p.Payload)
	if err != nil {
		c.t.Errorf("claim: %v", err)
		return
	}
	c.mu.Lock()
	ask, known := c.asked[claim.RequestID]
	c.mu.Unlock()
	if known {
		c.Send(branch, protocol.Grant{
			Branch: branch, RequestID: claim.RequestID, Nonce: claim.Nonce, Doors: ask.Doors, PulseMs: 600,
		}.Sign(c.key))
	}
}

// sendBeacon answers a heartbeat that asks for the time.
func (c *Cloud) sendBeacon(branch string, payload []byte) {
	m, err := protocol.Decode[protocol.Heartbeat](payload)
	if err == nil && m.Nonce != "" {
		c.Send(branch, protocol.Beacon{Branch: branch, BootID: m.BootID, Nonce: m.Nonce,
			Time: time.Now().UTC().Truncate(time.Millisecond)}.Sign(c.key, protocol.AgentID(branch)))
	}
}

// SendPasses signs and sends a list of passes.
func (c *Cloud) SendPasses(l protocol.PassList) {
	c.Send(l.Branch, l.Sign(c.key, protocol.AgentID(l.Branch)))
}

// SendGrant signs and sends a grant that no agent may have claimed.
func (c *Cloud) SendGrant(branch string, g protocol.Grant) {
	g.Branch = branch
	c.Send(branch, g.Sign(c.key))
}

// Send publishes a message to a branch as the cloud does: QoS 0.
func (c *Cloud) Send(branch string, m protocol.Message) {
	payload, err := protocol.Encode(m)
	if err != nil {
		c.t.Error(err)
		return
	}
	topic := protocol.Topic(branch, m.Kind())
	if m.Kind().OwnTopic() {
		topic = protocol.Agent{Branch: branch, Username: protocol.AgentID(branch)}.Topic(m.Kind())
	}
	err = c.server.InjectPacket(c.self, packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Publish}, TopicName: topic, Payload: payload,
	})
	if err != nil {
		c.t.Error(err)
	}
}

// Unlock sends one ask to a branch and returns the request.
func (c *Cloud) Unlock(branch string, doors ...string) (requestID string) {
	ask := protocol.Ask{RequestID: uuid.NewString(), Doors: doors}
	c.mu.Lock()
	c.asked[ask.RequestID] = ask
	c.mu.Unlock()
	c.Send(branch, ask)
	return ask.RequestID
}

// Wait waits for a matching message and returns the first.
func (c *Cloud) Wait(what string, within time.Duration, fits func(Message) bool) Message {
	c.t.Helper()
	late := time.After(within)
	for seen := 0; ; {
		c.mu.Lock()
		received, news := c.received, c.news
		c.mu.Unlock()
		for ; seen < len(received); seen++ {
			if fits(received[seen]) {
				return received[seen]
			}
		}
		select {
		case <-news:
		case <-late:
			c.t.Fatalf("no %s within %v", what, within)
		}
	}
}

// Result waits for the outcome of a request at a door.
func (c *Cloud) Result(requestID, device string, within time.Duration) protocol.Result {
	c.t.Helper()
	var result protocol.Result
	c.Wait("result of "+device, within, func(m Message) bool {
		if m.Kind != protocol.KindDoorResult {
			return false
		}
		r, err := protocol.Decode[protocol.Result](m.Payload)
		if err != nil {
			c.t.Errorf("result: %v", err)
		}
		result = r
		return r.RequestID == requestID && r.Device == device
	})
	return result
}

// Count returns the number of matching messages so far.
func (c *Cloud) Count(fits func(Message) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, m := range c.received {
		if fits(m) {
			n++
		}
	}
	return n
}

// Status waits for a status of a branch after a time.
func (c *Cloud) Status(branch string, state protocol.State, after time.Time, within time.Duration) protocol.Status {
	c.t.Helper()
	var status protocol.Status
	c.Wait("status "+string(state)+" of "+branch, within, func(m Message) bool {
		if m.Kind != protocol.KindStatus || m.Branch != branch || m.At.Before(after) {
			return false
		}
		s, err := protocol.Decode[protocol.Status](m.Payload)
		if err != nil {
			c.t.Errorf("status: %v", err)
		}
		status = s
		return s.State == state
	})
	return status
}

// Event waits for an event at a door of a branch.
func (c *Cloud) Event(branch string, kind protocol.EventKind, within time.Duration) protocol.Event {
	c.t.Helper()
	var found protocol.Event
	c.Wait("event "+string(kind)+" of "+branch, within, func(m Message) bool {
		if m.Kind != protocol.KindTelemetry || m.Branch != branch {
			return false
		}
		t, err := protocol.Decode[protocol.Telemetry](m.Payload)
		if err != nil {
			c.t.Errorf("telemetry: %v", err)
		}
		i := slices.IndexFunc(t.Events, func(e protocol.Event) bool { return e.Kind == kind })
		if i >= 0 {
			found = t.Events[i]
		}
		return i >= 0
	})
	return found
}
