package mqttserver_test

import (
	"log/slog"
	"net"
	"sync"
	"testing"

	mqtt "github.com/mochi-mqtt/server/v2"

	"github.com/yeolda/yeolda/firmware-sim/testkit/mqttserver"
)

// A broker closes although clients are removed from its list all the time.
func TestCloseWhileClientsLeave(t *testing.T) {
	for range 20 {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := mqtt.New(&mqtt.Options{Logger: slog.New(slog.DiscardHandler)})
		if err := server.AddListener(mqttserver.Listener(server, l)); err != nil {
			t.Fatal(err)
		}
		if err := server.Serve(); err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		var leaving sync.WaitGroup
		for range 8 {
			leaving.Go(func() {
				for len(closed) == 0 {
					server.Clients.Delete("a client")
				}
			})
		}
		closed <- server.Close()
		leaving.Wait()
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	}
}
