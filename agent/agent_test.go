package agent_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/boardtest"
	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/agent/sensor"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// branch is an agent on a board with faults, connected to a real broker.
type branch struct {
	broker      *brokertest.Broker
	config      agent.Config
	board       agent.Board
	room, front *boardtest.Lock
	led         *transmitter
	lobby       *hygrometer
	stop        func()
	requests    int
}

func newBranch(t *testing.T) *branch {
	t.Helper()
	b := &branch{broker: brokertest.Start(t, brokertest.ReusableAddr(t)), room: new(boardtest.Lock), front: new(boardtest.Lock),
		led: new(transmitter), lobby: &hygrometer{reading: sensor.Reading{Celsius: 23.5, RelativeHumidity: 46.2}}}
	b.board = agent.Board{
		Locks: []agent.Lock{
			{Device: "front_1", Kind: protocol.DoorFront, Relay: b.front.Relay(), Sense: b.front.Sense()},
			{Device: "room_1", Kind: protocol.DoorRoom, Relay: b.room.Relay(), Sense: b.room.Sense()},
		},
		AirConditioners: []agent.AirConditioner{{Name: "main", Transmitter: b.led, Codes: &ir.CodeSet{Roots: []ir.Node{
			{Name: "off", Code: ir.Code{{CarrierHz: 38000, Durations: []uint32{1, 2, 3}}}},
			{Name: "cool", Children: []ir.Node{{Name: "24", Code: ir.Code{{CarrierHz: 38000, Durations: []uint32{4, 5, 6}}}}}},
		}}}},
		Sensors: []agent.Sensor{{Location: "lobby", Reader: b.lobby}, {Location: "disconnected", Reader: &hygrometer{err: errors.New("remote I/O error")}}},
	}
	b.config = agent.Config{Branch: "gangnam", BrokerURL: "mqtt://" + b.broker.Addr, Password: brokertest.Password,
		GrantKeys: brokertest.PublicKeys(), Version: "1.2.3", Logger: slog.New(slog.DiscardHandler)}
	return b
}

// start runs the agent until stop or the end of the test.
func (b *branch) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx, b.config, b.board) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(b.stop)
}

// online starts the agent and waits for its status.
func (b *branch) online(t *testing.T) protocol.Status {
	t.Helper()
	b.start(t)
	return brokertest.Await[protocol.Status](b.broker)
}

func (b *branch) newRequest() string {
	b.requests++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", b.requests)
}

func (b *branch) claim(request string, doors ...string) protocol.Claim {
	b.broker.Send("gangnam", protocol.Ask{RequestID: request, Doors: doors})
	return brokertest.Await[protocol.Claim](b.broker)
}

func grant(c protocol.Claim, pulse time.Duration, doors ...string) protocol.Grant {
	return protocol.Grant{Branch: "gangnam", RequestID: c.RequestID, Nonce: c.Nonce, Doors: doors, PulseMs: uint32(pulse.Milliseconds())}.Sign(brokertest.Key)
}

type transmitter struct {
	mu   sync.Mutex
	sent [][]uint32
	err  error
}

func (l *transmitter) Send(_ context.Context, _ int, durations []uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.sent = append(l.sent, durations)
	return nil
}

type hygrometer struct {
	reading sensor.Reading
	err     error
}

func (h *hygrometer) Read(context.Context) (sensor.Reading, error) { return h.reading, h.err }

