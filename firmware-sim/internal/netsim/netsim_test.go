package netsim_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/firmware-sim/internal/cloudtest"
	"github.com/yeolda/yeolda/firmware-sim/internal/netsim"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout ends the wait for an event that does not come.
const testTimeout = 30 * time.Second

// tap notes the messages that pass.
type tap struct {
	mu     sync.Mutex
	events []string
	news   chan struct{}
}

func (p *tap) note(event string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, event)
	close(p.news)
	p.news = make(chan struct{})
}

func kindOf(topic string) string {
	_, kind, _ := protocol.ParseTopic(topic)
	return string(kind)
}

func (p *tap) FromAgent(topic string, _ []byte) { p.note("from " + kindOf(topic)) }
func (p *tap) ToAgent(topic string, _ []byte)   { p.note("to " + kindOf(topic)) }
func (p *tap) Acked(topic string)               { p.note("acked " + kindOf(topic)) }
func (p *tap) Down()                            { p.note("down") }

func (p *tap) wait(t *testing.T, event string) {
	t.Helper()
	late := time.After(testTimeout)
	for {
		p.mu.Lock()
		all, news := strings.Join(p.events, "; "), p.news
		p.mu.Unlock()
		if strings.Contains(all, event) {
			return
		}
		select {
		case <-news:
		case <-late:
			t.Fatalf("no %q; there was: %s", event, all)
		}
	}
}

type fixture struct {
	cloud *cloudtest.Cloud
	link  *netsim.Link
	cable *netsim.Cable
	tap   *tap
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{cloud: cloudtest.New(t), tap: &tap{news: make(chan struct{})}}
	var err error
	if f.link, err = netsim.New([]*url.URL{f.cloud.URL}, func() netsim.Tap { return f.tap }); err != nil {
		t.Fatal(err)
	}
	f.cable = f.link.Plug()
	t.Cleanup(func() {
		f.cable.Pull()
		f.link.Close()
	})
	return f
}

// client is an agent of branch a that speaks only MQTT.
type client struct {
	*paho.Client
	got   chan string // kinds of the messages received
	ids   chan string // and their requests
	ended chan error
}

func (f *fixture) connect(t *testing.T, keepAlive uint16) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	conn, err := f.cable.Dial(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	return logIn(t, conn, keepAlive)
}

func logIn(t *testing.T, conn net.Conn, keepAlive uint16) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	c := &client{got: make(chan string, 256), ids: make(chan string, 256), ended: make(chan error, 2)}
	c.Client = paho.NewClient(paho.ClientConfig{
		Conn: conn,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			c.got <- kindOf(p.Packet.Topic)
			if ask, err := protocol.Decode[protocol.Ask](p.Packet.Payload); err == nil {
				c.ids <- ask.RequestID
			}
			return true, nil
		}},
		OnClientError: func(err error) { c.ended <- err },
	})
	if _, err := c.Connect(ctx, &paho.Connect{ClientID: "agent-a", CleanStart: true, KeepAlive: keepAlive}); err != nil {
		t.Fatal(err)
	}
	var s paho.Subscribe
	for filter := range (protocol.Agent{Branch: "a"}).Filters() {
		s.Subscriptions = append(s.Subscriptions, paho.SubscribeOptions{Topic: filter})
	}
	if _, err := c.Subscribe(ctx, &s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(&paho.Disconnect{}) })
	return c
}

// heartbeat publishes a heartbeat and reports whether the broker acknowledged it in time.
func (c *client) heartbeat(t *testing.T, within time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err := c.Publish(ctx, &paho.Publish{
		Topic: protocol.Topic("a", protocol.KindHeartbeat), QoS: 1, Payload: []byte(`{"bootId":"b","connection":1,"uptimeMs":1}`),
	})
	return err
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(testTimeout):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

func TestPacketsPassBothWays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.connect(t, 30)
	f.cloud.Unlock("a", "front_1")
	if got := receive(t, "message", c.got); got != "door/ask" {
		t.Errorf("got %s", got)
	}
	if err := c.heartbeat(t, testTimeout); err != nil {
		t.Error(err)
	}
	f.tap.wait(t, "to door/ask; from heartbeat; acked heartbeat")
	_ = c.Disconnect(&paho.Disconnect{})
	f.tap.wait(t, "down")
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.connect(t, 30)
	f.link.Set(netsim.Conditions{Duplicate: true})
	f.cloud.Unlock("a", "front_1")
	receive(t, "message", c.got)
	receive(t, "second message", c.got)
}

