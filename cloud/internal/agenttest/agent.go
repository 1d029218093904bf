// Package agenttest is a branch agent for the cloud's tests. It implements package protocol independently of the real agent,
// over a real MQTT connection, without faults unless [Faults] are set. It drives no locks; it records each lock that it
// would drive.
package agenttest

import (
	"cmp"
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

// Faults are failures of an agent and of its connection. The zero value has none.
type Faults struct {
	IgnoreAsks   bool             // the agent never claims
	ClaimDelay   time.Duration    // between ask and claim
	ClaimTwice   bool             // after a grant, the agent claims the request again with a second nonce
	RepeatClaims int              // how many extra times each claim is sent
	LoseGrants   int              // this many grants are ignored
	LoseResults  int              // this many results are not sent
	SendResults  int              // how many extra times each result is sent
	Silent       bool             // grants are executed, but no result is reported
	Outcome      protocol.Outcome // of every door; empty: opened
	DeadSensors  []string         // left out of readings
	NoAnswer     bool             // commands and reads are executed but not answered
	IgnoreLists  bool             // pass lists are not used
	HideLists    bool             // pass lists are used, but not acknowledged
}

// Config configures an agent. Branch and Dial must be set.
type Config struct {
	Branch   string
	Dial     func() (net.Conn, error)
	ClientID string                    // protocol.AgentID(Branch) when empty
	Username string                    // ClientID when empty
	Secret   string                    // ClientID + "-demo" when empty
	Key      ed25519.PrivateKey        // answers the broker's challenge; nil: the secret is sent
	Sign     func(nonce []byte) []byte // answers the challenge in place of Key; optional
	Keys     []ed25519.PublicKey       // of the credential; key lists replace them
	BootID   string                    // "boot" when empty

	Connection uint32 // number of the connection since the start of the agent; 1 when 0

	NoDiagnostics bool // like agents of an earlier version

	BranchTopics bool // use the topics of the branch, like agents of the previous release

	Inventory protocol.Inventory
	Readings  []protocol.Reading // the values the sensors return

	GrantAge time.Duration // of a grant that is acted on; protocol.GrantAge when 0

	// Connect may change the CONNECT packet before it is sent.
	Connect func(*paho.Connect)
}

// Agent is a connected agent.
type Agent struct {
	cfg    Config
	client *paho.Client
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	keys      []ed25519.PublicKey
	epoch     uint64
	newKey    ed25519.PrivateKey
	rekeyed   protocol.Rekeyed
	faults    Faults
	claims    map[string]claim
	results   map[string][]protocol.Result
	driven    []Drive
	denied    []protocol.Deny
	asked     map[string]int
	commands  []string
	last      string // request id of the last command
	sealed    sealKeys
	list      protocol.PassList // in use
	codeKey   []byte
	journal   string
	entries   []protocol.PassEntry
	acked     []protocol.PassAck
	beacons   []protocol.Beacon
	settings  protocol.Settings // in use
	diagnosed protocol.DiagnosticsStatus
	startedAt time.Time
	changed   chan struct{} // closed and replaced whenever one of the fields above changes
	gone      chan struct{}
	reason    byte // of the server's DISCONNECT
}

type claim struct {
	nonce string
	at    time.Time
	used  bool
}

// Drive records that a lock was driven.
type Drive struct {
	At        time.Time
	RequestID string
	Device    string
}

// TCP dials a broker's address.
func TCP(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.DialTimeout("tcp", addr, 3*time.Second) }
}

// Connect connects an agent and disconnects it after the test. It fails the test if the agent cannot connect.
func Connect(t testing.TB, cfg Config) *Agent {
	t.Helper()
	a, err := Try(t, cfg)
	if err != nil {
		t.Fatalf("agent of %s: %v", cfg.Branch, err)
	}
	return a
}

