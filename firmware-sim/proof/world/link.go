package world

import (
	"errors"
	"io"
	"net"
	"sync"
)

// Link is a line between two programs that can be cut and frozen.
type Link struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	running  sync.WaitGroup

	mu     sync.Mutex
	down   bool
	closed bool
	flow   chan struct{} // closed while bytes flow
	conns  map[net.Conn]struct{}
}

// NewLink listens on loopback and passes on to what dial reaches.
func NewLink(dial func() (net.Conn, error)) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // on loopback: there is nothing to wait for
	if err != nil {
		return nil, err
	}
	l := &Link{listener: listener, dial: dial, flow: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(l.flow)
	l.running.Go(l.accept)
	return l, nil
}

// Addr is where the line begins.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Cut resets every connection and refuses new ones.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	l.resetLocked()
}

// Freeze lets nothing through and closes nothing: a partition, after which what was sent may still arrive.
func (l *Link) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.flow:
		l.flow = make(chan struct{})
	default: // frozen already
	}
}

// Restore ends both.
func (l *Link) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
	l.thawLocked()
}

// Close ends the line.
func (l *Link) Close() {
	l.listener.Close()
	l.mu.Lock()
	l.down, l.closed = true, true
	l.resetLocked()
	l.thawLocked()
	l.mu.Unlock()
	l.running.Wait()
}

func (l *Link) resetLocked() {
	for conn := range l.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // it is closed in any case
		}
		conn.Close()
	}
}

func (l *Link) thawLocked() {
	select {
	case <-l.flow:
	default:
		close(l.flow)
	}
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.serve(client) })
	}
}

// hold reports whether a connection may live.
func (l *Link) hold(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		conn.Close()
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *Link) release(conn net.Conn) {
	conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
}

func (l *Link) serve(client net.Conn) {
	if !l.hold(client) {
		return
	}
	defer l.release(client)
	server, err := l.dial()
	if err != nil {
		return
	}
	if !l.hold(server) {
		return
	}
	defer l.release(server)
	var both sync.WaitGroup
	both.Go(func() { l.pass(server, client) })
	both.Go(func() { l.pass(client, server) })
	both.Wait()
}

// pass copies until either end closes, and then closes the other's writing side.
func (l *Link) pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		flow := l.flow
		l.mu.Unlock()
		<-flow
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				from.Close()
				return
			}
		}
		if err != nil {
			if tcp, ok := to.(*net.TCPConn); ok && errors.Is(err, io.EOF) {
				_ = tcp.CloseWrite() // the other end notices
			} else {
				to.Close()
			}
			return
		}
	}
}
