// Package agenttest is a branch agent for the cloud's tests: written by hand after package protocol, over a real MQTT
// connection, honest unless told to be faulty. It drives no locks; it writes down that it would have.
package agenttest

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/protocol"
)

// Faults are ways in which an agent and the line to it fail. The zero value is none.
type Faults struct {
	IgnoreAsks   bool             // it never claims
	ClaimDelay   time.Duration    // between ask and claim
	ClaimTwice   bool             // what was granted is claimed again under a second nonce
	RepeatClaims int              // every claim is sent this many times more
	LoseGrants   int              // so many grants never arrive
	LoseResults  int              // so many results never arrive
	SendResults  int              // every result is sent this many times more
	Silent       bool             // grants are obeyed, nothing is reported
	Outcome      protocol.Outcome // of every door; empty: opened
	DeadSensors  []string         // left out of readings
	NoAnswer     bool             // commands and reads are carried out and not answered
}

// Config is an agent. Branch and Dial must be set.
type Config struct {
	Branch   string
	Dial     func() (net.Conn, error)
	ClientID string // protocol.AgentID(Branch) when empty
	Username string // ClientID when empty
	Secret   string // ClientID + "-demo" when empty
	Keys     []ed25519.PublicKey
	BootID   string // "boot" when empty

	BranchTopics bool // use the topics of the branch, like agents of the previous release

	Inventory protocol.Inventory
	Readings  []protocol.Reading // what the sensors would say

	// Connect may change the CONNECT packet before it is sent.
	Connect func(*paho.Connect)
}

// Agent is a connected agent.
type Agent struct {
	cfg    Config
	client *paho.Client
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	faults   Faults
	claims   map[string]claim
	results  map[string][]protocol.Result
	driven   []Drive
	denied   []protocol.Deny
	asked    map[string]int
	commands []string
	last     string        // request id of the last command
	changed  chan struct{} // closed and replaced whenever something of the above changes
	gone     chan struct{}
	reason   byte // of the server's DISCONNECT
}

type claim struct {
	nonce string
	at    time.Time
	used  bool
}

// Drive is a lock that was driven.
type Drive struct {
	At        time.Time
	RequestID string
	Device    string
}

// TCP dials a broker's address.
func TCP(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.DialTimeout("tcp", addr, 3*time.Second) }
}

// Connect connects an agent, fails the test if it cannot, and disconnects it after the test.
func Connect(t testing.TB, cfg Config) *Agent {
	t.Helper()
	a, err := Try(t, cfg)
	if err != nil {
		t.Fatalf("agent of %s: %v", cfg.Branch, err)
	}
	return a
}

// Try is Connect that returns the error.
func Try(t testing.TB, cfg Config) (*Agent, error) {
	t.Helper()
	if cfg.ClientID == "" {
		cfg.ClientID = protocol.AgentID(cfg.Branch)
	}
	if cfg.Username == "" {
		cfg.Username = cfg.ClientID
	}
	if cfg.BootID == "" {
		cfg.BootID = "boot"
	}
	if cfg.Secret == "" {
		cfg.Secret = cfg.ClientID + "-demo"
	}
	conn, err := cfg.Dial()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Agent{cfg: cfg, cancel: cancel, claims: make(map[string]claim), results: make(map[string][]protocol.Result),
		asked: make(map[string]int), changed: make(chan struct{}), gone: make(chan struct{})}
	var once sync.Once
	leave := func() { once.Do(func() { close(a.gone) }) }
	a.client = paho.NewClient(paho.ClientConfig{
		ClientID: cfg.ClientID, Conn: packets.NewThreadSafeConn(conn), PacketTimeout: 5 * time.Second,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			a.work.Go(func() { a.receive(ctx, p.Packet) }) // callbacks must not block
			return true, nil
		}},
		OnClientError: func(error) { leave() },
		OnServerDisconnect: func(d *paho.Disconnect) {
			a.mu.Lock()
			a.reason = d.ReasonCode
			a.mu.Unlock()
			leave()
		},
	})
	connect := &paho.Connect{
		ClientID: cfg.ClientID, Username: cfg.Username, UsernameFlag: true, Password: []byte(cfg.Secret), PasswordFlag: true,
		KeepAlive: uint16(protocol.KeepAlive / time.Second), CleanStart: true,
		WillMessage: &paho.WillMessage{Topic: protocol.Topic(cfg.Branch, protocol.KindStatus), QoS: 1, Retain: true,
			Payload: encode(t, protocol.Status{State: protocol.Offline, BootID: a.cfg.BootID, Connection: 1})},
	}
	if cfg.Connect != nil {
		cfg.Connect(connect)
	}
	connectCtx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	ack, err := a.client.Connect(connectCtx, connect)
	if err != nil {
		cancel()
		_ = conn.Close()
		if ack != nil {
			return nil, fmt.Errorf("refused with %#x: %w", ack.ReasonCode, err)
		}
		return nil, err
	}
	t.Cleanup(a.Close)
	subscribe := &paho.Subscribe{}
	for filter := range a.agent().Filters() {
		subscribe.Subscriptions = append(subscribe.Subscriptions, paho.SubscribeOptions{Topic: filter})
	}
	if _, err := a.client.Subscribe(connectCtx, subscribe); err != nil {
		return nil, err
	}
	inventory := cfg.Inventory
	if err := a.Publish(protocol.Status{State: protocol.Online, BootID: a.cfg.BootID, Connection: 1, AgentVersion: "test",
		StartedAt: time.Now(), Inventory: &inventory}); err != nil {
		return nil, err
	}
	a.work.Go(func() { a.beat(ctx) })
	return a, nil
}

