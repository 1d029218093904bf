package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heard holds the arguments of a call to verbs.
type heard struct {
	branch  string
	from    protocol.Peer // of a claim
	online  bool          // of a presence
	message protocol.Message
}

// verbs records its calls.
type verbs struct {
	doors     chan heard
	devices   chan heard
	comings   chan heard
	takeovers chan protocol.Agent
	hold      chan struct{} // when set, claims wait until it is closed
	refused   string        // updates of this branch fail, and with them the batch they are in
}

func newVerbs() *verbs {
	return &verbs{doors: make(chan heard, 1000), devices: make(chan heard, 1000), comings: make(chan heard, 1000), takeovers: make(chan protocol.Agent, 10)}
}

func (v *verbs) Claim(ctx context.Context, from protocol.Peer, m protocol.Claim) error {
	if v.hold != nil {
		select {
		case <-v.hold:
		case <-ctx.Done():
		}
	}
	v.doors <- heard{branch: from.Branch, from: from, message: m}
	return nil
}

func (v *verbs) Result(_ context.Context, from protocol.Peer, m protocol.Result) error {
	v.doors <- heard{branch: from.Branch, message: m}
	return nil
}

func (v *verbs) Announced(_ context.Context, news []device.Announcement) error {
	if slices.ContainsFunc(news, func(n device.Announcement) bool { return v.refused == n.Agent.Branch }) {
		return errors.New("refused")
	}
	for _, n := range news {
		if n.Status != nil {
			v.devices <- heard{branch: n.Agent.Branch, message: *n.Status}
		} else {
			v.comings <- heard{branch: n.Agent.Branch, online: n.Online}
		}
	}
	return nil
}

func (v *verbs) Telemetry(_ context.Context, told []postgres.Telemetry) error {
	if slices.ContainsFunc(told, func(t postgres.Telemetry) bool { return v.refused == t.Agent.Branch }) {
		return errors.New("refused")
	}
	for _, t := range told {
		v.devices <- heard{branch: t.Agent.Branch, message: t.Telemetry}
	}
	return nil
}

func (v *verbs) Commanded(_ context.Context, from protocol.Agent, m protocol.ClimateResult) error {
	v.devices <- heard{branch: from.Branch, message: m}
	return nil
}

func (v *verbs) Measured(_ context.Context, from protocol.Agent, m protocol.SensorsReadings) error {
	v.devices <- heard{branch: from.Branch, message: m}
	return nil
}

func (v *verbs) Rekeyed(context.Context, protocol.Agent, protocol.Rekeyed) error { return nil }

func (v *verbs) SettingsFile(context.Context, protocol.Agent, protocol.SettingsFile) error {
	return nil
}

func (v *verbs) DiagnosticsLog(context.Context, protocol.Agent, protocol.DiagnosticsLog) error {
	return nil
}

func (v *verbs) DiagnosticsReport(context.Context, protocol.Agent, protocol.DiagnosticsReport) error {
	return nil
}

func (v *verbs) TakenOver(_ context.Context, agent protocol.Agent) error {
	v.takeovers <- agent
	return nil
}

// to returns the address of the agent of a branch.
func to(branch string) protocol.Peer {
	return protocol.Peer{Agent: protocol.Agent{Branch: branch, Username: protocol.AgentID(branch)}}
}

func receive(t *testing.T, from chan heard) heard {
	t.Helper()
	select {
	case h := <-from:
		return h
	case <-time.After(time.Minute):
		t.Fatal("nothing was handed over")
		return heard{}
	}
}

// running is a broker under test, with agents of any branch whose secret is their user name and "-demo".
type running struct {
	*Broker
	*verbs
	addr string

	mu      sync.Mutex
	revoked map[string]bool
	keys    map[string][]byte // public keys of credentials
	secrets map[string]string // passwords that differ
	broken  bool              // looking up credentials fails
	stop    context.CancelFunc
	stopped chan error
}

func start(t *testing.T, change ...func(*running, *Config)) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{verbs: newVerbs(), addr: l.Addr().String(), revoked: make(map[string]bool), keys: make(map[string][]byte), secrets: make(map[string]string), stopped: make(chan error, 1)}
	cfg := Config{Listener: l, Credentials: r.credentials, Doors: r.verbs, Devices: r.verbs, Climate: r.verbs,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, f := range change {
		f(r, &cfg)
	}
	if r.Broker, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.stopped <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-r.stopped:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("broker does not stop")
		}
	})
	return r
}

