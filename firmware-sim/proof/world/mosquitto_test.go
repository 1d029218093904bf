package world

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/protocol"
)

// TestListenersHaveTheirOwnUsers starts Mosquitto with the shipped file. The password of the service opens the inner listener only,
// that of an agent the outer one only.
func TestListenersHaveTheirOwnUsers(t *testing.T) {
	t.Parallel()
	if _, err := Find("mosquitto", "/usr/sbin/mosquitto"); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	addresses, err := FreeAddresses(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{dir: t.TempDir(), log: io.Discard, Broker: addresses[0], AgentPort: addresses[1], agents: []string{"gangnam"}}
	const acl = "user cloud\ntopic readwrite yeolda/v1/#\n"
	if err := w.startMosquitto(ctx, "../../..", acl); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Mosquitto.Kill() }()
	agent := protocol.AgentID("gangnam")
	for name, tt := range map[string]struct {
		address, username, password string
		want                        bool
	}{
		"the service inside":           {w.Broker, brokerUser, brokerSecret, true},
		"the service from outside":     {w.AgentPort, brokerUser, brokerSecret, false},
		"an agent from outside":        {w.AgentPort, agent, fleetconfig.DemoPassword("gangnam"), true},
		"an agent inside":              {w.Broker, agent, fleetconfig.DemoPassword("gangnam"), false},
		"a wrong password inside":      {w.Broker, brokerUser, "wrong", false},
		"a wrong password outside":     {w.AgentPort, agent, "wrong", false},
		"without credentials inside":   {w.Broker, "", "", false},
		"without credentials outside":  {w.AgentPort, "", "", false},
		"the service without password": {w.Broker, brokerUser, "", false},
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
