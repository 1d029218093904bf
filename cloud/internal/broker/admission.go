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
	// connectTimeout limits the TLS handshake and the CONNECT packet of a connection.
	connectTimeout = 5 * time.Second
	// maxUnauthenticated bounds the connections that have not authenticated; each needs about 15 KiB. It is large enough for
	// a whole fleet that reconnects at once: a rejected agent retries, which costs more.
	maxUnauthenticated = 4096
	// maxAcceptPause is the maximum delay after a failed Accept, for example without free file descriptors.
	maxAcceptPause = time.Second
)

var errTurnedAway = errors.New("broker: too many connections wait for authentication")

// admission is passed by every connection, on every listener. It bounds the number of unauthenticated connections and can
// close all connections, which mochi cannot guarantee.
type admission struct {
	within time.Duration

	mu              sync.Mutex
	conns           map[*conn]struct{}
	unauthenticated int // connections without a session
	closed          bool
	emptied         chan struct{} // closed after shut, when the last connection has closed
}

func newAdmission(within time.Duration) *admission {
	return &admission{within: within, conns: make(map[*conn]struct{}), emptied: make(chan struct{})}
}

// enter admits a connection and sets the deadline for its CONNECT. mochi replaces the deadline after reading it.
func (g *admission) enter(raw net.Conn) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return nil, net.ErrClosed
	case g.unauthenticated >= maxUnauthenticated:
		return nil, errTurnedAway
	}
	if err := raw.SetDeadline(time.Now().Add(g.within)); err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, admission: g}
	g.conns[c] = struct{}{}
	g.unauthenticated++
	return c, nil
}

// admit attaches the session to a connection whose client has authenticated.
func (g *admission) admit(c *conn, s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, here := g.conns[c]; here && c.session.Swap(s) == nil {
		g.unauthenticated--
	}
}

func (g *admission) leave(c *conn) (s *session, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, here := g.conns[c]; !here {
		return nil, false
	}
	delete(g.conns, c)
	s = c.session.Load()
	if s == nil {
		g.unauthenticated--
	}
	if g.closed && len(g.conns) == 0 {
		close(g.emptied)
	}
	return s, true
}

// shut rejects further connections. emptied is closed when the last connection has closed.
func (g *admission) shut() {
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

// cut closes every connection.
func (g *admission) cut() {
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

// conn is an admitted connection. Its session lives exactly as long as the connection.
type conn struct {
	net.Conn
	admission *admission
	session   atomic.Pointer[session]
}

// Close ends the session before the connection, so that no message is sent to a closed connection.
func (c *conn) Close() error {
	if s, first := c.admission.leave(c); first && s != nil {
		s.end()
	}
	return c.Conn.Close()
}

// sessionOf returns the session of a client's connection, which may be wrapped in TLS or WebSocket; nil if the client has
// not authenticated.
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

// listener passes accepted connections through admission. mochi abandons a listener at the first error of Accept; this one
// ends only when it is closed.
type listener struct {
	net.Listener
	admission *admission
	log       *slog.Logger
}

func (d *listener) Accept() (net.Conn, error) {
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
		c, err := d.admission.enter(raw)
		if err == nil {
			return c, nil
		}
		_ = raw.Close()
	}
}
