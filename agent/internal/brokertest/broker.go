// Package brokertest runs a real broker on real sockets, configured and access-controlled like the cloud's. The test plays
// the cloud's part of the protocol.
package brokertest

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

// Password is the password of every agent.
const Password = "open sesame"

// Key is the private key that signs grants.
var Key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))

// PublicKeys returns the public keys that verify grants.
func PublicKeys() []ed25519.PublicKey { return []ed25519.PublicKey{Key.Public().(ed25519.PublicKey)} }

// Broker is a running broker.
type Broker struct {
	Addr  string // of the TCP listener
	WSURL string // of the WebSocket listener

	t        testing.TB
	server   *mqtt.Server
	local    *mqtt.Client
	listener net.Listener
	guard    *guard
	received chan Received
	stop     sync.Once
}

// Received is a message from an agent.
type Received struct {
	Branch          string
	Topic           string
	Kind            protocol.Kind
	Payload         []byte
	CorrelationData []byte
}

// ReusableAddr returns a free address for a broker that is started there again after its end. It is on a loopback address of its own
// where the system supports it, because on a shared one another program's connection may use the port meanwhile.
func ReusableAddr(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(250), rand.N(250), 1+rand.N(250)))
	if err != nil {
		l, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	}
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// Start runs a broker on addr ("127.0.0.1:0" for any port) until the test ends or Stop.
func Start(t testing.TB, addr string) *Broker {
	t.Helper()
	caps := mqtt.NewDefaultServerCapabilities()
	caps.MaximumClientWritesPending = 64
	caps.MaximumPacketSize = protocol.MaxPacket
	caps.MaximumSessionExpiryInterval = 0
	caps.MinimumProtocolVersion = 5
	caps.MaximumQos = 1
	caps.Compatibilities.NoInheritedPropertiesOnAck = true
	b := &Broker{t: t, received: make(chan Received, 10_000), guard: &guard{keys: make(map[string]ed25519.PublicKey), hashes: make(map[string]string)}}
	b.server = mqtt.New(&mqtt.Options{InlineClient: true, Capabilities: caps, SysTopicResendInterval: 60, Logger: slog.New(slog.DiscardHandler)})
	b.guard.server = b.server
	must(t, b.server.AddHook(b.guard, nil))
	b.local = b.server.NewClient(nil, "local", "cloud", true)
	b.local.Properties.ProtocolVersion = 5

	var err error
	b.listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	must(t, err)
	b.Addr = b.listener.Addr().String()
	must(t, b.server.AddListener(listeners.NewNet("tcp", b.listener)))
	must(t, b.server.AddListener(listeners.NewMockListener("ws", "")))
	ws := httptest.NewServer(http.HandlerFunc(b.serveWebSocket))
	b.WSURL = "ws" + strings.TrimPrefix(ws.URL, "http") + "/mqtt"
	id := 0
	for kind, filter := range protocol.CloudFilters() {
		id++
		must(t, b.server.Subscribe(filter, id, func(_ *mqtt.Client, _ packets.Subscription, p packets.Packet) {
			branch, _, _ := protocol.ParseTopic(p.TopicName)
			b.received <- Received{branch, p.TopicName, kind, bytes.Clone(p.Payload), bytes.Clone(p.Properties.CorrelationData)}
		}))
	}
	// Not before: an agent whose connection waits already sends its outbox at once.
	must(t, b.server.Serve())
	t.Cleanup(func() { b.Stop(); ws.Close() })
	return b
}

// Stop ends the broker without a DISCONNECT, as a crash does.
func (b *Broker) Stop() { b.stop.Do(b.close) }

func (b *Broker) close() {
	b.listener.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// mochi deadlocks if a connection is removed from its list while it closes.
		b.server.Listeners.ClientsWg.Wait()
		if err := b.server.Close(); err != nil {
			b.t.Error(err)
		}
	}()
	limit := time.After(30 * time.Second)
	for {
		b.DropAll()
		select {
		case <-done:
			return
		case <-limit:
			b.t.Error("the broker did not close within 30 seconds")
			return
		case <-time.After(10 * time.Millisecond): // for a connection that was being established
		}
	}
}

// DropAll cuts every connection without a DISCONNECT.
func (b *Broker) DropAll() {
	for _, cl := range b.server.Clients.GetAll() {
		if cl.ID != "local" && cl.ID != mqtt.InlineClientId {
			cl.Stop(fmt.Errorf("cut"))
		}
	}
}

