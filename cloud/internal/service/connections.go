package service

import (
	"net"
	"net/netip"
	"sync"

	"github.com/yeolda/yeolda/cloud/internal/limit"
)

// defaultFiles is assumed where the limit of open files is unknown.
const defaultFiles = 1024

// agentFiles returns how many of the process's files the connections of agents may use: all but an eighth. Without the rest
// there are neither requests nor database connections, so no agent would open a door.
func agentFiles(files int) int { return files - files/8 }

// connections is the listener of the API. It keeps a quarter of the process's files for the broker, the database and the
// metrics, and allows one network (/24, /48) a quarter of its own. A connection beyond that is closed at once.
type connections struct {
	net.Listener
	trusted []netip.Prefix // proxies, which stand for all clients
	most    int            // connections of all networks
	each    int            // of one network

	mu       sync.Mutex
	all      int
	networks map[string]int
}

func newConnections(l net.Listener, files int, trusted []netip.Prefix) *connections {
	most := files * 3 / 4
	return &connections{Listener: l, trusted: trusted, most: most, each: most / 4, networks: make(map[string]int)}
}

// Accept returns the next connection that has a place.
func (l *connections) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		network := l.networkOf(raw)
		if l.take(network) {
			return &placed{Conn: raw, release: sync.OnceFunc(func() { l.release(network) })}, nil
		}
		_ = raw.Close()
	}
}

// networkOf returns the network of a peer; "" for a trusted proxy.
func (l *connections) networkOf(raw net.Conn) string {
	peer, err := netip.ParseAddrPort(raw.RemoteAddr().String())
	if err != nil {
		return raw.RemoteAddr().String()
	}
	addr := peer.Addr().Unmap()
	for _, proxy := range l.trusted {
		if proxy.Contains(addr) {
			return ""
		}
	}
	return limit.Network(limit.Address(addr))
}

func (l *connections) take(network string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.most || network != "" && l.networks[network] >= l.each {
		return false
	}
	l.all++
	l.networks[network]++
	return true
}

func (l *connections) release(network string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.networks[network]--; l.networks[network] == 0 {
		delete(l.networks, network)
	}
}

// placed is a connection that has a place until it is closed.
type placed struct {
	net.Conn
	release func()
}

func (c *placed) Close() error {
	c.release()
	return c.Conn.Close()
}