func TestStatusDescribesTheBranch(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.front.Energize() // as after a crash
	got := b.online(t)
	if got.State != protocol.Online || got.AgentVersion != "1.2.3" || got.BootID == "" || got.Connection != 1 || time.Since(got.StartedAt) > time.Minute {
		t.Errorf("got status %+v", got)
	}
	v := got.Inventory
	if len(v.Doors) != 2 || v.Doors[0] != (protocol.Door{Device: "front_1", Kind: protocol.DoorFront, Sense: true}) {
		t.Errorf("got doors %+v", v.Doors)
	}
	if len(v.AirConditioners) != 1 || len(v.AirConditioners[0].Options) != 2 || v.AirConditioners[0].Options[1].Children[0].Name != "24" {
		t.Errorf("got air conditioners %+v", v.AirConditioners)
	}
	if len(v.Sensors) != 2 || v.Sensors[0] != "lobby" {
		t.Errorf("got sensors %v", v.Sensors)
	}
	if len(got.SelfTest) != 2 || got.SelfTest[0].OK || !got.SelfTest[1].OK {
		t.Errorf("got self-tests %+v", got.SelfTest)
	}
	if !b.front.Locked() {
		t.Error("the front door is still unlocked")
	}
	var telemetry protocol.Telemetry
	for len(telemetry.Events) == 0 { // readings arrive too
		telemetry = brokertest.Await[protocol.Telemetry](b.broker)
	}
	if len(telemetry.Events) != 1 || telemetry.Events[0].Kind != protocol.EventWasEnergized {
		t.Errorf("got telemetry %+v, want was-energized", telemetry)
	}
}

func TestUnlock(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	observed := make(chan protocol.Event, 10)
	b.config.Observe = func(e protocol.Event) { observed <- e }
	b.online(t)
	g := grant(b.claim(b.newRequest(), "front_1", "room_1"), time.Second, "front_1", "room_1")
	b.broker.Send("gangnam", g)
	opened := make(map[string]bool)
	for range 2 {
		r := brokertest.Await[protocol.Result](b.broker)
		if r.Outcome != protocol.Opened || r.RequestID != g.RequestID {
			t.Errorf("got result %+v", r)
		}
		opened[r.Device] = true
	}
	if !opened["front_1"] || !opened["room_1"] {
		t.Errorf("opened %v", opened)
	}
	if b.room.Locked() || b.front.Locked() {
		t.Error("locked during the pulse")
	}
	for range 2 {
		<-observed // energized
	}
	for range 2 {
		e := <-observed
		if e.Kind != protocol.EventReleased || e.EnergizedMs < 1000 || e.EnergizedMs > 1500 {
			t.Errorf("got event %+v", e)
		}
	}
	if !b.room.Locked() || !b.front.Locked() {
		t.Error("unlocked after the pulse")
	}
}

func TestRepeatedMessages(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.online(t)
	request := b.newRequest()
	claim := b.claim(request, "room_1")
	if again := b.claim(request, "room_1"); again != claim {
		t.Errorf("got claim %+v, want %+v again", again, claim)
	}
	g := grant(claim, time.Second, "room_1")
	b.broker.Send("gangnam", g)
	first := brokertest.Await[protocol.Result](b.broker)
	b.broker.Send("gangnam", g)
	if again := brokertest.Await[protocol.Result](b.broker); again != first {
		t.Errorf("got result %+v, want %+v again", again, first)
	}
	b.broker.Send("gangnam", protocol.Ask{RequestID: request, Doors: []string{"room_1"}})
	if again := brokertest.Await[protocol.Result](b.broker); again != first {
		t.Errorf("got result %+v, want %+v again", again, first)
	}
	if n := len(b.room.Pulses()); n != 1 {
		t.Errorf("got %d pulses", n)
	}
}

