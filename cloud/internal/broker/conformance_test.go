package broker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/protocol"
)

// party is an MQTT v5 client that is not one of our agents. It records the messages it receives.
type party struct {
	*paho.Client
	connack  *paho.Connack
	received chan *paho.Publish
	gone     chan byte // reason of the broker's DISCONNECT
}

// attend connects as the agent of gangnam, with the modifications of change.
func attend(t *testing.T, b *running, change func(*paho.Connect)) (*party, error) {
	t.Helper()
	conn, err := agenttest.TCP(b.addr)()
	if err != nil {
		t.Fatal(err)
	}
	p := &party{received: make(chan *paho.Publish, 100), gone: make(chan byte, 1)}
	p.Client = paho.NewClient(paho.ClientConfig{Conn: packets.NewThreadSafeConn(conn), PacketTimeout: 3 * time.Second,
		OnPublishReceived:  []func(paho.PublishReceived) (bool, error){func(r paho.PublishReceived) (bool, error) { p.received <- r.Packet; return true, nil }},
		OnServerDisconnect: func(d *paho.Disconnect) { p.gone <- d.ReasonCode },
	})
	connect := &paho.Connect{ClientID: "agent-gangnam", Username: "agent-gangnam", UsernameFlag: true, Password: []byte("agent-gangnam-demo"),
		PasswordFlag: true, KeepAlive: 10, CleanStart: true, Properties: &paho.ConnectProperties{}}
	if change != nil {
		change(connect)
	}
	p.connack, err = p.Connect(t.Context(), connect)
	t.Cleanup(func() { _ = conn.Close() })
	return p, err
}

func (p *party) publish(t *testing.T, publish *paho.Publish) byte {
	t.Helper()
	answer, err := p.Publish(t.Context(), publish)
	if answer == nil {
		t.Fatal(err)
	}
	return answer.ReasonCode
}

func (p *party) subscribe(t *testing.T, filters ...string) []byte {
	t.Helper()
	request := &paho.Subscribe{}
	for _, f := range filters {
		request.Subscriptions = append(request.Subscriptions, paho.SubscribeOptions{Topic: f, QoS: 1})
	}
	answer, err := p.Subscribe(t.Context(), request)
	if answer == nil {
		t.Fatal(err)
	}
	return answer.Reasons
}

