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
	connectTimeout time.Duration
	progressWindow time.Duration
	placeTimeout   time.Duration
	maxConns       int           // 0: no limit
	freed          chan struct{} // holds a token after a place became free

	mu        sync.Mutex
	conns     map[*conn]struct{}
	strangers crowd
	familiar  crowd               // connections from known addresses
	known     map[string]struct{} // addresses from which an agent has authenticated
	closed    bool
	emptied   chan struct{} // closed after shut, when the last connection has closed
}

// errFull is returned at the limit of the connections: further ones would need the files of the database and of requests.
var errFull = errors.New("broker: no more connections")

func newAdmission(connectTimeout time.Duration, maxConns int) *admission {
	return &admission{
		connectTimeout: connectTimeout, progressWindow: progressWindow, placeTimeout: placeTimeout, maxConns: maxConns,
		freed: make(chan struct{}, 1), conns: make(map[*conn]struct{}), known: make(map[string]struct{}), emptied: make(chan struct{}),
		strangers: newCrowd(limit.Network), familiar: newCrowd(func(client string) string { return client }),
	}
}

// enter admits a connection of a client, an address as of [limit.Address], and sets the deadline for its CONNECT. mochi
// replaces the deadline after reading it. If the places are taken, the connection waits while their clients authenticate one
// after the other; else a connection of the largest group loses its own. Agents that reconnect at once therefore wait in the
// queue of the listener, which costs nothing, and none of them loses its place shortly before its turn.
func (a *admission) enter(raw net.Conn, client string) (net.Conn, error) {
	var late <-chan time.Time
	for a.busy(client) {
		if late == nil {
			late = time.After(a.placeTimeout)
		}
		select {
		case <-a.freed:
			continue
		case <-late:
		}
		break
	}
	c, evicted, err := a.place(raw, client)
	if evicted != nil {
		_ = evicted.Close()
	}
	return c, err
}

// crowdOf returns the crowd of a client that has not authenticated. mu is held.
func (a *admission) crowdOf(client string) *crowd {
	if _, known := a.known[client]; known {
		return &a.familiar
	}
	return &a.strangers
}

// busy reports whether a client finds no place and should wait for one.
func (a *admission) busy(client string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	crowd := a.crowdOf(client)
	return !a.closed && crowd.size() >= maxUnauthenticated && time.Since(crowd.progress) < a.progressWindow
}

func (a *admission) place(raw net.Conn, client string) (_ net.Conn, evicted *conn, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil, net.ErrClosed
	}
	if a.maxConns > 0 && len(a.conns) >= a.maxConns {
		return nil, nil, errFull
	}
	if err := raw.SetDeadline(time.Now().Add(a.connectTimeout)); err != nil {
		return nil, nil, err
	}
	c := &conn{Conn: raw, admission: a, client: client, crowd: a.crowdOf(client)}
	if c.crowd.size() >= maxUnauthenticated {
		evicted = c.crowd.victim()
		a.vacate(evicted)
	}
	a.conns[c] = struct{}{}
	c.crowd.add(c)
	return c, evicted, nil
}

// vacate ends the place of a connection among those that have not authenticated, if it has one. mu is held.
func (a *admission) vacate(c *conn) {
	c.crowd.remove(c)
	select {
	case a.freed <- struct{}{}:
	default:
	}
}

// admit attaches the session to a connection whose client has authenticated.
func (a *admission) admit(c *conn, s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, here := a.conns[c]; !here || c.session.Swap(s) != nil {
		return
	}
	c.crowd.progress = time.Now()
	a.vacate(c)
	if len(a.known) >= maxKnown {
		for forgotten := range a.known { // any
			delete(a.known, forgotten)
			break
		}
	}
	a.known[c.client] = struct{}{}
}

func (a *admission) leave(c *conn) (s *session, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, here := a.conns[c]; !here {
		return nil, false
	}
	delete(a.conns, c)
	a.vacate(c)
	s = c.session.Load()
	if a.closed && len(a.conns) == 0 {
		close(a.emptied)
	}
	return s, true
}

// shut rejects further connections. emptied is closed when the last connection has closed.
func (a *admission) shut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	if len(a.conns) == 0 {
		close(a.emptied)
	}
}

// cut closes every connection.
func (a *admission) cut() {
	a.mu.Lock()
	conns := make([]*conn, 0, len(a.conns))
	for c := range a.conns {
		conns = append(conns, c)
	}
	a.mu.Unlock()
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

func (l *listener) Accept() (net.Conn, error) {
	pause := 5 * time.Millisecond
	for {
		raw, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil {
			l.log.Warn("mqtt: accept", "error", err, "pause", pause)
			time.Sleep(pause)
			pause = min(2*pause, maxAcceptPause)
			continue
		}
		pause = 5 * time.Millisecond
		c, err := l.admission.enter(raw, addressOf(raw))
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