// TestKeyRotation replaces the grant keys: the old key opens nothing afterwards, not even after a restart.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.config.KeyFile = filepath.Join(t.TempDir(), "keys.json")
	boot := b.online(t).BootID
	own := protocol.Agent{Branch: "gangnam", Username: protocol.AgentID("gangnam")}
	next := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	list := protocol.KeyList{Epoch: 1, Keys: []string{base64.StdEncoding.EncodeToString(next.Public().(ed25519.PublicKey))}}
	b.broker.SendTo(own, list.Sign(next)) // not by a trusted key
	b.broker.SendTo(own, list.Sign(brokertest.Key))
	b.awaitStatus(boot, 1)
	for range 2 {
		claim := b.claim(b.newRequest(), "room_1")
		b.broker.Send("gangnam", grant(claim, time.Second, "room_1")) // by the old key
		g := protocol.Grant{Branch: "gangnam", RequestID: claim.RequestID, Nonce: claim.Nonce, Doors: []string{"room_1"}, PulseMs: 1000}
		b.broker.Send("gangnam", g.Sign(next))
		if r := brokertest.Await[protocol.Result](b.broker); r.Outcome != protocol.Opened {
			t.Errorf("got result %+v", r)
		}
		if n := len(b.room.Pulses()); n != 1 {
			t.Errorf("got %d pulses, want 1", n)
		}
		b.room = new(boardtest.Lock)
		b.board.Locks[1].Relay, b.board.Locks[1].Sense = b.room.Relay(), b.room.Sense()
		boot = b.restart(t, boot, 1)
	}
	older := protocol.KeyList{Epoch: 1, Keys: []string{base64.StdEncoding.EncodeToString(brokertest.PublicKeys()[0])}}
	b.broker.SendTo(own, older.Sign(next)) // replayed: not newer
	newer := protocol.KeyList{Epoch: 3, Keys: list.Keys}
	b.broker.SendTo(own, newer.Sign(next))
	b.awaitStatus(boot, 3)
	b.config.Username = protocol.AgentID("gangnam") + "-new" // enrolled again: the keys of the new credential count
	b.restart(t, boot, 0)
	b.broker.Send("gangnam", grant(b.claim(b.newRequest(), "room_1"), time.Second, "room_1"))
	if r := brokertest.Await[protocol.Result](b.broker); r.Outcome != protocol.Opened {
		t.Errorf("with a new credential: got result %+v", r)
	}
}

// awaitStatus waits for the status of a run of the agent with an epoch of the grant keys.
func (b *branch) awaitStatus(boot string, epoch uint64) {
	for {
		if s := brokertest.Await[protocol.Status](b.broker); s.State == protocol.Online && s.BootID == boot && s.KeyEpoch == epoch {
			return
		}
	}
}

// restart starts the agent again and waits for its status.
func (b *branch) restart(t *testing.T, boot string, epoch uint64) (newBoot string) {
	t.Helper()
	b.stop()
	b.start(t)
	for {
		if s := brokertest.Await[protocol.Status](b.broker); s.State == protocol.Online && s.BootID != boot && s.KeyEpoch == epoch {
			return s.BootID
		}
	}
}

// TestStopWaitsForOpenDoors stops the agent during a pulse, as an update does: it ends after the pulse, and serves another press meanwhile.
func TestStopWaitsForOpenDoors(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.config.StopDelay = 5 * time.Second
	b.online(t)
	press := func(device string) {
		b.broker.Send("gangnam", grant(b.claim(b.newRequest(), device), time.Second, device))
		if r := brokertest.Await[protocol.Result](b.broker); r.Outcome != protocol.Opened {
			t.Errorf("%s: got %+v, want opened", device, r)
		}
	}
	press("room_1")
	ended := make(chan struct{})
	go func() { defer close(ended); b.stop() }()
	press("front_1")
	<-ended
	for name, lock := range map[string]*boardtest.Lock{"room_1": b.room, "front_1": b.front} {
		if p := lock.Pulses(); len(p) != 1 || p[0].For < time.Second {
			t.Errorf("%s: got pulses %v, want one of a second", name, p)
		}
	}
}

// TestStopWaitsForAWhile stops an agent whose relay cannot be released, and one whose pulse is longer than the delay.
func TestStopWaitsForAWhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults boardtest.Faults
		pulse  time.Duration
		delay  time.Duration
	}{
		"relay stays driven": {boardtest.Faults{DeadLow: true}, time.Second, time.Minute},
		"long pulse":         {boardtest.Faults{}, protocol.MaxPulse, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBranch(t)
			b.config.StopDelay = c.delay
			b.online(t)
			b.room.Break(c.faults)
			b.broker.Send("gangnam", grant(b.claim(b.newRequest(), "room_1"), c.pulse, "room_1"))
			brokertest.Await[protocol.Result](b.broker)
			began := time.Now()
			b.stop()
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("the agent ended after %v", took)
			}
		})
	}
}

