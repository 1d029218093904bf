package torture

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// Link is a line between the service and something it depends on, as a TCP proxy that can be cut and made to lie.
type Link struct {
	listener net.Listener
	dial     func() (net.Conn, error)

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
	rules []*Rule
	wg    sync.WaitGroup
}

// Rule makes a line fail at one request. It is used up by the first it fits.
type Rule struct {
	After   string        // what the connection must have carried before; empty: anything
	On      string        // what the request contains
	Lose    bool          // the request itself is lost; otherwise it arrives and its answer is lost
	Delay   time.Duration // the request waits before it is passed on; its answer is not lost
	Answer  string        // sent in place of the real answer, and the line ends
	Replace [2]string     // in the answer, of equal length
}

// NewLink listens on loopback and passes on to what dial reaches.
func NewLink(dial func() (net.Conn, error)) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{listener: listener, dial: dial, conns: map[net.Conn]struct{}{}}
	l.wg.Go(l.accept)
	return l, nil
}

// Addr is where the service reaches the line.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Add has the line fail once as the rule says.
func (l *Link) Add(r Rule) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = append(l.rules, &r)
}

// Cut resets every connection and refuses new ones until Restore.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for conn := range l.conns {
		reset(conn)
	}
}

// Restore lets connections through again.
func (l *Link) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// Close ends the line.
func (l *Link) Close() {
	l.listener.Close()
	l.Cut()
	l.wg.Wait()
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it is closed in any case
	}
	conn.Close()
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.serve(client) })
	}
}

func (l *Link) hold(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		reset(conn)
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
	answers := &answers{to: client}
	var done sync.WaitGroup
	done.Go(func() {
		answers.pass(server)
		reset(client)
		server.Close()
	})
	l.requests(client, server, answers)
	server.Close()
	done.Wait()
}

// requests passes on what the service sends. A request is what one read brings: those that rules are about are small
// and sent at once.
func (l *Link) requests(client, server net.Conn, answers *answers) {
	buffer := make([]byte, 64<<10)
	var carried []byte
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		request := buffer[:n]
		carried = append(carried, request...)
		if r := l.take(carried, request); r != nil {
			switch {
			case r.Lose:
				return
			case r.Delay > 0:
				time.Sleep(r.Delay)
			default:
				answers.distort(r)
			}
		}
		if _, err := server.Write(request); err != nil {
			return
		}
	}
}

func (l *Link) take(carried, request []byte) *Rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.rules {
		if bytes.Contains(request, []byte(r.On)) && bytes.Contains(carried, []byte(r.After)) {
			l.rules = append(l.rules[:i:i], l.rules[i+1:]...)
			return r
		}
	}
	return nil
}

// answers is the way back of one connection.
type answers struct {
	to net.Conn

	mu   sync.Mutex
	rule *Rule
}

func (a *answers) distort(r *Rule) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rule = r
}

func (a *answers) pass(server net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		a.mu.Lock()
		r := a.rule
		a.mu.Unlock()
		answer := buffer[:n]
		switch {
		case r == nil:
		case r.Replace[0] != "":
			answer = bytes.ReplaceAll(answer, []byte(r.Replace[0]), []byte(r.Replace[1]))
		default:
			_, _ = a.to.Write([]byte(r.Answer)) // the line ends in any case
			return
		}
		if _, err := a.to.Write(answer); err != nil {
			return
		}
	}
}
