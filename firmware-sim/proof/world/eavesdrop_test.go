package world

import (
	"net"
	"testing"

	"github.com/eclipse/paho.golang/packets"
)

func TestEavesdropperReadsTheConnect(t *testing.T) {
	t.Parallel()
	broker, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	conn, err := net.Dial("tcp", broker.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	e := new(eavesdropper)
	heard := e.tap(conn)
	connect := &packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: "cloud-1", Username: "peer", UsernameFlag: true, Password: []byte("secret"), PasswordFlag: true,
		Properties: &packets.Properties{}}
	if _, err := connect.WriteTo(heard); err != nil {
		t.Fatal(err)
	}
	if username, password := e.credential(); username != "peer" || password != "secret" {
		t.Errorf("credential %q %q, want that of the CONNECT", username, password)
	}
}
