package service

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// fakePeers is a listener whose connections come from given addresses.
type fakePeers struct {
	net.Listener
	conns chan net.Conn
}

func (f *fakePeers) Accept() (net.Conn, error) { return <-f.conns, nil }

type peerConn struct {
	net.Conn
	from netip.AddrPort
}

func (c peerConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }

func TestOneNetworkLeavesPlacesForOthers(t *testing.T) {
	t.Parallel()
	peers := &fakePeers{conns: make(chan net.Conn)}
	l := newConnections(peers, 32, []netip.Prefix{netip.MustParsePrefix("10.0.0.9/32")}) // 24 connections, 6 of a network
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, _ := l.Accept()
			accepted <- c
		}
	}()
	// connect returns the accepted connection, or nil if the service closed it.
	connect := func(from string) net.Conn {
		t.Helper()
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
		peers.conns <- peerConn{ours, netip.AddrPortFrom(netip.MustParseAddr(from), 1234)}
		closed := make(chan struct{})
		go func() {
			_, _ = theirs.Read(make([]byte, 1))
			close(closed)
		}()
		select {
		case c := <-accepted:
			return c
		case <-closed:
			return nil
		case <-time.After(time.Minute):
			t.Fatal("neither accepted nor closed")
			return nil
		}
	}
	var first net.Conn
	for i := range 6 {
		c := connect(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}).String())
		if c == nil {
			t.Fatalf("connection %d of a network was closed", i)
		}
		if first == nil {
			first = c
		}
	}
	if connect("203.0.113.200") != nil {
		t.Error("a seventh connection of the /24 was accepted")
	}
	for _, from := range []string{"203.0.114.1", "2001:db8::1", "2001:db8:0:ffff::1"} {
		if connect(from) == nil {
			t.Errorf("%s was closed", from)
		}
	}
	_ = first.Close()
	_ = first.Close() // a second one releases nothing
	if connect("203.0.113.200") == nil {
		t.Error("the place of a closed connection is not free")
	}
	if connect("203.0.113.201") != nil {
		t.Error("two places were released by one connection")
	}
	for range 15 {
		if connect("10.0.0.9") == nil {
			t.Fatal("a connection of the proxy was closed")
		}
	}
	if connect("10.0.0.9") != nil {
		t.Error("more connections than the service may hold")
	}
}

func TestAgentsLeaveFiles(t *testing.T) {
	t.Parallel()
	if got := agentFiles(32); got != 28 {
		t.Errorf("agents may use %d of 32 files, want 28", got)
	}
}