// Send publishes a message from the cloud.
func (b *Broker) Send(branch string, m protocol.Message) { b.SendWith(branch, m, packets.Properties{}) }

// SendTo publishes a message from the cloud on the topic of one credential.
func (b *Broker) SendTo(agent protocol.Agent, m protocol.Message) {
	b.t.Helper()
	payload, err := protocol.Encode(m)
	must(b.t, err)
	b.publish(agent.Topic(m.Kind()), payload, packets.Properties{})
}

// SendWith publishes a message from the cloud with MQTT properties.
func (b *Broker) SendWith(branch string, m protocol.Message, properties packets.Properties) {
	b.t.Helper()
	payload, err := protocol.Encode(m)
	must(b.t, err)
	b.SendRaw(branch, m.Kind(), payload, properties)
}

// SendRaw publishes an arbitrary payload.
func (b *Broker) SendRaw(branch string, kind protocol.Kind, payload []byte, properties packets.Properties) {
	b.t.Helper()
	b.publish(protocol.Topic(branch, kind), payload, properties)
}

func (b *Broker) publish(topic string, payload []byte, properties packets.Properties) {
	b.t.Helper()
	must(b.t, b.server.InjectPacket(b.local, packets.Packet{
		ProtocolVersion: 5,
		FixedHeader:     packets.FixedHeader{Type: packets.Publish},
		TopicName:       topic, Payload: payload, Properties: properties,
	}))
}

// nextTimeout is above the time that a link takes to connect (20 seconds) and to notice that a connection is lost (10 seconds).
const nextTimeout = time.Minute

// Next waits for the next message of one of the kinds and skips all other kinds.
func (b *Broker) Next(kinds ...protocol.Kind) Received {
	b.t.Helper()
	deadline := time.After(nextTimeout)
	for {
		select {
		case r := <-b.received:
			if slices.Contains(kinds, r.Kind) {
				return r
			}
		case <-deadline:
			b.t.Fatalf("no message of kinds %v within %s", kinds, nextTimeout)
		}
	}
}

// Messages returns the messages from agents, for a caller that reads all of them.
func (b *Broker) Messages() <-chan Received { return b.received }

// Await waits for the next message of type M and decodes it.
func Await[M protocol.Message](b *Broker) M {
	b.t.Helper()
	var m M
	m, err := protocol.Decode[M](b.Next(m.Kind()).Payload)
	must(b.t, err)
	return m
}

// Silent reports whether no message of the kinds arrives within d.
func (b *Broker) Silent(d time.Duration, kinds ...protocol.Kind) bool {
	after := time.After(d)
	for {
		select {
		case r := <-b.received:
			if slices.Contains(kinds, r.Kind) {
				return false
			}
		case <-after:
			return true
		}
	}
}

// Retained returns the retained status of an agent; ok is false if there is none.
func (b *Broker) Retained(agent protocol.Agent) (status protocol.Status, ok bool) {
	b.t.Helper()
	p, ok := b.server.Topics.Retained.Get(agent.Topic(protocol.KindStatus))
	if !ok {
		return status, false
	}
	status, err := protocol.Decode[protocol.Status](p.Payload)
	must(b.t, err)
	return status, true
}

// RejectSubscriptions rejects the next n SUBSCRIBE packets for the topics of a branch.
func (b *Broker) RejectSubscriptions(n int) {
	filters := 0
	for kind := range protocol.Kinds() {
		if kind.FromCloud() && !kind.OwnTopic() {
			filters++
		}
	}
	b.guard.mu.Lock()
	defer b.guard.mu.Unlock()
	b.guard.reject = n * filters
}

// SetLegacy makes the broker one of the previous release, which rejects the topics of credentials, or disconnects the agent.
func (b *Broker) SetLegacy(disconnect bool) {
	b.guard.mu.Lock()
	defer b.guard.mu.Unlock()
	b.guard.legacy, b.guard.disconnect = true, disconnect
}

// EndLegacy makes the broker one of this release again.
func (b *Broker) EndLegacy() {
	b.guard.mu.Lock()
	defer b.guard.mu.Unlock()
	b.guard.legacy = false
}

// Connections counts the successful connections so far.
func (b *Broker) Connections() int {
	b.guard.mu.Lock()
	defer b.guard.mu.Unlock()
	return b.guard.connections
}

func (b *Broker) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"mqtt"}}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.Close() }()
	_ = b.server.EstablishConnection("ws", link.NewStream(ws)) // tests cut connections, so each one ends with an error
}