func encode(t testing.TB, m protocol.Message) []byte {
	t.Helper()
	payload, err := protocol.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// agent returns the agent whose topics are used.
func (a *Agent) agent() protocol.Agent {
	if a.cfg.BranchTopics {
		return protocol.Agent{Branch: a.cfg.Branch}
	}
	return protocol.Agent{Branch: a.cfg.Branch, Username: a.cfg.Username}
}

// Close says goodbye and waits for everything under way.
func (a *Agent) Close() {
	select {
	case <-a.gone:
	default:
		_ = a.Publish(protocol.Status{State: protocol.Offline, BootID: a.cfg.BootID, Connection: 1})
	}
	a.cancel()
	_ = a.client.Disconnect(&paho.Disconnect{})
	<-a.client.Done()
	a.work.Wait()
}

// Gone is closed when the connection has ended; Reason is the code of the server's DISCONNECT, if it sent one.
func (a *Agent) Gone() <-chan struct{} { return a.gone }

// Reason is the code of the server's DISCONNECT, 0 without one.
func (a *Agent) Reason() byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reason
}

// Client is the connection, for tests of what the broker refuses.
func (a *Agent) Client() *paho.Client { return a.client }

// Fail makes the agent faulty from now on.
func (a *Agent) Fail(f Faults) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = f
}

// Driven is every lock driven so far.
func (a *Agent) Driven() []Drive {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.driven)
}

// Denied is every deny received so far.
func (a *Agent) Denied() []protocol.Deny {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.denied)
}

// Asked is how often a request was asked.
func (a *Agent) Asked(requestID string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[requestID]
}

// Commands is every air conditioner option received so far, repetitions included.
func (a *Agent) Commands() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.commands)
}

// LastRequest is the request id of the last command.
func (a *Agent) LastRequest() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// Until waits until ok reports true, looking again whenever the agent has received something.
func (a *Agent) Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		a.mu.Lock()
		changed := a.changed
		a.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("agent of %s: waited in vain for %s", a.cfg.Branch, what)
		}
	}
}

// Publish sends a message of the agent's own, as the protocol has it.
func (a *Agent) Publish(m protocol.Message) error {
	payload, err := protocol.Encode(m)
	if err != nil {
		return err
	}
	return a.send(&paho.Publish{Topic: a.agent().Topic(m.Kind()), QoS: m.Kind().QoS(),
		Retain: m.Kind().Retained(), Payload: payload})
}

func (a *Agent) send(p *paho.Publish) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := a.client.Publish(ctx, p)
	return err
}

func (a *Agent) beat(ctx context.Context) {
	tick := time.NewTicker(protocol.HeartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = a.Publish(protocol.Heartbeat{BootID: a.cfg.BootID, Connection: 1})
		}
	}
}