// TestLostLineEndsTheAgent checks that the agent ends, to be restarted by systemd, when a relay line that worked is lost.
func TestLostLineEndsTheAgent(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	done := make(chan error, 1)
	go func() { done <- agent.Run(t.Context(), b.config, b.board) }()
	if s := brokertest.Await[protocol.Status](b.broker); !s.SelfTest[1].OK {
		t.Errorf("got self-tests %+v", s.SelfTest)
	}
	b.room.Break(boardtest.Faults{Dead: true})
	if s := brokertest.Await[protocol.Status](b.broker); s.SelfTest[1].OK || !s.SelfTest[0].OK {
		t.Errorf("got self-tests %+v, want room_1 to fail", s.SelfTest)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "room_1") {
		t.Errorf("got %v, want a lost relay line of room_1", err)
	}
}

// TestWallClockIsIrrelevant runs the agent on a wall clock that jumps, as that of a Pi without a battery does.
func TestWallClockIsIrrelevant(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	var calls atomic.Int64
	b.config.Now = func() time.Time { return time.Unix(calls.Add(1)*3600, 0) }
	b.online(t)
	c := b.claim(b.newRequest(), "room_1")
	b.broker.Send("gangnam", grant(c, time.Second, "room_1"))
	if r := brokertest.Await[protocol.Result](b.broker); r.Outcome != protocol.Opened {
		t.Errorf("got result %+v", r)
	}
	late := b.claim(b.newRequest(), "front_1")
	time.Sleep(protocol.GrantAge + 50*time.Millisecond) // by the monotonic clock
	b.broker.Send("gangnam", grant(late, time.Second, "front_1"))
	if r := brokertest.Await[protocol.Result](b.broker); r.Outcome != protocol.Dropped {
		t.Errorf("got result %+v", r)
	}
	if n := len(b.front.Pulses()); n != 0 {
		t.Errorf("got %d pulses", n)
	}
}

func TestRestartedAgentRejectsOldGrant(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	before := b.online(t)
	g := grant(b.claim(b.newRequest(), "room_1"), time.Second, "room_1")
	b.stop()
	if s := brokertest.Await[protocol.Status](b.broker); s.State != protocol.Offline || s.BootID != before.BootID || s.Connection != before.Connection {
		t.Errorf("got status %+v, want offline", s)
	}
	if after := b.online(t); after.BootID == before.BootID {
		t.Error("the boot id did not change")
	}
	b.broker.Send("gangnam", g)
	if r := brokertest.Await[protocol.Result](b.broker); r.Outcome != protocol.Unknown || r.Nonce != g.Nonce {
		t.Errorf("got result %+v, want unknown", r)
	}
	if n := len(b.room.Pulses()); n != 0 {
		t.Errorf("got %d pulses, want none", n)
	}
}

// Each state of an update is published when it is announced, before the next regular look at it.
func TestUpdateStatusIsPublishedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	var status atomic.Pointer[protocol.UpdateStatus]
	changed := make(chan struct{}, 1)
	b.config.UpdateStatus, b.config.UpdateChanged = status.Load, changed
	b.online(t)
	for _, state := range []protocol.UpdateState{protocol.UpdateFailed, protocol.UpdateFetching, protocol.UpdateInstalling, protocol.UpdateFailed} {
		status.Store(&protocol.UpdateStatus{Version: "2.0.0", State: state})
		select {
		case changed <- struct{}{}:
		default:
		}
		begun := time.Now()
		got := brokertest.Await[protocol.Status](b.broker)
		if got.Update == nil || got.Update.State != state {
			t.Fatalf("got update %+v, want %s", got.Update, state)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("%s was published after %v", state, took)
		}
	}
}

