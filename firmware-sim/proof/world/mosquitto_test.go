package world

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/protocol"
)

// TestListenersHaveTheirOwnUsers starts Mosquitto with the shipped file. The password of the service opens the inner listener only,
// that of an agent the outer one only.
func TestListenersHaveTheirOwnUsers(t *testing.T) {
	t.Parallel()
	ctx, broker := shippedMosquitto(t)
	agent := protocol.AgentID("gangnam")
	for name, tt := range map[string]struct {
		address, username, password string
		want                        bool
	}{
		"the service inside":           {broker.Cloud, brokerUser, brokerSecret, true},
		"the service from outside":     {broker.Agents, brokerUser, brokerSecret, false},
		"an agent from outside":        {broker.Agents, agent, fleetconfig.DemoPassword("gangnam"), true},
		"an agent inside":              {broker.Cloud, agent, fleetconfig.DemoPassword("gangnam"), false},
		"a wrong password inside":      {broker.Cloud, brokerUser, "wrong", false},
		"a wrong password outside":     {broker.Agents, agent, "wrong", false},
		"without credentials inside":   {broker.Cloud, "", "", false},
		"without credentials outside":  {broker.Agents, "", "", false},
		"the service without password": {broker.Cloud, brokerUser, "", false},
	} {
		conn, err := net.Dial("tcp", tt.address)
		if err != nil {
			t.Fatal(err)
		}
		client := paho.NewClient(paho.ClientConfig{Conn: conn, PacketTimeout: 10 * time.Second})
		ack, err := client.Connect(ctx, &paho.Connect{ClientID: "test", CleanStart: true, KeepAlive: 10,
			Username: tt.username, UsernameFlag: tt.username != "", Password: []byte(tt.password), PasswordFlag: tt.password != ""})
		if (err == nil) != tt.want || err != nil && (ack == nil || ack.ReasonCode != 0x87) {
			t.Errorf("%s: got %v (%+v), want accepted: %v", name, err, ack, tt.want)
		}
		if err == nil {
			_ = client.Disconnect(&paho.Disconnect{})
		}
		_ = conn.Close()
	}
}

// TestQueueHoldsTheMessagesOfManyAgents has a replica read nothing while agents send what 10,000 of them send when they connect at once.
// Each message must arrive when it reads again: a branch whose heartbeats are dropped counts as offline.
func TestQueueHoldsTheMessagesOfManyAgents(t *testing.T) {
	t.Parallel()
	ctx, broker := shippedMosquitto(t)
	const messages, senders = 20_000, 50
	topic := protocol.Topic("gangnam", protocol.KindHeartbeat)
	reading, received := make(chan struct{}), make(chan struct{}, messages)
	service := dial(ctx, t, broker.Cloud, brokerUser, brokerSecret, func(paho.PublishReceived) (bool, error) {
		<-reading
		received <- struct{}{}
		return true, nil
	})
	if _, err := service.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: topic, QoS: 1}}}); err != nil {
		t.Fatal(err)
	}
	agent := dial(ctx, t, broker.Agents, protocol.AgentID("gangnam"), fleetconfig.DemoPassword("gangnam"), nil)
	var sending errgroup.Group
	for range senders {
		sending.Go(func() error {
			for range messages / senders {
				if _, err := agent.Publish(ctx, &paho.Publish{Topic: topic, QoS: 1, Payload: []byte(`{"bootId":"0123456789abcdef"}`)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := sending.Wait(); err != nil {
		t.Fatal(err)
	}
	close(reading)
	for n := range messages {
		select {
		case <-received:
		case <-ctx.Done():
			t.Fatalf("received %d messages, want %d", n, messages)
		}
	}
}

// TestQueueIsBoundedInBytes has a replica read nothing while an agent sends 128 MiB. The broker keeps 80 MiB for it, and not the rest.
func TestQueueIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	ctx, broker := shippedMosquitto(t)
	const messages, size, kept = 512, 256 << 10, 80 << 20
	topic := protocol.Topic("gangnam", protocol.KindHeartbeat)
	reading, last := make(chan struct{}), make(chan struct{}, messages)
	received := 0
	service := dial(ctx, t, broker.Cloud, brokerUser, brokerSecret, func(p paho.PublishReceived) (bool, error) {
		<-reading
		if len(p.Packet.Payload) < size {
			last <- struct{}{}
		} else {
			received++
		}
		return true, nil
	})
	if _, err := service.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: topic, QoS: 1}}}); err != nil {
		t.Fatal(err)
	}
	agent := dial(ctx, t, broker.Agents, protocol.AgentID("gangnam"), fleetconfig.DemoPassword("gangnam"), nil)
	send := func(payload []byte) {
		if _, err := agent.Publish(ctx, &paho.Publish{Topic: topic, QoS: 1, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	for range messages {
		send(make([]byte, size))
	}
	close(reading)
	for done := false; !done; { // a small message is dropped as well until the queue has room
		select {
		case <-last:
			done = true
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		case <-time.After(time.Second):
			send([]byte("last"))
		}
	}
	if most := kept/size + 20; received > most { // a few are in the buffers of the sockets
		t.Errorf("received %d messages of %d bytes, want at most %d", received, size, most)
	}
	if least := kept / size / 2; received < least {
		t.Errorf("received %d messages of %d bytes, want at least %d", received, size, least)
	}
}

// shippedMosquitto starts Mosquitto with the shipped file and the agent of gangnam. It skips the test if there is no Mosquitto.
func shippedMosquitto(t *testing.T) (context.Context, Broker) {
	t.Helper()
	if _, err := Find("mosquitto", "/usr/sbin/mosquitto"); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	w := &World{dir: t.TempDir(), log: io.Discard, agents: []string{"gangnam"}}
	rules := brokerRules{service: "user cloud\ntopic read yeolda/v1/#\n", agents: "user agent-gangnam\ntopic write yeolda/v1/gangnam/heartbeat\n"}
	if err := w.startMosquitto(ctx, "../../..", rules); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Brokers[0].Kill() })
	return ctx, w.Brokers[0]
}

// dial connects a client that ends with the test.
func dial(ctx context.Context, t *testing.T, address, username, password string, receive func(paho.PublishReceived) (bool, error)) *paho.Client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	config := paho.ClientConfig{Conn: conn, PacketTimeout: time.Minute}
	if receive != nil {
		config.OnPublishReceived = []func(paho.PublishReceived) (bool, error){receive}
	}
	client := paho.NewClient(config)
	if _, err := client.Connect(ctx, &paho.Connect{ClientID: username, CleanStart: true, KeepAlive: 60,
		Username: username, UsernameFlag: true, Password: []byte(password), PasswordFlag: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(&paho.Disconnect{}) })
	return client
}
