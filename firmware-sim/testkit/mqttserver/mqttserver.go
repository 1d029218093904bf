// Package mqttserver starts MQTT brokers in the test's process.
package mqttserver

import (
	"log/slog"
	"net"
	"testing"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Start starts a broker whose access rules are those of the hook, and returns its address. It ends with the test.
func Start(t testing.TB, hook mqtt.Hook) (addr string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := mqtt.New(&mqtt.Options{Logger: slog.New(slog.DiscardHandler)})
	if err := server.AddHook(hook, nil); err != nil {
		t.Fatal(err)
	}
	if err := server.AddListener(Listener(server, l)); err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

// Listener lets the server accept the connections of l. Unlike a listener of mochi it can be closed while clients leave: mochi
// looks for the clients of its listeners with a read lock that it takes twice, and a client that is removed between the two
// waits for the first while the second waits for the client.
func Listener(server *mqtt.Server, l net.Listener) listeners.Listener {
	return listener{listeners.NewNet("tcp", l), server}
}

type listener struct {
	*listeners.Net

	server *mqtt.Server
}

// Close ends the connections of all clients, of which the server has no others.
func (l listener) Close(listeners.CloseFn) {
	l.Net.Close(func(string) {
		for _, client := range l.server.Clients.GetAll() {
			if !client.Net.Inline && !client.Closed() {
				_ = l.server.DisconnectClient(client, packets.ErrServerShuttingDown)
			}
		}
	})
}