// TestInteroperabilityCases covers the 27 cases of Eclipse Paho's MQTT v5 suite (client_test5.py) by name. The suite itself
// cannot run against this broker, because its two clients exchange messages over topics that an agent may not use. Each case
// is checked with a permitted client. If the broker rejects something by design, the test expects the rejection that the
// standard defines, and its announcement where the standard has one.
func TestInteroperabilityCases(t *testing.T) {
	t.Parallel()
	topic := func(kind protocol.Kind) string { return protocol.Topic("gangnam", kind) }
	ask := topic(protocol.KindDoorAsk)
	heartbeat := []byte(`{"bootId":"boot","connection":1}`)
	for name, check := range map[string]func(t *testing.T, b *running, p *party){
		"basic": func(t *testing.T, b *running, p *party) {
			if got := p.subscribe(t, ask); got[0] != 0 && got[0] != 1 {
				t.Errorf("SUBACK %v", got)
			}
			id := b.ask(t, "gangnam")
			if m := <-p.received; m.Topic != ask || !strings.Contains(string(m.Payload), id) || m.QoS != 0 || m.Retain {
				t.Errorf("received %+v", m)
			}
			if code := p.publish(t, &paho.Publish{Topic: topic(protocol.KindHeartbeat), QoS: 1, Payload: heartbeat}); code != 0 {
				t.Errorf("PUBACK %#x", code)
			}
			if err := p.Disconnect(&paho.Disconnect{}); err != nil {
				t.Error(err)
			}
			wait(t, "the end of the session", func() bool { return len(b.Online("gangnam")) == 0 })
		},
		"retained_message": func(t *testing.T, b *running, p *party) { // a status may be retained; no client may subscribe to one
			if code := p.publish(t, &paho.Publish{Topic: topic(protocol.KindStatus), QoS: 1, Retain: true, Payload: []byte(`{"state":"offline","bootId":"boot","connection":1}`)}); code != 0 {
				t.Errorf("PUBACK %#x", code)
			}
			if got := p.subscribe(t, topic(protocol.KindStatus)); got[0] != 0x87 {
				t.Errorf("SUBACK %#x, want not authorized", got)
			}
		},
		"offline_message_queueing": nothingIsKept,
		"redelivery_on_reconnect":  nothingIsKept,
		"session_expiry":           nothingIsKept,
		"will_message": func(t *testing.T, b *running, _ *party) {
			p, err := attend(t, b, func(c *paho.Connect) {
				c.WillMessage = &paho.WillMessage{Topic: topic(protocol.KindStatus), QoS: 1, Payload: []byte(`{"state":"offline","bootId":"boot","connection":1}`)}
			})
			if err != nil {
				t.Fatal(err)
			}
			_ = p.Disconnect(&paho.Disconnect{ReasonCode: packets.DisconnectDisconnectWithWillMessage})
			if h := receive(t, b.devices); h.message.(protocol.Status).State != protocol.Offline {
				t.Errorf("got %+v", h)
			}
		},
		"will_delay": func(t *testing.T, b *running, _ *party) { // a will may be sent before its delay [MQTT-3.1.3-9]; this broker sends it at once
			p, err := attend(t, b, func(c *paho.Connect) {
				c.WillMessage = &paho.WillMessage{Topic: topic(protocol.KindStatus), QoS: 1, Payload: []byte(`{"state":"offline","bootId":"boot","connection":1}`)}
				c.WillProperties = &paho.WillProperties{WillDelayInterval: ptr(uint32(60))}
			})
			if err != nil {
				t.Fatal(err)
			}
			_ = p.Disconnect(&paho.Disconnect{ReasonCode: packets.DisconnectDisconnectWithWillMessage})
			if h := receive(t, b.devices); h.message.(protocol.Status).State != protocol.Offline {
				t.Errorf("got %+v", h)
			}
		},
		"zero_length_clientid": idsAreCredentials,
		"assigned_clientid":    idsAreCredentials,
		"overlapping_subscriptions": func(t *testing.T, b *running, p *party) { // without wildcards a topic has one filter; a repetition has no effect
			p.subscribe(t, ask)
			p.subscribe(t, ask)
			b.ask(t, "gangnam")
			<-p.received
			p.publish(t, &paho.Publish{Topic: topic(protocol.KindHeartbeat), QoS: 1, Payload: heartbeat}) // a round trip
			if len(p.received) != 0 {
				t.Error("delivered twice")
			}
		},
		"keepalive": func(t *testing.T, b *running, _ *party) { // a silent client is disconnected after one and a half times the keep-alive
			conn := dial(t, b.addr)
			if _, err := conn.Write(connectPacket("agent-hongdae", "agent-hongdae", "agent-hongdae-demo", 5, 1)); err != nil {
				t.Fatal(err)
			}
			wait(t, "online", func() bool { return len(b.Online("hongdae")) > 0 })
			wait(t, "the end of a silent client", func() bool { return len(b.Online("hongdae")) == 0 })
		},
		"server_keep_alive": func(t *testing.T, b *running, _ *party) {
			p, err := attend(t, b, func(c *paho.Connect) { c.KeepAlive = 120 })
			if err != nil || p.connack.Properties.ServerKeepAlive == nil || *p.connack.Properties.ServerKeepAlive != maxKeepAlive {
				t.Errorf("CONNACK %+v, %v", p.connack, err)
			}
		},
		"subscribe_failure": func(t *testing.T, _ *running, p *party) {
			got := p.subscribe(t, ask, "yeolda/v1/hongdae/door/ask", "elsewhere")
			if len(got) != 3 || got[0] > 2 || got[1] != 0x87 || got[2] != 0x87 {
				t.Errorf("SUBACK %#x", got)
			}
		},
		"dollar_topics": func(t *testing.T, _ *running, p *party) {
			if got := p.subscribe(t, "$SYS/broker/version", "$SYS"); got[0] != 0x87 || got[1] != 0x87 {
				t.Errorf("SUBACK %#x", got)
			}
		},
		"unsubscribe": func(t *testing.T, b *running, p *party) {
			p.subscribe(t, ask)
			for _, want := range []byte{0, 0x11} {
				if answer, _ := p.Unsubscribe(t.Context(), &paho.Unsubscribe{Topics: []string{ask}}); answer == nil || answer.Reasons[0] != want {
					t.Errorf("UNSUBACK %+v, want %#x", answer, want)
				}
			}
		},
		"shared_subscriptions": func(t *testing.T, _ *running, p *party) {
			if c := p.connack.Properties; c.SharedSubAvailable || c.WildcardSubAvailable {
				t.Errorf("announced: %+v", c)
			}
			if answer, err := p.Subscribe(t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "$share/group/" + ask}}}); err == nil && answer.Reasons[0] < 0x80 {
				t.Errorf("SUBACK %+v", answer)
			}
		},
		"user_properties": func(t *testing.T, b *running, p *party) { // they are for receivers; acknowledgements do not return them
			answer, err := p.Publish(t.Context(), &paho.Publish{Topic: topic(protocol.KindHeartbeat), QoS: 1, Payload: heartbeat,
				Properties: &paho.PublishProperties{User: paho.UserProperties{{Key: "a", Value: "2"}, {Key: "a", Value: "2"}}}})
			if err != nil || answer.Properties != nil && len(answer.Properties.User) > 0 {
				t.Errorf("PUBACK %+v, %v", answer, err)
			}
		},
		"payload_format": func(t *testing.T, _ *running, p *party) {
			if code := p.publish(t, &paho.Publish{Topic: topic(protocol.KindHeartbeat), QoS: 1, Payload: heartbeat,
				Properties: &paho.PublishProperties{PayloadFormat: ptr(byte(1)), ContentType: "application/json"}}); code != 0 {
				t.Errorf("PUBACK %#x", code)
			}
		},
		"publication_expiry": func(t *testing.T, b *running, p *party) {
			p.subscribe(t, ask)
			b.ask(t, "gangnam")
			if m := <-p.received; m.Properties.MessageExpiry == nil || *m.Properties.MessageExpiry != 3 {
				t.Errorf("received %+v", m.Properties)
			}
		},
		"subscribe_options": func(t *testing.T, b *running, p *party) { // no local, retain as published, retain handling: none has an effect here
			if answer, err := p.Subscribe(t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: ask, QoS: 1, NoLocal: true, RetainAsPublished: true, RetainHandling: 2}}}); err != nil || answer.Reasons[0] > 2 {
				t.Errorf("SUBACK %+v, %v", answer, err)
			}
			b.ask(t, "gangnam")
			<-p.received
		},
		"subscribe_identifiers": func(t *testing.T, b *running, p *party) { // not returned: with exact topics, the topic identifies the subscription
			if _, err := p.Subscribe(t.Context(), &paho.Subscribe{Properties: &paho.SubscribeProperties{SubscriptionIdentifier: ptr(456789)},
				Subscriptions: []paho.SubscribeOptions{{Topic: ask}}}); err != nil {
				t.Fatal(err)
			}
			b.ask(t, "gangnam")
			if m := <-p.received; m.Topic != ask {
				t.Errorf("received %+v", m)
			}
		},
		"request_response": func(t *testing.T, b *running, p *party) {
			p.subscribe(t, topic(protocol.KindSensorsRead))
			const id = "11111111-2222-4333-8444-555555555555"
			if err := b.Send(to("gangnam"), protocol.SensorsRead{RequestID: id}); err != nil {
				t.Fatal(err)
			}
			m := <-p.received
			if string(m.Properties.CorrelationData) != id {
				t.Errorf("received %+v", m.Properties)
			}
			if code := p.publish(t, &paho.Publish{Topic: m.Properties.ResponseTopic, QoS: 1, Payload: []byte(`{"requestId":"` + id + `","readings":[]}`),
				Properties: &paho.PublishProperties{CorrelationData: m.Properties.CorrelationData}}); code != 0 {
				t.Errorf("PUBACK %#x", code)
			}
			if h := receive(t, b.devices); h.message.Kind() != protocol.KindSensorsReadings {
				t.Errorf("got %+v", h)
			}
		},
		"client_topic_alias": func(t *testing.T, b *running, p *party) { // none are offered, and using one is a protocol error [MQTT-3.3.2-9]
			if max := p.connack.Properties.TopicAliasMaximum; max != nil && *max != 0 {
				t.Errorf("CONNACK offers %d aliases", *max)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = p.Publish(ctx, &paho.Publish{Topic: topic(protocol.KindDoorClaim), QoS: 1, Payload: []byte("{}"), Properties: &paho.PublishProperties{TopicAlias: ptr(uint16(1))}})
			_, _ = p.Publish(ctx, &paho.Publish{QoS: 1, Payload: []byte("{}"), Properties: &paho.PublishProperties{TopicAlias: ptr(uint16(1))}})
			if len(b.doors) != 0 {
				t.Errorf("an aliased message passed: %+v", <-b.doors)
			}
		},
		"server_topic_alias": func(t *testing.T, b *running, _ *party) { // a broker need not use the aliases that a client offers
			p, err := attend(t, b, func(c *paho.Connect) { c.Properties.TopicAliasMaximum = ptr(uint16(10)) })
			if err != nil {
				t.Fatal(err)
			}
			p.subscribe(t, ask)
			for range 3 {
				b.ask(t, "gangnam")
				if m := <-p.received; m.Topic != ask {
					t.Errorf("received %+v", m)
				}
			}
		},
		"maximum_packet_size": func(t *testing.T, b *running, other *party) { // messages larger than the client accepts are not sent [MQTT-3.1.2-24]
			if max := other.connack.Properties.MaximumPacketSize; max == nil || *max != protocol.MaxPacket {
				t.Errorf("CONNACK %v, want the broker's own limit", max)
			}
			p, err := attend(t, b, func(c *paho.Connect) { c.Properties.MaximumPacketSize = ptr(uint32(64)) })
			if err != nil {
				t.Fatal(err)
			}
			p.subscribe(t, ask)
			b.ask(t, "gangnam")
			p.publish(t, &paho.Publish{Topic: topic(protocol.KindHeartbeat), QoS: 1, Payload: []byte(`{}`)})
			if len(p.received) != 0 {
				t.Errorf("received %+v", <-p.received)
			}
		},
		"flow_control1": manyAtOnce,
		"flow_control2": manyAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			p, err := attend(t, b, nil)
			if err != nil {
				t.Fatal(err)
			}
			check(t, b, p)
		})
	}
}