// TestReorder checks that messages overtake each other in both directions, that each arrives once, and that other
// packets keep their order.
func TestReorder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.connect(t, 30)
	f.link.Set(netsim.Conditions{Reorder: 200 * time.Millisecond})
	const n = 12
	ids := make(map[string]int, n)
	for i := range n {
		ids[f.cloud.Unlock("a", "front_1")] = i
	}
	inOrder := true
	for last, left := -1, n; left > 0; left-- {
		i, known := ids[receive(t, "message", c.ids)]
		if !known {
			t.Fatal("got a duplicate message, or one that was never sent")
		}
		for id, j := range ids {
			if i == j {
				delete(ids, id)
			}
		}
		inOrder = inOrder && i > last
		last = i
	}
	if inOrder { // probability 1 in 12!
		t.Error("no message to the agent overtook another")
	}

	var sending sync.WaitGroup
	for range n {
		sending.Go(func() {
			if err := c.heartbeat(t, testTimeout); err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
}

func TestLoss(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.connect(t, 30)
	f.link.Set(netsim.Conditions{Loss: 1})
	f.cloud.Unlock("a", "front_1")
	if err := c.heartbeat(t, time.Second); err == nil {
		t.Error("a lost message was acknowledged")
	}
	if n := len(c.got); n > 0 {
		t.Errorf("%d messages came through", n)
	}
	f.link.Set(netsim.Conditions{Loss: 0.5})
	const n = 200
	sent := make(map[string]bool, n)
	for range n {
		sent[f.cloud.Unlock("a", "front_1")] = true
	}
	for range 50 { // one of these arrives, and after those before it
		f.cloud.Unlock("a", "front_2")
	}
	got := 0
	for sent[receive(t, "message", c.ids)] {
		got++
	}
	if got < n/4 || got > 3*n/4 { // 7 standard deviations
		t.Errorf("%d of %d messages came through, want about half", got, n)
	}
}

func TestLagDelaysEachWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.connect(t, 30)
	const lag = 500 * time.Millisecond
	f.link.Set(netsim.Conditions{Lag: lag})
	start := time.Now()
	if err := c.heartbeat(t, testTimeout); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 2*lag {
		t.Errorf("a round trip took %v, want at least %v", took, 2*lag)
	}
	start = time.Now()
	for range 5 {
		f.cloud.Unlock("a", "front_1")
	}
	for range 5 {
		receive(t, "message", c.got)
	}
	if took := time.Since(start); took < lag {
		t.Errorf("five messages took %v, want at least %v", took, lag)
	}
}

// TestCutIsABlackHole checks that a cut passes nothing and closes nothing, and that the connection stays dead after the
// cut until its keep-alive expires.
func TestCutIsABlackHole(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.connect(t, 1)
	f.link.Set(netsim.Conditions{Cut: true})
	f.tap.wait(t, "down")
	f.cloud.Unlock("a", "front_1")
	if err := c.heartbeat(t, time.Second); err == nil {
		t.Error("a publish was acknowledged during a cut")
	}
	f.link.Set(netsim.Conditions{})
	f.cloud.Unlock("a", "front_2")
	if err := receive(t, "end by keep-alive", c.ended); err == nil {
		t.Error("the connection ended without an error")
	}
	if n := len(c.got); n > 0 {
		t.Errorf("%d messages of the cut arrived later", n)
	}
	if n := f.cloud.Count(func(m cloudtest.Message) bool { return m.Kind == protocol.KindHeartbeat }); n > 0 {
		t.Errorf("%d heartbeats of the cut reached the cloud", n)
	}
	// The test broker can remove a new connection's subscriptions together with the old connection
	// (cloud/internal/broker avoids that), so a second new connection may be needed.
	for range 5 {
		again := f.connect(t, 30)
		f.cloud.Unlock("a", "front_1")
		select {
		case <-again.got:
			return
		case <-time.After(time.Second):
		}
	}
	t.Error("no message on a new connection")
}

func TestDialInACutHangs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.link.Set(netsim.Conditions{Cut: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.cable.Dial(ctx, nil); err == nil {
		t.Fatal("a dial succeeded during the cut")
	}
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		conn, err := f.cable.Dial(t.Context(), nil)
		done <- dialled{conn, err}
	}()
	f.link.Set(netsim.Conditions{})
	d := receive(t, "dial after the cut", done)
	if d.err != nil {
		t.Fatal(d.err)
	}
	logIn(t, d.conn, 30)
}

// TestPull checks that the agent's end is closed and the broker gets no DISCONNECT.
func TestPull(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.connect(t, 30)
	f.cable.Pull()
	if err := receive(t, "end of the connection", c.ended); err == nil {
		t.Error("the connection ended without an error")
	}
	if _, err := f.cable.Dial(t.Context(), nil); err == nil {
		t.Error("Dial on a pulled cable succeeded")
	}
	f.cable = f.link.Plug()
	f.connect(t, 30)
}

func TestNewRefusesOtherSchemes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	u := *f.cloud.URL
	u.Scheme = "ws"
	if _, err := netsim.New([]*url.URL{&u}, nil); err == nil {
		t.Error("New accepted a WebSocket broker")
	}
}