func (r *running) credentials(_ context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		return errors.New("database is away")
	}
	for _, username := range usernames {
		branch, ok := map[string]string{"agent-gangnam": "gangnam", "agent-gangnam-2": "gangnam", "agent-hongdae": "hongdae"}[username]
		if ok && !r.revoked[username] {
			hash := sha256.Sum256([]byte(cmp.Or(r.secrets[username], username+"-demo")))
			found(username, branch, hash[:], r.keys[username])
		}
	}
	return nil
}

func (r *running) agent(t *testing.T, branch string) *agenttest.Agent {
	t.Helper()
	return agenttest.Connect(t, agenttest.Config{Branch: branch, Dial: agenttest.TCP(r.addr)})
}

// hears reports whether an agent of the branch has subscribed to asks.
func (r *running) hears(branch string) bool {
	return slices.ContainsFunc(r.sessions.of(to(branch)), func(s *session) bool { return s.topic(protocol.KindDoorAsk) != "" })
}

func (r *running) ask(t *testing.T, branch string) string {
	t.Helper()
	const id = "11111111-2222-4333-8444-555555555555"
	if err := r.Send(to(branch), protocol.Ask{RequestID: id, Doors: []string{"front_1"}}); err != nil {
		t.Fatal(err)
	}
	return id
}

// wait polls until ok returns true, for conditions without an event.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s: not within the time limit", what)
		}
	}
}

func TestMessagesComeWithTheBranchOfTheirTopic(t *testing.T) {
	t.Parallel()
	b := start(t)
	if len(b.Online("gangnam")) > 0 {
		t.Fatal("online before an agent connected")
	}
	a := b.agent(t, "gangnam")
	if h := receive(t, b.comings); h.branch != "gangnam" || !h.online {
		t.Errorf("presence %+v", h)
	}
	if status, ok := receive(t, b.devices).message.(protocol.Status); !ok || status.State != protocol.Online {
		t.Errorf("status %+v", status)
	}
	if len(b.Online("gangnam")) == 0 || len(b.Online("hongdae")) > 0 {
		t.Error("presence of the wrong branch")
	}
	id := b.ask(t, "gangnam")
	h := receive(t, b.doors)
	claim, ok := h.message.(protocol.Claim)
	if !ok || h.branch != "gangnam" || claim.RequestID != id {
		t.Errorf("got %+v", h)
	}
	a.Close()
	if h := receive(t, b.comings); h.branch != "gangnam" || h.online {
		t.Errorf("presence %+v", h)
	}
	if len(b.Online("gangnam")) > 0 {
		t.Error("online after the agent left")
	}
}

func TestCommandsCarryResponseTopic(t *testing.T) {
	t.Parallel()
	b := start(t)
	const id = "11111111-2222-4333-8444-555555555555"
	option := protocol.LeafID("gangnam", "main", "off")
	b.agent(t, "gangnam")
	receive(t, b.devices) // status
	if err := b.Send(to("gangnam"), protocol.ClimateCommand{RequestID: id, AirConditionerID: option}); err != nil {
		t.Fatal(err)
	}
	// The agent answers on the Response Topic only.
	h := receive(t, b.devices)
	if m, ok := h.message.(protocol.ClimateResult); !ok || m.RequestID != id || m.AirConditionerID != option {
		t.Errorf("got %+v", h)
	}
	p := properties("yeolda/v1/gangnam/sensors/read", protocol.SensorsRead{RequestID: id})
	if p.ResponseTopic != "yeolda/v1/gangnam/sensors/readings" || string(p.CorrelationData) != id || p.MessageExpiryInterval != 7 {
		t.Errorf("properties of a read: %+v", p)
	}
	if p := properties("yeolda/v1/gangnam/door/ask", protocol.Ask{}); p.MessageExpiryInterval != 3 || p.ResponseTopic != "" {
		t.Errorf("properties of an ask: %+v", p)
	}
}

