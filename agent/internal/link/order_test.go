package link_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

// TestTelemetryKeepsItsOrder sends the door events of an outage. The cloud judges each opening of a door by the events before it.
func TestTelemetryKeepsItsOrder(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	var reachable atomic.Bool
	l := connect(t, "mqtt://"+b.Addr, func(config *link.Config) {
		config.Dial = func(ctx context.Context, u *url.URL) (net.Conn, error) {
			if !reachable.Load() {
				return nil, errors.New("no route")
			}
			return new(net.Dialer).DialContext(ctx, "tcp", u.Host)
		}
	})
	sent := sendOpenings(l.Link, 100)
	reachable.Store(true)
	wantOpenings(t, b, sent)
}

// sendOpenings sends the opening of so many doors, and returns their devices.
func sendOpenings(l *link.Link, doors int) (sent []string) {
	for n := range doors {
		device := fmt.Sprintf("room_%d", n+1)
		sent = append(sent, device)
		l.Send(protocol.Telemetry{At: time.Now(), Events: []protocol.Event{{Kind: protocol.EventDoorOpened, Device: device}}}, nil, time.Minute)
	}
	return sent
}

func wantOpenings(t *testing.T, b *brokertest.Broker, want []string) {
	t.Helper()
	var got []string
	for range want {
		got = append(got, brokertest.Await[protocol.Telemetry](b).Events[0].Device)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got events of %v, want them in the order in which they were sent", got)
	}
}

// TestTelemetryKeepsItsOrderAfterALostConnection loses the first events in flight; the next ones are queued while the loss is noticed.
func TestTelemetryKeepsItsOrderAfterALostConnection(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	hole := newBlackHole()
	l := connect(t, "mqtt://"+b.Addr, func(config *link.Config) { config.Dial = hole.dial })
	brokertest.Await[protocol.Status](b)
	hole.open()
	wantOpenings(t, b, sendOpenings(l.Link, 12)) // more than the publishes that may wait for their acknowledgement
}