func TestStopLocks(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.online(t)
	b.broker.Send("gangnam", grant(b.claim(b.newRequest(), "room_1"), protocol.MaxPulse, "room_1"))
	brokertest.Await[protocol.Result](b.broker)
	b.stop()
	if !b.room.Locked() {
		t.Error("unlocked after the agent has stopped")
	}
	// The last event is sent before the status offline.
	for {
		m := b.broker.Next(protocol.KindTelemetry, protocol.KindStatus)
		if m.Kind == protocol.KindStatus {
			t.Fatal("offline without the event released")
		}
		if e, err := protocol.Decode[protocol.Telemetry](m.Payload); err != nil || len(e.Events) > 0 && e.Events[len(e.Events)-1].Kind == protocol.EventReleased {
			break
		}
	}
}

func TestClimate(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.online(t)
	command := protocol.ClimateCommand{RequestID: b.newRequest(), AirConditionerID: protocol.LeafID("gangnam", "main", "cool", "24")}
	properties := packets.Properties{ResponseTopic: protocol.Topic("gangnam", protocol.KindClimateResult), CorrelationData: []byte("42"), MessageExpiryInterval: 7}
	for range 3 {
		b.broker.SendWith("gangnam", command, properties)
		m := b.broker.Next(protocol.KindClimateResult)
		r, err := protocol.Decode[protocol.ClimateResult](m.Payload)
		if err != nil || r.Outcome != protocol.ClimateSent || string(m.CorrelationData) != "42" {
			t.Errorf("result %+v, correlation %q, %v", r, m.CorrelationData, err)
		}
	}
	if len(b.led.sent) != 1 || b.led.sent[0][0] != 4 {
		t.Errorf("sent %v, want one signal", b.led.sent)
	}
	command = protocol.ClimateCommand{RequestID: b.newRequest(), AirConditionerID: protocol.LeafID("hongdae", "main", "cool", "24")}
	b.broker.Send("gangnam", command)
	if r := brokertest.Await[protocol.ClimateResult](b.broker); r.Outcome != protocol.ClimateUnknown {
		t.Errorf("another branch's leaf: %+v", r)
	}
	b.led.err = errors.New("ir-dead")
	command = protocol.ClimateCommand{RequestID: b.newRequest(), AirConditionerID: protocol.LeafID("gangnam", "main", "off")}
	b.broker.Send("gangnam", command)
	if r := brokertest.Await[protocol.ClimateResult](b.broker); r.Outcome != protocol.ClimateFailed || r.Detail == "" {
		t.Errorf("dead transmitter: %+v", r)
	}
}

// warnings records the warnings of an agent.
type warnings struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *warnings) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(line)
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestResponseTopic: the answer to a command belongs on the branch's topic, or on that of one of its credentials. Another one is logged.
func TestResponseTopic(t *testing.T) {
	t.Parallel()
	b, logged := newBranch(t), new(warnings)
	b.config.Logger = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b.online(t)
	own := protocol.Agent{Branch: "gangnam", Username: protocol.AgentID("gangnam")}
	for topic, foreign := range map[string]bool{
		"": false, protocol.Topic("gangnam", protocol.KindClimateResult): false, own.Topic(protocol.KindClimateResult): false,
		protocol.Topic("hongdae", protocol.KindClimateResult): true, "elsewhere": true,
	} {
		before := strings.Count(logged.String(), "response topic")
		b.broker.SendWith("gangnam", protocol.ClimateCommand{RequestID: b.newRequest(), AirConditionerID: protocol.LeafID("gangnam", "main", "off")},
			packets.Properties{ResponseTopic: topic, MessageExpiryInterval: 7})
		brokertest.Await[protocol.ClimateResult](b.broker)
		if got := strings.Count(logged.String(), "response topic") > before; got != foreign {
			t.Errorf("response topic %q: logged %t, want %t", topic, got, foreign)
		}
	}
}

func TestSensors(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.online(t)
	want := protocol.Reading{Location: "lobby", Celsius: 23.5, RelativeHumidity: 46.2}
	if m := brokertest.Await[protocol.Telemetry](b.broker); len(m.Readings) != 1 || m.Readings[0] != want {
		t.Errorf("got telemetry %+v", m)
	}
	b.broker.Send("gangnam", protocol.SensorsRead{RequestID: b.newRequest()})
	if m := brokertest.Await[protocol.SensorsReadings](b.broker); len(m.Readings) != 1 || m.Readings[0] != want {
		t.Errorf("got readings %+v", m)
	}
}