// guard enforces the cloud's access rule: the credential determines the branch, and the branch determines the topics.
type guard struct {
	mqtt.HookBase
	server      *mqtt.Server
	mu          sync.Mutex
	keys        map[string]ed25519.PublicKey
	hashes      map[string]string
	reject      int
	legacy      bool
	disconnect  bool
	connections int
}

func (*guard) ID() string { return "guard" }

func (*guard) Provides(b byte) bool {
	return b == mqtt.OnConnectAuthenticate || b == mqtt.OnACLCheck || b == mqtt.OnConnect || b == mqtt.OnSessionEstablish || b == mqtt.OnSessionEstablished
}

func (g *guard) OnConnectAuthenticate(cl *mqtt.Client, pk packets.Packet) bool {
	username := string(cl.Properties.Username)
	g.mu.Lock()
	key, hash := g.keys[username], cmp.Or(g.hashes[username], hashOf(Password))
	g.mu.Unlock()
	if cl.ID != username {
		return false
	}
	if cl.Properties.Props.AuthenticationMethod == protocol.AuthMethod && key != nil {
		return challenge(cl, username, key)
	}
	return key == nil && hashOf(string(pk.Connect.Password)) == hash
}

// challenge asks a client for the signature of a nonce.
func challenge(cl *mqtt.Client, username string, key ed25519.PublicKey) bool {
	nonce := protocol.NewNonce()
	if err := cl.WritePacket(packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Auth}, ReasonCode: packets.CodeContinueAuthentication.Code,
		Properties: packets.Properties{AuthenticationMethod: protocol.AuthMethod, AuthenticationData: []byte(nonce)}}); err != nil {
		return false
	}
	var header packets.FixedHeader
	if err := cl.ReadFixedHeader(&header); err != nil || header.Type != packets.Auth {
		return false
	}
	answer, err := cl.ReadPacket(&header)
	return err == nil && ed25519.Verify(key, protocol.Challenge(username, nonce), answer.Properties.AuthenticationData)
}

// SetKey gives a credential a key pair: only the holder of its private key connects from now on.
func (b *Broker) SetKey(username string, key ed25519.PublicKey) {
	b.guard.mu.Lock()
	defer b.guard.mu.Unlock()
	b.guard.keys[username] = key
}

// SetPasswordHash gives a credential a password, by its hash as in protocol.Rekeyed, and removes its key.
func (b *Broker) SetPasswordHash(username, hash string) {
	b.guard.mu.Lock()
	defer b.guard.mu.Unlock()
	delete(b.guard.keys, username)
	b.guard.hashes[username] = hash
}

func hashOf(password string) string {
	sum := sha256.Sum256([]byte(password))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (g *guard) OnACLCheck(cl *mqtt.Client, topic string, write bool) bool {
	of, kind, ok := protocol.ParseAgentTopic(topic)
	branch := of.Branch
	if id := protocol.AgentID(branch); !ok || cl.ID != id && !strings.HasPrefix(cl.ID, id+"-") {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.legacy && (of.Username != "" || kind.OwnTopic()) {
		if g.disconnect {
			cl.Stop(errors.New("not authorized"))
		}
		return false
	}
	if write {
		return protocol.Agent{Branch: branch, Username: cl.ID}.MayPublish(topic)
	}
	if g.reject > 0 && of.Username == "" {
		g.reject--
		return false
	}
	return protocol.Agent{Branch: branch, Username: cl.ID}.MaySubscribe(topic)
}

func (*guard) OnConnect(cl *mqtt.Client, _ packets.Packet) error {
	cl.Properties.Props.ReceiveMaximum = 0
	cl.State.Inflight.ResetSendQuota(0)
	return nil
}

// OnSessionEstablish ends an earlier session of the client and waits until mochi has forgotten it. A session that is still
// ending would remove the entry and the subscriptions of the new one, which then receives nothing.
func (g *guard) OnSessionEstablish(cl *mqtt.Client, _ packets.Packet) {
	earlier, ok := g.server.Clients.Get(cl.ID)
	if !ok {
		return
	}
	_ = g.server.DisconnectClient(earlier, packets.ErrSessionTakenOver)                                          // it may have left
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) { // mochi reports no event
		if now, ok := g.server.Clients.Get(cl.ID); !ok || now != earlier {
			return
		}
	}
}

func (g *guard) OnSessionEstablished(*mqtt.Client, packets.Packet) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connections++
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
