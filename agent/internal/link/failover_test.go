package link_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

// connectPool connects a link to the brokers of a pool, and returns its home and the other one.
func connectPool(t *testing.T) (l *testLink, home, other *brokertest.Broker) {
	t.Helper()
	a, b := brokertest.Start(t, brokertest.ReusableAddr(t)), brokertest.Start(t, brokertest.ReusableAddr(t))
	l = connect(t, "mqtt://"+a.Addr, func(c *link.Config) {
		c.Brokers = append(c.Brokers, &url.URL{Scheme: "mqtt", Host: b.Addr})
		c.ReturnInterval = 20 * time.Millisecond
	})
	select {
	case <-a.Messages():
		return l, a, b
	case <-b.Messages():
		return l, b, a
	case <-time.After(time.Minute):
		t.Fatal("the link connected to no broker")
		return nil, nil, nil
	}
}

// When its broker is away, a link uses the next one, and returns as soon as its own answers.
func TestFailoverAndReturn(t *testing.T) {
	t.Parallel()
	l, home, other := connectPool(t)
	l.wantBothWays(t, home)
	home.Stop()
	if s := brokertest.Await[protocol.Status](other); s.State != protocol.Online || s.Connection < 2 {
		t.Errorf("status at the next broker %+v, want online over a later connection", s)
	}
	l.wantBothWays(t, other)
	home = brokertest.Start(t, home.Addr)
	returned := brokertest.Await[protocol.Status](home)
	if returned.State != protocol.Online {
		t.Errorf("status at its own broker %+v, want online", returned)
	}
	// Only now the other connection ends, so its will is older than the status.
	if s := brokertest.Await[protocol.Status](other); s.State != protocol.Offline || s.Connection >= returned.Connection {
		t.Errorf("will at the next broker %+v, want offline, of a connection before %d", s, returned.Connection)
	}
	l.wantBothWays(t, home)
}

// A broker that accepts connections but ends them counts as away.
func TestFailoverFromABrokerThatRejects(t *testing.T) {
	t.Parallel()
	l, home, other := connectPool(t)
	home.RejectSubscriptions(1000)
	home.DropAll()
	brokertest.Await[protocol.Status](other)
	l.wantBothWays(t, other)
}