func TestMalformedMessagesAreIgnored(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.online(t)
	for kind := range protocol.Kinds() {
		if kind.FromCloud() {
			for _, payload := range []string{"", "null", "{}", `{"requestId":"x"}`, "\xff", "[[[["} {
				b.broker.SendRaw("gangnam", kind, []byte(payload), packets.Properties{})
			}
		}
	}
	b.claim(b.newRequest(), "room_1")
}

func TestInvalidConfig(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	for name, change := range map[string]func(*agent.Config, *agent.Board){
		"a wildcard branch": func(c *agent.Config, _ *agent.Board) { c.Branch = "+" },
		"no grant key":      func(c *agent.Config, _ *agent.Board) { c.GrantKeys = nil },
		"a short grant key": func(c *agent.Config, _ *agent.Board) {
			c.GrantKeys = brokertest.PublicKeys()[:1]
			c.GrantKeys[0] = c.GrantKeys[0][:5]
		},
		"an unknown scheme": func(c *agent.Config, _ *agent.Board) { c.BrokerURL = "http://broker" },
		"a password in it":  func(c *agent.Config, _ *agent.Board) { c.BrokerURL = "mqtt://a:b@broker" },
		"no broker":         func(c *agent.Config, _ *agent.Board) { c.BrokerURL = "" },
		"a lock on no relay": func(_ *agent.Config, b *agent.Board) {
			b.Locks = []agent.Lock{{Device: "room_1", Kind: protocol.DoorRoom}}
		},
		"a door of no kind": func(_ *agent.Config, b *agent.Board) {
			b.Locks = []agent.Lock{{Device: "roof_1", Kind: "roof", Relay: new(boardtest.Lock).Relay()}}
		},
		"a unit without codes":    func(_ *agent.Config, b *agent.Board) { b.AirConditioners = []agent.AirConditioner{{Name: "a"}} },
		"a place without sensor":  func(_ *agent.Config, b *agent.Board) { b.Sensors = []agent.Sensor{{Location: "a"}} },
		"two sensors at a place":  func(_ *agent.Config, b *agent.Board) { b.Sensors = []agent.Sensor{b.Sensors[0], b.Sensors[0]} },
		"a sensor without a name": func(_ *agent.Config, b *agent.Board) { b.Sensors = []agent.Sensor{{Reader: b.Sensors[0].Reader}} },
	} {
		config, board := b.config, b.board
		change(&config, &board)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := agent.Run(ctx, config, board); err == nil || ctx.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func TestAliveStopsWhileDriverHangs(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	beats := make(chan time.Time, 100)
	b.config.Alive = func() { beats <- time.Now() }
	b.online(t)
	<-beats
	<-beats
	hang := make(chan struct{})
	b.room.Break(boardtest.Faults{Hang: hang})
	b.broker.Send("gangnam", grant(b.claim(b.newRequest(), "room_1"), time.Second, "room_1"))
	time.Sleep(3 * time.Second)
	for len(beats) > 0 {
		<-beats
	}
	time.Sleep(2500 * time.Millisecond)
	if len(beats) > 0 {
		t.Error("alive while the driver hangs")
	}
	close(hang)
	<-beats
}

// TestUnitsOfOneModel checks that the status has room for an air conditioner in each of many rooms.
func TestUnitsOfOneModel(t *testing.T) {
	t.Parallel()
	codes, ok := ir.Remote("lg")
	if !ok {
		t.Fatal("no remote lg")
	}
	var board agent.Board
	for i := range 24 {
		board.AirConditioners = append(board.AirConditioners, agent.AirConditioner{Name: fmt.Sprintf("%d번 룸", i+1), Codes: codes, Transmitter: new(transmitter)})
	}
	if err := board.Check(); err != nil {
		t.Error(err)
	}
}
