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
	w := &World{dir: t.TempDir(), log: io.Discard, agents: []string{"gangnam"}}
	const acl = "user cloud\ntopic readwrite yeolda/v1/#\n"
	if err := w.startMosquitto(ctx, "../../..", acl); err != nil {
		t.Fatal(err)
	}
	broker := w.Brokers[0]
	defer func() { _ = broker.Kill() }()
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