func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	b := start(t)
	status := func(branch string) *paho.WillMessage {
		return &paho.WillMessage{Topic: protocol.Topic(branch, protocol.KindStatus), Payload: []byte("{}"), Retain: true}
	}
	for name, cfg := range map[string]agenttest.Config{
		"wrong secret":          {Branch: "gangnam", Secret: "agent-hongdae-demo"},
		"empty secret":          {Branch: "gangnam", Secret: "\x00"},
		"unknown agent":         {Branch: "jamsil"},
		"another's client id":   {Branch: "hongdae", ClientID: "agent-gangnam", Username: "agent-hongdae", Secret: "agent-hongdae-demo"},
		"own client id of none": {Branch: "gangnam", ClientID: "somebody", Username: "agent-gangnam", Secret: "agent-gangnam-demo"},
		"no user name": {Branch: "gangnam", Connect: func(c *paho.Connect) {
			c.UsernameFlag, c.Username = false, ""
		}},
		"will of another branch": {Branch: "gangnam", Connect: func(c *paho.Connect) { c.WillMessage = status("hongdae") }},
		"will that is a result": {Branch: "gangnam", Connect: func(c *paho.Connect) {
			c.WillMessage.Topic = protocol.Topic("gangnam", protocol.KindDoorResult)
		}},
		"will for everyone": {Branch: "gangnam", Connect: func(c *paho.Connect) { c.WillMessage.Topic = "$SYS/broker/version" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Dial = agenttest.TCP(b.addr)
			if _, err := agenttest.Try(t, cfg); err == nil {
				t.Error("connected")
			}
			if len(b.Online(cfg.Branch)) > 0 {
				t.Error("counts as online")
			}
		})
	}
}

func TestDatabaseAwayIsNotAWrongPassword(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.mu.Lock()
	b.broken = true
	b.mu.Unlock()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(connectPacket("agent-gangnam", "agent-gangnam", "agent-gangnam-demo", 5, 10)); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := conn.Read(make([]byte, 64)); n > 0 || err == nil {
		t.Errorf("got %d bytes, want the connection closed without a CONNACK", n)
	}
}

func TestRevokedAgentIsDisconnected(t *testing.T) {
	t.Parallel()
	b := start(t)
	gangnam, hongdae := b.agent(t, "gangnam"), b.agent(t, "hongdae")
	b.mu.Lock()
	b.revoked["agent-gangnam"] = true
	b.mu.Unlock()
	if err := b.dropRevoked(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gangnam.Gone():
	case <-time.After(time.Minute):
		t.Fatal("still connected")
	}
	if reason := gangnam.Reason(); reason != 0x87 {
		t.Errorf("reason %#x, want not authorized", reason)
	}
	if _, err := agenttest.Try(t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(b.addr)}); err == nil {
		t.Error("connected again")
	}
	id := b.ask(t, "hongdae")
	hongdae.Until(t, "the ask", func() bool { return hongdae.Asked(id) > 0 })
}

// TestNewsComeTogether checks that waiting updates are processed as one batch, in order. If one branch makes the batch fail,
// the updates of the other branches are processed separately.
func TestNewsComeTogether(t *testing.T) {
	t.Parallel()
	v := newVerbs()
	v.refused = "jamsil"
	box := newInbox(v, v, v, nil, slog.New(slog.DiscardHandler))
	telemetry, err := protocol.Encode(protocol.Telemetry{At: time.Now(), Events: []protocol.Event{{Kind: protocol.EventDoorOpened, Device: "front_1"}}})
	if err != nil {
		t.Fatal(err)
	}
	lane := make(chan delivery, 6)
	for _, d := range []delivery{
		{from: to("gangnam"), kind: kindPresence, online: true}, {from: to("jamsil"), kind: kindPresence, online: true},
		{from: to("jamsil"), kind: protocol.KindTelemetry, payload: telemetry},
		{from: to("gangnam"), kind: protocol.KindTelemetry, payload: telemetry}, {from: to("gangnam"), kind: kindPresence},
		{from: to("hongdae"), kind: protocol.KindStatus, payload: []byte("{")},
	} {
		box.reserve(d.from.Agent)
		lane <- d
	}
	batch := box.drain(<-lane, lane)
	if len(batch) != 6 || len(box.waiting) != 0 {
		t.Fatalf("%d drained, still waiting: %v", len(batch), box.waiting)
	}
	box.handleSteady(t.Context(), batch)
	if h := receive(t, v.comings); h.branch != "gangnam" || !h.online {
		t.Errorf("first %+v", h)
	}
	if h := receive(t, v.comings); h.branch != "gangnam" || h.online {
		t.Errorf("last %+v", h)
	}
	if _, ok := receive(t, v.devices).message.(protocol.Telemetry); !ok || len(v.comings)+len(v.devices) != 0 {
		t.Error("want the telemetry, and nothing of the three that were refused")
	}
}

// awayDevices stores nothing while the database is away.
type awayDevices struct {
	*verbs
	away atomic.Bool
}