// nothingIsKept checks that sessions end with their connection, as CONNACK announces [MQTT-3.2.2-18], because an unlock that
// arrives late would open a door after the guest has left.
func nothingIsKept(t *testing.T, b *running, _ *party) {
	change := func(c *paho.Connect) {
		c.ClientID, c.Username, c.Password = "agent-hongdae", "agent-hongdae", []byte("agent-hongdae-demo")
		c.CleanStart, c.Properties.SessionExpiryInterval = false, ptr(uint32(3600))
	}
	ask := protocol.Topic("hongdae", protocol.KindDoorAsk)
	first, err := attend(t, b, change)
	if err != nil || first.connack.SessionPresent || first.connack.Properties.SessionExpiryInterval == nil || *first.connack.Properties.SessionExpiryInterval != 0 {
		t.Fatalf("CONNACK %+v, %v", first.connack, err)
	}
	first.subscribe(t, ask)
	_ = first.Disconnect(&paho.Disconnect{})
	wait(t, "the end of the session", func() bool { return len(b.Online("hongdae")) == 0 })
	b.ask(t, "hongdae")
	var second *party
	wait(t, "a session that is not there", func() bool {
		second, err = attend(t, b, change)
		if err == nil && second.connack.SessionPresent { // the end of the first session is in progress; its heir would be inherited, too
			_ = second.Disconnect(&paho.Disconnect{})
			return false
		}
		return err == nil
	})
	second.publish(t, &paho.Publish{Topic: protocol.Topic("hongdae", protocol.KindHeartbeat), QoS: 1, Payload: []byte(`{"bootId":"boot","connection":2}`)})
	if len(second.received) != 0 {
		t.Errorf("kept: %+v", <-second.received)
	}
}

