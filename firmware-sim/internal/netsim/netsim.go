package netsim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// Conditions is the state of the network.
type Conditions struct {
	Cut       bool          // packets are dropped
	Lag       time.Duration // each way
	Loss      float64       // share of the messages that are lost, each way: 0 to 1
	Duplicate bool          // every message to the agent is delivered twice
	Reorder   time.Duration // maximum additional delay of each single message, each way
}

// Tap observes one connection. The calls for one direction are in order; those for the two directions are concurrent.
// They must not block.
type Tap interface {
	// FromAgent: the agent has sent a message.
	FromAgent(topic string, payload []byte)
	// Acked: the agent is about to receive the broker's acknowledgement of its message (QoS 1).
	Acked(topic string)
	// ToAgent: the agent is about to receive a message.
	ToAgent(topic string, payload []byte)
	// Down is called once, when the connection has ended or is dead after a cut.
	Down()
}

// Link is the network path from a branch to its brokers. Plug returns a cable into it.
type Link struct {
	brokers []*url.URL
	newTap  func() Tap

	mu          sync.Mutex
	conditions  Conditions
	lifted      chan struct{} // closed while packets pass
	connections map[*connection]struct{}
	running     sync.WaitGroup
}

// New returns a link without faults to the brokers of a pool, at least one. For mqtts, ssl and tls the link itself does TLS, so
// that a tap sees the messages. newTap is called for each connection.
func New(brokers []*url.URL, newTap func() Tap) (*Link, error) {
	if len(brokers) == 0 {
		return nil, errors.New("netsim: there is no broker")
	}
	for _, broker := range brokers {
		switch broker.Scheme {
		case "mqtt", "tcp", "mqtts", "ssl", "tls":
		default:
			return nil, fmt.Errorf("netsim: broker %q is neither mqtt:// nor mqtts://", broker.Redacted())
		}
	}
	whole := make(chan struct{})
	close(whole)
	return &Link{brokers: brokers, newTap: newTap, lifted: whole, connections: make(map[*connection]struct{})}, nil
}

// Set changes the conditions from now on. A cut drops packets in transit.
func (l *Link) Set(c Conditions) {
	l.mu.Lock()
	was := l.conditions.Cut
	l.conditions = c
	var lost []*connection
	switch {
	case c.Cut && !was:
		l.lifted = make(chan struct{})
		for k := range l.connections {
			lost = append(lost, k)
		}
	case !c.Cut && was:
		close(l.lifted)
	}
	l.mu.Unlock()
	for _, k := range lost {
		k.die()
	}
}

func (l *Link) now() Conditions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conditions
}

// whole returns a channel that is closed while packets pass.
func (l *Link) whole() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lifted
}

// Close ends all connections and waits for the link's goroutines. Its cables must be pulled before.
func (l *Link) Close() {
	l.mu.Lock()
	for k := range l.connections {
		k.abandon()
	}
	l.mu.Unlock()
	l.running.Wait()
}

// Cable is the agent's end of a link for as long as the agent has power.
type Cable struct {
	link   *Link
	mu     sync.Mutex    // orders join and Pull
	pulled chan struct{} // closed by Pull
}

// Plug connects a cable to the link.
func (l *Link) Plug() *Cable { return &Cable{link: l, pulled: make(chan struct{})} }

// Pull ends every connection as the death of the process does: nothing more is sent, no DISCONNECT, and the broker's
// end is reset, during a cut only afterwards. Further dials fail.
func (c *Cable) Pull() {
	c.mu.Lock()
	if !c.isPulled() {
		close(c.pulled)
	}
	c.mu.Unlock()

	var mine []*connection
	c.link.mu.Lock()
	for k := range c.link.connections {
		if k.cable == c {
			mine = append(mine, k)
		}
	}
	c.link.mu.Unlock()
	for _, k := range mine {
		k.die()
		k.agent.Close()
	}
}

func (c *Cable) isPulled() bool {
	select {
	case <-c.pulled:
		return true
	default:
		return false
	}
}

// errPulled is the error of Dial after Pull.
var errPulled = errors.New("netsim: no power")

// Dial connects to the broker of an address, for agent.Config.Dial. Every other address leads to the first broker. During a cut it
// blocks until the cut or ctx ends.
func (c *Cable) Dial(ctx context.Context, address *url.URL) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.pulled:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case <-c.link.whole():
		case <-ctx.Done():
			return nil, c.reason(ctx)
		}
		// The TCP handshake is a round trip too.
		if !sleep(ctx.Done(), 2*c.link.now().Lag) {
			return nil, c.reason(ctx)
		}
		broker, err := dial(ctx, c.link.brokerAt(address))
		if err != nil {
			return nil, err
		}
		agent, err := c.join(broker)
		if agent != nil {
			return packets.NewThreadSafeConn(agent), nil
		}
		broker.Close()
		if err != nil {
			return nil, err
		}
	}
}

func (l *Link) brokerAt(address *url.URL) *url.URL {
	for _, broker := range l.brokers {
		if address != nil && broker.Host == address.Host {
			return broker
		}
	}
	return l.brokers[0]
}

func (c *Cable) reason(ctx context.Context) error {
	if c.isPulled() {
		return errPulled
	}
	return ctx.Err()
}

// join starts a connection to the broker and returns the agent's end, or nil if the link was cut in the meantime.
func (c *Cable) join(broker net.Conn) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isPulled() {
		return nil, errPulled
	}
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.link.conditions.Cut {
		return nil, nil
	}
	agent, far := net.Pipe()
	k := newConnection(c, far, broker)
	c.link.connections[k] = struct{}{}
	c.link.running.Go(k.run)
	return agent, nil
}

func dial(ctx context.Context, broker *url.URL) (net.Conn, error) {
	host, port := broker.Hostname(), broker.Port()
	switch broker.Scheme {
	case "mqtt", "tcp":
		if port == "" {
			port = "1883"
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	default:
		if port == "" {
			port = "8883"
		}
		d := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}
		return d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	}
}

// sleep waits for d and returns false if stop was closed before.
func sleep(stop <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-stop:
		return false
	}
}