func (d *awayDevices) Announced(ctx context.Context, announced []device.Announcement) error {
	if d.away.Load() {
		return io.ErrUnexpectedEOF
	}
	return d.verbs.Announced(ctx, announced)
}

// TestPresenceIsRepeatedUntilItIsStored has agents disconnect while the database is away. Nothing happens at the broker later, so
// without a repetition the database would have them online for good.
func TestPresenceIsRepeatedUntilItIsStored(t *testing.T) {
	t.Parallel()
	for name, compare := range map[string]func(*presence){"alone": (*presence).announceMissed, "pool": (*presence).announceAll} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVerbs()
				devices := &awayDevices{verbs: v}
				box := newInbox(v, devices, v, nil, slog.New(slog.DiscardHandler))
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- box.run(ctx) }()
				online := true
				p := newPresence(box, func(protocol.Agent) bool { return online })
				agents := []protocol.Agent{to("gangnam").Agent, to("hongdae").Agent}
				announce := func() {
					for _, agent := range agents {
						p.announce(agent)
					}
					time.Sleep(batchInterval)
					synctest.Wait()
				}
				announce()
				online = false
				devices.away.Store(true)
				announce()
				time.Sleep(unstoredDelay)
				compare(p)
				time.Sleep(batchInterval)
				synctest.Wait()
				devices.away.Store(false)
				time.Sleep(unstoredDelay)
				compare(p)
				time.Sleep(batchInterval)
				synctest.Wait()
				stop()
				<-ended
				last := map[string]bool{}
				for range len(v.comings) {
					h := <-v.comings
					last[h.branch] = h.online
				}
				if len(last) != len(agents) || last["gangnam"] || last["hongdae"] {
					t.Errorf("the last stored announcements: %v, want both agents offline", last)
				}
				if len(p.unstored) != 0 {
					t.Errorf("still to be repeated: %v", p.unstored)
				}
			})
		})
	}
}

// orderedDevices records the calls for announcements and takeovers.
type orderedDevices struct {
	*verbs
	calls []string
}

func (o *orderedDevices) Announced(_ context.Context, announced []device.Announcement) error {
	for _, a := range announced {
		o.calls = append(o.calls, fmt.Sprint(a.Agent.Branch, " ", a.Online))
	}
	return nil
}

func (o *orderedDevices) TakenOver(_ context.Context, agent protocol.Agent) error {
	o.calls = append(o.calls, agent.Branch+" takeover")
	return nil
}

// TestBatchKeepsTheOrderOfABranch checks that a message that is handled alone does not pass an announcement of its branch.
func TestBatchKeepsTheOrderOfABranch(t *testing.T) {
	t.Parallel()
	v := newVerbs()
	devices := &orderedDevices{verbs: v}
	box := newInbox(v, devices, v, nil, slog.New(slog.DiscardHandler))
	box.handleSteady(t.Context(), []delivery{
		{from: to("gangnam"), kind: kindPresence, online: true}, {from: to("jamsil"), kind: kindTakeover},
		{from: to("gangnam"), kind: kindTakeover}, {from: to("gangnam"), kind: kindPresence},
	})
	want := []string{"jamsil takeover", "gangnam true", "gangnam takeover", "gangnam false"}
	if !slices.Equal(devices.calls, want) {
		t.Errorf("calls %q, want %q", devices.calls, want)
	}
}

// TestCredentialsTogether checks that connections that arrive during a database query share the next query.
func TestCredentialsTogether(t *testing.T) {
	t.Parallel()
	asked := make(chan []string)
	c := newCredentials(func(_ context.Context, usernames []string, found func(string, string, []byte, []byte)) error {
		asked <- usernames
		for _, name := range usernames {
			if name != "unauthenticated" {
				found(name, "of-"+name, nil, nil)
			}
		}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	find := func(username, branch string) {
		all.Go(func() {
			if got, err := c.find(ctx, username); err != nil || got.branch != branch {
				t.Errorf("%s is of %q, %v", username, got.branch, err)
			}
		})
	}
	find("a", "of-a")
	wait(t, "the first to ask", func() bool { return len(c.asked) == 1 })
	find("b", "of-b")
	find("unauthenticated", "")
	wait(t, "the others to wait", func() bool { return len(c.asked) == 3 })
	var working sync.WaitGroup
	working.Go(func() { _ = c.work(ctx) })
	if together := <-asked; len(together) != 3 {
		t.Errorf("asked for %v", together)
	}
	all.Wait()
	stop()
	working.Wait()
}
