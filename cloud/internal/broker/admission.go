package broker

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/limit"
)

const (
	// connectTimeout limits the TLS handshake and the CONNECT packet of a connection.
	connectTimeout = 5 * time.Second
	// maxUnauthenticated bounds the connections of a crowd that have not authenticated; each needs about 15 KiB. It is large
	// enough for a whole fleet that reconnects at once: a rejected agent retries, which costs more.
	maxUnauthenticated = 4096
	// maxKnown bounds the addresses that are remembered; each needs about 100 bytes.
	maxKnown = 1 << 16
	// progressWindow is how long after an authentication the clients of a crowd count as agents that reconnect at once, and
	// placeTimeout is how long a connection then waits for one of their places. Without progress, the places belong to clients
	// that do nothing, and waiting would help them.
	progressWindow = 50 * time.Millisecond
	placeTimeout   = 20 * time.Millisecond
	// maxAcceptPause is the maximum delay after a failed Accept, for example without free file descriptors.
	maxAcceptPause = time.Second
)

// admission is passed by every connection, on every listener. It bounds the number of unauthenticated connections and can
// close all connections, which mochi cannot guarantee. Addresses from which an agent has authenticated have places of
// their own, which no stranger takes.
type admission struct {
	within   time.Duration
	window   time.Duration // progressWindow
	patience time.Duration // placeTimeout
	most     int           // connections altogether; 0: no limit
	freed    chan struct{} // holds a token after a place became free

	mu        sync.Mutex
	conns     map[*conn]struct{}
	strangers crowd
	familiar  crowd               // connections from known addresses
	known     map[string]struct{} // addresses from which an agent has authenticated
	closed    bool
	emptied   chan struct{} // closed after shut, when the last connection has closed
}

// errFull is returned when the connections need all files that the process has for them.
var errFull = errors.New("broker: no more connections")

func newAdmission(within time.Duration, most int) *admission {
	return &admission{
		within: within, window: progressWindow, patience: placeTimeout, most: most, freed: make(chan struct{}, 1), conns: make(map[*conn]struct{}), known: make(map[string]struct{}), emptied: make(chan struct{}),
		strangers: newCrowd(limit.Network), familiar: newCrowd(func(client string) string { return client }),
	}
}

// enter admits a connection of a client, an address as of [limit.Address], and sets the deadline for its CONNECT. mochi
// replaces the deadline after reading it. If the places are taken, the connection waits while their clients authenticate one
// after the other; else a connection of the largest group loses its own. Agents that reconnect at once therefore wait in the
// queue of the listener, which costs nothing, and none of them loses its place shortly before its turn.
func (g *admission) enter(raw net.Conn, client string) (net.Conn, error) {
	var late <-chan time.Time
	for g.busy(client) {
		if late == nil {
			late = time.After(g.patience)
		}
		select {
		case <-g.freed:
			continue
		case <-late:
		}
		break
	}
	c, evicted, err := g.place(raw, client)
	if evicted != nil {
		_ = evicted.Close()
	}
	return c, err
}

// crowdOf returns the crowd of a client that has not authenticated. mu is held.
func (g *admission) crowdOf(client string) *crowd {
	if _, known := g.known[client]; known {
		return &g.familiar
	}
	return &g.strangers
}

// busy reports whether a client finds no place and should wait for one.
func (g *admission) busy(client string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	crowd := g.crowdOf(client)
	return !g.closed && crowd.size() >= maxUnauthenticated && time.Since(crowd.progress) < g.window
}

func (g *admission) place(raw net.Conn, client string) (_ net.Conn, evicted *conn, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, net.ErrClosed
	}
	if g.most > 0 && len(g.conns) >= g.most {
		return nil, nil, errFull
	}
	if err := raw.SetDeadline(time.Now().Add(g.within)); err != nil {
		return nil, nil, err
	}
	c := &conn{Conn: raw, admission: g, client: client, crowd: g.crowdOf(client)}
	if c.crowd.size() >= maxUnauthenticated {
		evicted = c.crowd.victim()
		g.vacate(evicted)
	}
	g.conns[c] = struct{}{}
	c.crowd.add(c)
	return c, evicted, nil
}

// vacate ends the place of a connection among those that have not authenticated, if it has one. mu is held.
func (g *admission) vacate(c *conn) {
	c.crowd.remove(c)
	select {
	case g.freed <- struct{}{}:
	default:
	}
}

// admit attaches the session to a connection whose client has authenticated.
func (g *admission) admit(c *conn, s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, here := g.conns[c]; !here || c.session.Swap(s) != nil {
		return
	}
	c.crowd.progress = time.Now()
	g.vacate(c)
	if len(g.known) >= maxKnown {
		for forgotten := range g.known { // any
			delete(g.known, forgotten)
			break
		}
	}
	g.known[c.client] = struct{}{}
}

func (g *admission) leave(c *conn) (s *session, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, here := g.conns[c]; !here {
		return nil, false
	}
	delete(g.conns, c)
	g.vacate(c)
	s = c.session.Load()
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
	client    string // its address, as of [limit.Address]
	crowd     *crowd // while it is not authenticated; guarded by admission.mu
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
		c, err := d.admission.enter(raw, addressOf(raw))
		if err == nil {
			return c, nil
		}
		_ = raw.Close()
	}
}

// addressOf returns the peer of a connection as of [limit.Address]; an address that cannot be read is an address of its own.
func addressOf(raw net.Conn) string {
	peer, err := netip.ParseAddrPort(raw.RemoteAddr().String())
	if err != nil {
		return raw.RemoteAddr().String()
	}
	return limit.Address(peer.Addr())
}