// Try is Connect, but returns the error.
func Try(t testing.TB, cfg Config) (*Agent, error) {
	t.Helper()
	cfg.ClientID = cmp.Or(cfg.ClientID, protocol.AgentID(cfg.Branch))
	cfg.Username = cmp.Or(cfg.Username, cfg.ClientID)
	cfg.BootID = cmp.Or(cfg.BootID, "boot")
	cfg.Connection = cmp.Or(cfg.Connection, 1)
	cfg.Secret = cmp.Or(cfg.Secret, cfg.ClientID+"-demo")
	conn, err := cfg.Dial()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Agent{cfg: cfg, cancel: cancel, keys: cfg.Keys, diagnosed: protocol.DiagnosticsStatus{Nonce: protocol.NewNonce()}, claims: make(map[string]claim), results: make(map[string][]protocol.Result),
		asked: make(map[string]int), changed: make(chan struct{}), gone: make(chan struct{})}
	if len(cfg.Inventory.Keypads) > 0 {
		a.sealed, a.journal = newSealKeys(t), protocol.NewNonce()
	}
	var once sync.Once
	leave := func() { once.Do(func() { close(a.gone) }) }
	a.client = paho.NewClient(paho.ClientConfig{
		AuthHandler: signer{cfg},
		ClientID:    cfg.ClientID, Conn: packets.NewThreadSafeConn(conn), PacketTimeout: 5 * time.Second,
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
	connectCtx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	ack, err := a.client.Connect(connectCtx, connectPacket(t, cfg))
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
	a.startedAt = time.Now()
	if err := a.Publish(a.status()); err != nil {
		return nil, err
	}
	a.work.Go(func() { a.beat(ctx) })
	return a, nil
}

func connectPacket(t testing.TB, cfg Config) *paho.Connect {
	connect := &paho.Connect{
		ClientID: cfg.ClientID, Username: cfg.Username, UsernameFlag: true, Password: []byte(cfg.Secret), PasswordFlag: true,
		KeepAlive: uint16(protocol.KeepAlive / time.Second), CleanStart: true,
		WillMessage: &paho.WillMessage{Topic: protocol.Topic(cfg.Branch, protocol.KindStatus), QoS: 1, Retain: true,
			Payload: encode(t, protocol.Status{State: protocol.Offline, BootID: cfg.BootID, Connection: cfg.Connection})},
	}
	if cfg.Key != nil {
		connect.Password, connect.PasswordFlag = nil, false
		connect.Properties = &paho.ConnectProperties{AuthMethod: protocol.AuthMethod}
	}
	if cfg.Connect != nil {
		cfg.Connect(connect)
	}
	return connect
}

// signer answers the broker's challenge.
type signer struct{ cfg Config }

// Authenticate implements paho.Auther.
func (s signer) Authenticate(challenge *paho.Auth) *paho.Auth {
	sign := s.cfg.Sign
	if sign == nil {
		sign = func(nonce []byte) []byte {
			return ed25519.Sign(s.cfg.Key, protocol.Challenge(s.cfg.Username, string(nonce)))
		}
	}
	return &paho.Auth{ReasonCode: packets.AuthContinueAuthentication, Properties: &paho.AuthProperties{
		AuthMethod: protocol.AuthMethod, AuthData: sign(challenge.Properties.AuthData)}}
}

// Authenticated implements paho.Auther.
func (signer) Authenticated() {}

// NewKey is the key that the agent made for a rotation, or nil.
func (a *Agent) NewKey() ed25519.PrivateKey {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.newKey
}

// Answer is the last answer of the agent to a rotation.
func (a *Agent) Answer() protocol.Rekeyed {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rekeyed
}

// status returns the status of the agent.
func (a *Agent) status() protocol.Status {
	return protocol.Status{State: protocol.Online, BootID: a.cfg.BootID, Connection: a.cfg.Connection, AgentVersion: "test",
		StartedAt: a.startedAt, Inventory: &a.cfg.Inventory, KeyEpoch: a.KeyEpoch(), SealKey: a.sealed.announced(), Settings: a.settingsStatus(),
		Diagnostics: a.diagnosticsStatus()}
}

func (a *Agent) settingsStatus() *protocol.SettingsStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &protocol.SettingsStatus{Version: a.settings.Version, Highest: a.settings.Version}
}

// KeyEpoch returns the epoch of the key list in use.
func (a *Agent) KeyEpoch() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.epoch
}

func encode(t testing.TB, m protocol.Message) []byte {
	t.Helper()
	payload, err := protocol.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// agent returns the identity whose topics the agent uses.
func (a *Agent) agent() protocol.Agent {
	if a.cfg.BranchTopics {
		return protocol.Agent{Branch: a.cfg.Branch}
	}
	return protocol.Agent{Branch: a.cfg.Branch, Username: a.cfg.Username}
}

// Close reports the agent as offline, disconnects, and waits for its goroutines.
func (a *Agent) Close() {
	select {
	case <-a.gone:
	default:
		_ = a.Publish(protocol.Status{State: protocol.Offline, BootID: a.cfg.BootID, Connection: a.cfg.Connection})
	}
	a.cancel()
	_ = a.client.Disconnect(&paho.Disconnect{})
	<-a.client.Done()
	a.work.Wait()
}

// Gone returns a channel that is closed when the connection has ended. Reason then returns the code of the server's
// DISCONNECT.
func (a *Agent) Gone() <-chan struct{} { return a.gone }

// Reason returns the reason code of the server's DISCONNECT, or 0 if there was none.
func (a *Agent) Reason() byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reason
}

// Client returns the connection, for tests that send packets the broker must reject.
func (a *Agent) Client() *paho.Client { return a.client }

// Fail sets the agent's faults from now on.
func (a *Agent) Fail(f Faults) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = f
}

// Driven returns every lock driven so far.
func (a *Agent) Driven() []Drive {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.driven)
}

// Denied returns every deny received so far.
func (a *Agent) Denied() []protocol.Deny {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.denied)
}

// Asked returns how many asks the agent received for a request.
func (a *Agent) Asked(requestID string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[requestID]
}

// Commands returns every air conditioner option received so far, with repetitions.
func (a *Agent) Commands() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.commands)
}

// LastRequest returns the request id of the last command.
func (a *Agent) LastRequest() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// Until waits until ok returns true. It calls ok again whenever the agent's record changes, and fails the test after thirty
// seconds.
func (a *Agent) Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
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
			t.Fatalf("agent of %s: %s: not within the time limit", a.cfg.Branch, what)
		}
	}
}

// Publish sends a message on the agent's topic of its kind, with the QoS and retain flag that the protocol defines.
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
			_ = a.Publish(protocol.Heartbeat{BootID: a.cfg.BootID, Connection: a.cfg.Connection})
		}
	}
}
