package broker

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/protocol"
)

const foreignClaim = `{"requestId":"11111111-2222-4333-8444-555555555555","nonce":"AAAAAAAAAAAAAAAAAAAAAA"}`

func TestForeignTopicsAreOutOfReach(t *testing.T) {
	t.Parallel()
	b := start(t)
	a := b.agent(t, "gangnam")
	receive(t, b.devices) // the agent's status
	ctx := t.Context()
	for _, topic := range []string{
		"yeolda/v1/hongdae/door/claim", "yeolda/v1/hongdae/status", "yeolda/v1/gangnam/door/grant",
		"yeolda/v1/gangnam/unknown", "yeolda/v2/gangnam/door/claim", "anything",
	} {
		response, err := a.Client().Publish(ctx, &paho.Publish{Topic: topic, QoS: 1, Payload: []byte(foreignClaim)})
		if err == nil || response == nil || response.ReasonCode != 0x87 {
			t.Errorf("publish to %s: %+v, %v; want not authorized", topic, response, err)
		}
		if _, err := a.Client().Publish(ctx, &paho.Publish{Topic: topic, Payload: []byte(foreignClaim)}); err != nil {
			t.Fatal(err)
		}
	}
	// mochi drops this packet without an answer.
	if _, err := a.Client().Publish(ctx, &paho.Publish{Topic: "$SYS/broker/version", Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	// This client ignores the CONNACK, because paho itself rejects wildcards if a broker offers none.
	rude := dial(t, b.addr)
	if _, err := rude.Write(connectPacket("agent-hongdae", "agent-hongdae", "agent-hongdae-demo", 5, 10)); err != nil {
		t.Fatal(err)
	}
	if _, err := packets.ReadPacket(rude); err != nil {
		t.Fatal(err)
	}
	for _, filter := range []string{
		"yeolda/v1/gangnam/door/ask", "yeolda/v1/+/door/ask", "yeolda/v1/hongdae/#", "yeolda/v1/hongdae/door/+", "#", "+/#",
		"$SYS/#", "$share/g/yeolda/v1/hongdae/door/ask", "yeolda/v1/hongdae/door/claim", "yeolda/v1/hongdae/status",
	} {
		subscribe := packets.NewControlPacket(packets.SUBSCRIBE)
		content := subscribe.Content.(*packets.Subscribe)
		content.PacketID, content.Subscriptions = 1, []packets.SubOptions{{Topic: filter, QoS: 1}}
		if _, err := subscribe.WriteTo(rude); err != nil {
			t.Fatal(err)
		}
		answer, err := packets.ReadPacket(rude)
		if err != nil {
			t.Fatalf("%s: %v", filter, err)
		}
		if suback, ok := answer.Content.(*packets.Suback); !ok || suback.Reasons[0] != 0x87 {
			t.Errorf("%s: %v, want not authorized", filter, answer.Content)
		}
	}
	// The messages published before this one were not delivered.
	if err := a.Publish(protocol.Telemetry{At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if h := receive(t, b.devices); h.message.Kind() != protocol.KindTelemetry {
		t.Errorf("got %+v", h)
	}
	select {
	case h := <-b.doors:
		t.Errorf("got %+v", h)
	default:
	}
}

func TestNothingButAStatusMaySayRetain(t *testing.T) {
	t.Parallel()
	b := start(t)
	a := b.agent(t, "gangnam")
	receive(t, b.devices) // the agent's status
	topic := protocol.Topic("gangnam", protocol.KindTelemetry)
	payload := []byte(`{"at":"2026-11-21T00:00:00Z"}`)
	if response, err := a.Client().Publish(t.Context(), &paho.Publish{Topic: topic, QoS: 1, Retain: true, Payload: payload}); err == nil || response.ReasonCode != 0x87 {
		t.Errorf("retained telemetry at QoS 1: %+v, %v", response, err)
	}
	// mochi publishes a QoS 0 message that a hook rejects, unless the hook returns ErrRejectPacket.
	if _, err := a.Client().Publish(t.Context(), &paho.Publish{Topic: topic, Retain: true, Payload: payload}); err != nil {
		t.Fatal(err)
	}
	if err := a.Publish(protocol.Status{State: protocol.Online, BootID: "second", Inventory: &protocol.Inventory{}}); err != nil {
		t.Fatal(err)
	}
	if h := receive(t, b.devices); h.message.Kind() != protocol.KindStatus {
		t.Errorf("got %+v", h)
	}
	for topic := range b.server.Topics.Retained.GetAll() {
		if !strings.HasPrefix(topic, "$SYS/") {
			t.Errorf("%s is retained although no client may read it", topic)
		}
	}
}

func TestQoS2AndTopicAliasesAreNotOffered(t *testing.T) {
	t.Parallel()
	b := start(t)
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	client := paho.NewClient(paho.ClientConfig{ClientID: "agent-gangnam", Conn: conn})
	ack, err := client.Connect(t.Context(), &paho.Connect{ClientID: "agent-gangnam", Username: "agent-gangnam",
		UsernameFlag: true, Password: []byte("agent-gangnam-demo"), PasswordFlag: true, KeepAlive: 0, CleanStart: false,
		Properties: &paho.ConnectProperties{SessionExpiryInterval: ptr(uint32(3600)), ReceiveMaximum: ptr(uint16(20))}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(&paho.Disconnect{}) }()
	p := ack.Properties
	if p.MaximumQoS == nil || *p.MaximumQoS != 1 {
		t.Errorf("maximum QoS %v, want 1", p.MaximumQoS)
	}
	if p.TopicAliasMaximum != nil && *p.TopicAliasMaximum != 0 {
		t.Errorf("topic alias maximum %d, want none", *p.TopicAliasMaximum)
	}
	if p.SessionExpiryInterval == nil || *p.SessionExpiryInterval != 0 {
		t.Errorf("session expiry %v, want 0", p.SessionExpiryInterval)
	}
	if p.ServerKeepAlive == nil || *p.ServerKeepAlive != maxKeepAlive {
		t.Errorf("server keep-alive %v, want %d", p.ServerKeepAlive, maxKeepAlive)
	}
}

// TestQoS2EndsTheConnection publishes with QoS 2, which the broker does not offer [MQTT-3.2.2-11].
func TestQoS2EndsTheConnection(t *testing.T) {
	t.Parallel()
	b := start(t)
	rude := dial(t, b.addr)
	if _, err := rude.Write(connectPacket("agent-hongdae", "agent-hongdae", "agent-hongdae-demo", 5, 10)); err != nil {
		t.Fatal(err)
	}
	publish := packets.NewControlPacket(packets.PUBLISH)
	content := publish.Content.(*packets.Publish)
	content.Topic, content.QoS, content.PacketID, content.Payload = protocol.Topic("hongdae", protocol.KindDoorClaim), 2, 1, []byte(foreignClaim)
	if _, err := packets.ReadPacket(rude); err != nil {
		t.Fatal(err)
	}
	if _, err := publish.WriteTo(rude); err != nil {
		t.Fatal(err)
	}
	answer, err := packets.ReadPacket(rude)
	if err != nil {
		t.Fatal(err)
	}
	if end, ok := answer.Content.(*packets.Disconnect); !ok || end.ReasonCode != 0x9B {
		t.Errorf("got %+v, want the end of the connection, as QoS 2 is not there", answer.Content)
	}
	wait(t, "the end of the session", func() bool { return len(b.Online("hongdae")) == 0 })
	if len(b.doors) != 0 {
		t.Errorf("handed over: %+v", <-b.doors)
	}
}

func ptr[T any](v T) *T { return &v }

func TestMQTT3IsRefused(t *testing.T) {
	t.Parallel()
	b := start(t)
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(connectPacket("agent-gangnam", "agent-gangnam", "agent-gangnam-demo", 4, 10)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4)
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Read(answer); err != nil || answer[0] != 0x20 || answer[3] == 0 {
		t.Errorf("answer % x, %v; want a CONNACK that refuses", answer, err)
	}
}

func TestTakeover(t *testing.T) {
	t.Parallel()
	b := start(t)
	first := b.agent(t, "gangnam")
	receive(t, b.devices)
	second := b.agent(t, "gangnam")
	select {
	case <-first.Gone():
	case <-time.After(time.Minute):
		t.Fatal("the first is still connected")
	}
	if reason := first.Reason(); reason != 0x8e {
		t.Errorf("reason %#x, want session taken over", reason)
	}
	if h := receive(t, b.devices); h.message.(protocol.Status).State != protocol.Online {
		t.Error("the will of the first came through")
	}
	id := b.ask(t, "gangnam")
	second.Until(t, "the ask", func() bool { return second.Asked(id) > 0 })
	if len(b.Online("gangnam")) == 0 {
		t.Error("offline after a takeover")
	}
	if h := receive(t, b.comings); !h.online {
		t.Errorf("presence %+v", h)
	}
	select {
	case h := <-b.comings:
		t.Errorf("a takeover changed the presence: %+v", h)
	case h := <-b.devices:
		t.Errorf("got %+v", h)
	default:
	}
}

func TestMessagesReachTheAddressedAgentOnly(t *testing.T) {
	t.Parallel()
	b := start(t)
	first := b.agent(t, "gangnam")
	// The second one uses the topics of the branch, like agents of the previous release.
	second := agenttest.Connect(t, agenttest.Config{Branch: "gangnam", ClientID: "agent-gangnam-2", Dial: agenttest.TCP(b.addr), BranchTopics: true})
	wait(t, "both", func() bool { return len(b.Online("gangnam")) == 2 })
	standby := protocol.Peer{Agent: protocol.Agent{Branch: "gangnam", Username: "agent-gangnam-2"}}
	const one, two = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
	for id, peer := range map[string]protocol.Peer{one: to("gangnam"), two: standby} {
		if err := b.Send(peer, protocol.Ask{RequestID: id, Doors: []string{"front_1"}}); err != nil {
			t.Fatal(err)
		}
	}
	first.Until(t, "its ask", func() bool { return first.Asked(one) > 0 })
	second.Until(t, "its ask", func() bool { return second.Asked(two) > 0 })
	claims := map[string]string{}
	for range 2 {
		h := receive(t, b.doors)
		claims[h.message.(protocol.Claim).RequestID] = h.from.Username
		// The broker delivers an answer to the session that claimed, but not to an earlier session of the credential.
		if err := b.Send(protocol.Peer{Agent: h.from.Agent, Session: h.from.Session + 10}, protocol.Deny{RequestID: one, Nonce: protocol.NewNonce()}); err != nil {
			t.Fatal(err)
		}
		if err := b.Send(h.from, protocol.Deny{RequestID: two, Nonce: protocol.NewNonce()}); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[string]string{one: "agent-gangnam", two: "agent-gangnam-2"}; !maps.Equal(claims, want) {
		t.Errorf("claims of %v, want %v", claims, want)
	}
	for _, a := range []*agenttest.Agent{first, second} {
		a.Until(t, "the deny", func() bool { return len(a.Denied()) > 0 })
		if denied := a.Denied(); len(denied) != 1 || denied[0].RequestID != two {
			t.Errorf("denied %+v, want only the one for its session", denied)
		}
	}
	if first.Asked(two)+second.Asked(one) != 0 {
		t.Error("an agent received the ask of another one")
	}
	first.Close()
	wait(t, "the first to leave", func() bool { return slices.Equal(b.Online("gangnam"), []string{"agent-gangnam-2"}) })
}

func TestTakeoverByAnotherMachine(t *testing.T) {
	t.Parallel()
	b := start(t)
	first := b.agent(t, "gangnam")
	for name, tc := range map[string]struct {
		boot string
		want int
	}{"the same machine": {"boot", 0}, "another machine": {"other", 1}} {
		second := agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(b.addr), BootID: tc.boot})
		<-first.Gone()
		receive(t, b.devices)
		for range tc.want {
			select {
			case agent := <-b.takeovers:
				if agent != to("gangnam").Agent {
					t.Errorf("%s: taken over %v", name, agent)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: no takeover", name)
			}
		}
		second.Close()
		if n := len(b.takeovers); n != 0 {
			t.Errorf("%s: %d takeovers, want %d", name, n+tc.want, tc.want)
		}
		wait(t, "the second to leave", func() bool { return b.Stats().Sessions == 0 })
		first = b.agent(t, "gangnam")
	}
}

func TestWillOfALostAgent(t *testing.T) {
	t.Parallel()
	b := start(t)
	var line net.Conn
	agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: func() (c net.Conn, err error) {
		line, err = net.Dial("tcp", b.addr)
		return line, err
	}})
	receive(t, b.devices)
	_ = line.(*net.TCPConn).SetLinger(0) // a reset, without a DISCONNECT
	_ = line.Close()
	if h := receive(t, b.devices); h.message.(protocol.Status).State != protocol.Offline {
		t.Errorf("got %+v", h)
	}
	wait(t, "offline", func() bool { return len(b.Online("gangnam")) == 0 })
}

func TestSilenceIsOffline(t *testing.T) {
	t.Parallel()
	var clock fakeClock
	clock.set(time.Now())
	b := start(t, func(_ *running, cfg *Config) { cfg.Now = clock.now })
	a := b.agent(t, "gangnam")
	receive(t, b.devices)
	receive(t, b.comings)
	began := clock.now()
	clock.set(began.Add(protocol.OfflineTimeout - time.Millisecond))
	if len(b.Online("gangnam")) == 0 {
		t.Error("offline too early")
	}
	clock.set(began.Add(protocol.OfflineTimeout + time.Second))
	if len(b.Online("gangnam")) > 0 {
		t.Error("online after silence")
	}
	if h := receive(t, b.comings); h.online {
		t.Errorf("presence %+v", h)
	}
	if err := a.Publish(protocol.Heartbeat{BootID: "boot", Connection: 1}); err != nil {
		t.Fatal(err)
	}
	if h := receive(t, b.comings); !h.online {
		t.Errorf("presence %+v", h)
	}
}

// TestLostEntryKeepsTheSubscriptions deletes an agent from mochi's list of clients, which mochi does when an earlier connection ends
// at the wrong moment. The agent must still receive messages.
func TestLostEntryKeepsTheSubscriptions(t *testing.T) {
	t.Parallel()
	b := start(t)
	a := b.agent(t, "gangnam")
	b.server.Clients.Delete("agent-gangnam")
	id := b.ask(t, "gangnam")
	a.Until(t, "the ask", func() bool { return a.Asked(id) > 0 })
}

// An agent receives only kinds it has subscribed to, and mochi keeps no subscription.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	b := start(t)
	a := b.agent(t, "gangnam")
	ask := to("gangnam").Topic(protocol.KindDoorAsk)
	unsubscribe := func(topic string, want byte) {
		t.Helper()
		answer, err := a.Client().Unsubscribe(t.Context(), &paho.Unsubscribe{Topics: []string{topic}})
		if answer == nil || len(answer.Reasons) != 1 || answer.Reasons[0] != want {
			t.Errorf("answer %+v, %v, want reason %#x", answer, err, want)
		}
	}
	if len(b.server.Topics.Subscribers(ask).Subscriptions) != 0 {
		t.Error("mochi keeps the subscription")
	}
	unsubscribe(protocol.Topic("hongdae", protocol.KindDoorAsk), 0x11)
	first := b.ask(t, "gangnam")
	a.Until(t, "the ask", func() bool { return a.Asked(first) > 0 })
	unsubscribe(ask, 0)
	const second = "99999999-2222-4333-8444-555555555555"
	if err := b.Send(to("gangnam"), protocol.Ask{RequestID: second, Doors: []string{"front_1"}}); err != nil {
		t.Fatal(err)
	}
	unsubscribe(ask, 0x11) // a round trip after the ask
	if a.Asked(second) != 0 {
		t.Error("received an ask without a subscription")
	}
	if _, err := a.Client().Subscribe(t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: ask}}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Send(to("gangnam"), protocol.Ask{RequestID: second, Doors: []string{"front_1"}}); err != nil {
		t.Fatal(err)
	}
	a.Until(t, "the ask", func() bool { return a.Asked(second) > 0 })
}

func TestSlowVerbDelaysNoPuback(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	b := start(t, func(r *running, _ *Config) { r.hold = hold })
	a := b.agent(t, "gangnam")
	defer close(hold)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var claims sync.WaitGroup
	for range urgentWorkers + 10 {
		claims.Go(func() {
			_, err := a.Client().Publish(ctx, &paho.Publish{Topic: protocol.Topic("gangnam", protocol.KindDoorClaim), QoS: 1,
				Payload: []byte(foreignClaim)})
			if err != nil {
				t.Errorf("PUBACK waits for the verb: %v", err)
			}
		})
	}
	claims.Wait()
}

func receiveMaximum20(c *paho.Connect) {
	c.Properties = &paho.ConnectProperties{ReceiveMaximum: ptr(uint16(20))}
}