// idsAreCredentials checks that the broker assigns no client id, because a client id is the user name of a credential.
func idsAreCredentials(t *testing.T, b *running, _ *party) {
	for _, username := range []string{"agent-gangnam", ""} {
		p, err := attend(t, b, func(c *paho.Connect) { c.ClientID, c.Username, c.UsernameFlag = "", username, username != "" })
		if err == nil || p.connack != nil && p.connack.ReasonCode < 0x80 {
			t.Errorf("%q: connected without a client id: %+v", username, p.connack)
		}
	}
}

// manyAtOnce checks that a client may have more messages in flight than its own Receive Maximum, and that the broker sends
// only QoS 0 messages, which a Receive Maximum does not count.
func manyAtOnce(t *testing.T, b *running, _ *party) {
	p, err := attend(t, b, func(c *paho.Connect) { c.Properties.ReceiveMaximum = ptr(uint16(2)) })
	if err != nil {
		t.Fatal(err)
	}
	p.subscribe(t, protocol.Topic("gangnam", protocol.KindDoorAsk))
	const many = 30
	sent := make(chan error, many)
	for range many {
		b.ask(t, "gangnam")
		go func() {
			answer, err := p.Publish(t.Context(), &paho.Publish{Topic: protocol.Topic("gangnam", protocol.KindHeartbeat), QoS: 1, Payload: []byte(`{"bootId":"boot","connection":1}`)})
			if err == nil && answer.ReasonCode != 0 {
				err = errors.New("refused")
			}
			sent <- err
		}()
	}
	for range many {
		if err := <-sent; err != nil {
			t.Error(err)
		}
		<-p.received
	}
}
