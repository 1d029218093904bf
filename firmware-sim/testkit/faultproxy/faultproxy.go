// Package faultproxy is a TCP proxy with the faults of a network and of a server: it can be cut and frozen, and it can lose,
// delay or distort one request or its answer. Tests put it between a program and each service that the program depends on.
package faultproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Proxy listens on loopback and forwards each connection. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	running  sync.WaitGroup

	mu    sync.Mutex
	down  bool
	flow  chan struct{} // closed while bytes flow
	conns map[net.Conn]struct{}
	rules []*Rule
}

// Rule makes the proxy fail at one request: the first that matches uses the rule up. A request is the result of one read,
// so rules are for small requests that are sent at once.
type Rule struct {
	After   string        // text that the connection must have carried before; empty: any
	On      string        // text that the request contains
	Lose    bool          // the request is lost; otherwise it arrives and its answer is lost
	Delay   time.Duration // the request is forwarded late; its answer is not lost
	Answer  string        // is sent in place of the real answer; then the connection is reset
	Replace [2]string     // old and new text in the answer, of equal length
}

// New starts a proxy to the server that dial reaches. The caller must close it.
func New(dial func() (net.Conn, error)) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // listening on loopback does not block
	if err != nil {
		return nil, fmt.Errorf("start a fault proxy: %w", err)
	}
	p := &Proxy{listener: listener, dial: dial, flow: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(p.flow)
	p.running.Go(p.accept)
	return p, nil
}

// Addr returns the address on which the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Add adds a rule.
func (p *Proxy) Add(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &r)
}

// Cut resets every connection and refuses new ones until Restore.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

func (p *Proxy) cutLocked() {
	p.down = true
	for conn := range p.conns {
		reset(conn)
	}
}

// Freeze stops the flow of bytes and closes nothing: a partition, after which earlier bytes still arrive.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flow:
		p.flow = make(chan struct{})
	default: // already frozen
	}
}

// Restore ends a Cut and a Freeze.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
	p.thawLocked()
}

func (p *Proxy) thawLocked() {
	select {
	case <-p.flow:
	default:
		close(p.flow)
	}
}

// Close ends all connections and waits for the proxy's goroutines.
func (p *Proxy) Close() {
	p.listener.Close()
	p.mu.Lock()
	p.cutLocked()
	p.thawLocked()
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	if !p.register(client) {
		return
	}
	defer p.release(client)
	server, err := p.dial()
	if err != nil {
		return
	}
	if !p.register(server) {
		return
	}
	defer p.release(server)
	c := &connection{proxy: p, client: client, server: server}
	var both sync.WaitGroup
	both.Go(func() { copyUntil(server, client, c.request) })
	both.Go(func() { copyUntil(client, server, c.answer) })
	both.Wait()
}

// register adds a connection to those that Cut resets. It returns false if the proxy is cut.
func (p *Proxy) register(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		reset(conn)
		return false
	}
	p.conns[conn] = struct{}{}
	return true
}

func (p *Proxy) release(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// awaitFlow blocks while the proxy is frozen.
func (p *Proxy) awaitFlow() {
	p.mu.Lock()
	flow := p.flow
	p.mu.Unlock()
	<-flow
}

// match returns the rule for a request and removes it, or nil.
func (p *Proxy) match(carried, request []byte) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.rules {
		if bytes.Contains(request, []byte(r.On)) && bytes.Contains(carried, []byte(r.After)) {
			p.rules = append(p.rules[:i:i], p.rules[i+1:]...)
			return r
		}
	}
	return nil
}

// connection is one client's connection and the rule for its answers.
type connection struct {
	proxy          *Proxy
	client, server net.Conn
	carried        []byte // by earlier requests; collected while there are rules

	mu   sync.Mutex
	rule *Rule
}

// errBroken ends a connection that a rule breaks.
var errBroken = errors.New("faultproxy: the connection is broken by a rule")

// request returns the bytes to forward for one request.
func (c *connection) request(bytes []byte) ([]byte, error) {
	c.proxy.awaitFlow()
	c.carried = append(c.carried, bytes...)
	r := c.proxy.match(c.carried, bytes)
	switch {
	case r == nil:
	case r.Lose:
		c.reset()
		return nil, errBroken
	case r.Delay > 0:
		time.Sleep(r.Delay)
	default:
		c.mu.Lock()
		c.rule = r
		c.mu.Unlock()
	}
	return bytes, nil
}

// answer returns the bytes to forward for a part of an answer.
func (c *connection) answer(part []byte) ([]byte, error) {
	c.proxy.awaitFlow()
	c.mu.Lock()
	r := c.rule
	c.mu.Unlock()
	switch {
	case r == nil:
		return part, nil
	case r.Replace[0] != "":
		return bytes.ReplaceAll(part, []byte(r.Replace[0]), []byte(r.Replace[1])), nil
	default:
		_, _ = c.client.Write([]byte(r.Answer)) // the connection ends in any case
		c.reset()
		return nil, errBroken
	}
}

func (c *connection) reset() {
	reset(c.client)
	c.server.Close()
}

// copyUntil forwards until either end closes, and then closes the writing side of the other.
func copyUntil(to, from net.Conn, forward func([]byte) ([]byte, error)) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			out, broken := forward(buffer[:n])
			if broken != nil {
				return
			}
			if _, err := to.Write(out); err != nil {
				from.Close()
				return
			}
		}
		if err != nil {
			if half, ok := to.(interface{ CloseWrite() error }); ok && errors.Is(err, io.EOF) {
				_ = half.CloseWrite()
			} else {
				to.Close()
			}
			return
		}
	}
}

// reset closes a connection with a TCP reset.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the connection is closed in any case
	}
	conn.Close()
}
