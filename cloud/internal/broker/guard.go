package broker

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// connectWithin is how long a connection may take for the TLS handshake and its CONNECT packet.
	connectWithin = 5 * time.Second
	// maxStrangers bounds the connections that have not authenticated yet; each costs the broker some 15 KiB. It is as many
	// as a whole fleet that comes back at once may have waiting: who is turned away tries again, and costs more.
	maxStrangers = 4096
	// maxAcceptPause is the longest rest after Accept failed, when file descriptors ran out for example.
	maxAcceptPause = time.Second
)

var errTurnedAway = errors.New("broker: too many connections wait for authentication")

// gate is what every connection passes, whichever way it came. It bounds those that have not authenticated, and it can
// end them all, which mochi cannot promise.
type gate struct {
	within time.Duration

	mu        sync.Mutex
	conns     map[*conn]struct{}
	strangers int // of conns: those without a session
	closed    bool
	emptied   chan struct{} // closed when the gate is closed and the last connection has gone
}

func newGate(within time.Duration) *gate {
	return &gate{within: within, conns: make(map[*conn]struct{}), emptied: make(chan struct{})}
}

// enter admits a connection, which now has a deadline for its CONNECT. mochi replaces the deadline when it has read that.
func (g *gate) enter(raw net.Conn) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return nil, net.ErrClosed
	case g.strangers >= maxStrangers:
		return nil, errTurnedAway
	}
	if err := raw.SetDeadline(time.Now().Add(g.within)); err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, gate: g}
	g.conns[c] = struct{}{}
	g.strangers++
	return c, nil
}

// admit gives a connection its session: the client behind it has authenticated.
func (g *gate) admit(c *conn, s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, here := g.conns[c]; here && c.session.Swap(s) == nil {
		g.strangers--
	}
}

func (g *gate) leave(c *conn) (s *session, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, here := g.conns[c]; !here {
		return nil, false
	}
	delete(g.conns, c)
	s = c.session.Load()
	if s == nil {
		g.strangers--
	}
	if g.closed && len(g.conns) == 0 {
		close(g.emptied)
	}
	return s, true
}

// shut lets nobody in any more. emptied tells when the last one is out.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	if len(g.conns) == 0 {
		close(g.emptied)
	}
}

// cut ends every connection at once.
func (g *gate) cut() {
	g.mu.Lock()
	conns := make([]*conn, 0, len(g.conns))
	for c := range g.conns {
		conns = append(conns, c)
	}
	g.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// conn is a connection that passed the gate. Its session lives exactly as long as it.
type conn struct {
	net.Conn
	gate    *gate
	session atomic.Pointer[session]
}

// Close ends the session first: from then on its branch does not count on this connection.
func (c *conn) Close() error {
	if s, first := c.gate.leave(c); first && s != nil {
		s.end()
	}
	return c.Conn.Close()
}

// sessionOf finds the session of a client's connection, also below TLS or WebSocket; nil for a client that has not
// authenticated.
func sessionOf(c net.Conn) *session {
	if c := unwrap(c); c != nil {
		return c.session.Load()
	}
	return nil
}

func unwrap(c net.Conn) *conn {
	for {
		switch layer := c.(type) {
		case *conn:
			return layer
		case interface{ NetConn() net.Conn }:
			c = layer.NetConn()
		default:
			return nil
		}
	}
}

// door is a listener whose connections pass the gate. mochi gives up a listener at the first error of Accept; here only
// a closed one ends.
type door struct {
	net.Listener
	gate *gate
	log  *slog.Logger
}

func (d *door) Accept() (net.Conn, error) {
	pause := 5 * time.Millisecond
	for {
		raw, err := d.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil {
			d.log.Warn("mqtt: accept", "error", err, "pause", pause)
			time.Sleep(pause)
			pause = min(2*pause, maxAcceptPause)
			continue
		}
		pause = 5 * time.Millisecond
		c, err := d.gate.enter(raw)
		if err == nil {
			return c, nil
		}
		_ = raw.Close()
	}
}
