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
	Cut       bool          // packets vanish
	Lag       time.Duration // each way
	Loss      float64       // share of the messages, each way, that vanish: 0 to 1
	Duplicate bool          // every message to the agent comes twice
	Reorder   time.Duration // up to which each message is late on its own, each way
}

// Tap hears what goes over one connection. The calls of one direction come in
// order, those of the two directions at the same time. They must not block.
type Tap interface {
	// FromAgent: the agent has sent a message.
	FromAgent(topic string, payload []byte)
	// Acked: the agent is about to hear that the broker has taken over a message
	// of its own (QoS 1).
	Acked(topic string)
	// ToAgent: the agent is about to be given a message.
	ToAgent(topic string, payload []byte)
	// Down is called once: the connection is over or, in a cut, worth nothing
	// any more.
	Down()
}

// Link is the way from a branch to the broker. Plug gives a cable into it.
type Link struct {
	broker *url.URL
	newTap func() Tap

	mu          sync.Mutex
	conditions  Conditions
	lifted      chan struct{} // closed while the line is whole
	connections map[*connection]struct{}
	running     sync.WaitGroup
}

// New makes a line in good condition to a broker; mqtt and tcp are plain, with
// mqtts, ssl and tls the line itself does TLS, so that a tap sees into it.
// newTap is called for each connection.
func New(broker *url.URL, newTap func() Tap) (*Link, error) {
	switch broker.Scheme {
	case "mqtt", "tcp", "mqtts", "ssl", "tls":
	default:
		return nil, fmt.Errorf("netsim: broker %q is neither mqtt:// nor mqtts://", broker.Redacted())
	}
	whole := make(chan struct{})
	close(whole)
	return &Link{broker: broker, newTap: newTap, lifted: whole, connections: make(map[*connection]struct{})}, nil
}

// Set changes the conditions from now on. Packets that are on their way when
// the line is cut vanish.
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

// whole is closed while packets pass.
func (l *Link) whole() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lifted
}

// Close drops what is left of all connections, whether the line is cut or not,
// and waits until nothing of the line runs any more. Its cables must have been
// pulled before.
func (l *Link) Close() {
	l.mu.Lock()
	for k := range l.connections {
		k.abandon()
	}
	l.mu.Unlock()
	l.running.Wait()
}

// Cable is the agent's end of a line for as long as the agent has power.
type Cable struct {
	link   *Link
	mu     sync.Mutex    // a link is joined before the pull, or not at all
	pulled chan struct{} // closed by Pull
}

// Plug puts a cable into the line.
func (l *Link) Plug() *Cable { return &Cable{link: l, pulled: make(chan struct{})} }

// Pull ends every connection as a killed process does: nothing more is sent,
// no DISCONNECT, and the broker's end is reset; in a cut, the broker hears of
// it only afterwards. Further dials fail.
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

// errPulled is what a dial reports after Pull.
var errPulled = errors.New("netsim: no power")

// Dial connects to the broker, for agent.Config.Dial, whatever address it is
// given. In a cut it hangs until the cut is lifted or ctx ends.
func (c *Cable) Dial(ctx context.Context, _ *url.URL) (net.Conn, error) {
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
		// The handshake of TCP is a round trip too.
		if !sleep(ctx.Done(), 2*c.link.now().Lag) {
			return nil, c.reason(ctx)
		}
		broker, err := dial(ctx, c.link.broker)
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

func (c *Cable) reason(ctx context.Context) error {
	if c.isPulled() {
		return errPulled
	}
	return ctx.Err()
}

// join starts a link to a connected broker and gives the agent's end of it;
// nil when the line has been cut in the meantime.
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

// sleep waits for d and reports whether it could, before stop was closed.
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
