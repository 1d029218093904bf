package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// nameServer is a DNS server on UDP that answers every A question with an address, or stays silent.
func nameServer(t *testing.T, answer netip.Addr) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if answer.IsValid() {
		go answerQuestions(conn, answer)
	}
	return conn.LocalAddr().String()
}

func answerQuestions(conn net.PacketConn, answer netip.Addr) {
	packet := make([]byte, 512)
	for {
		n, from, err := conn.ReadFrom(packet)
		if err != nil {
			return
		}
		end := 12 // of the header; then the labels of the name, type and class
		for packet[end] != 0 {
			end += int(packet[end]) + 1
		}
		end += 5
		if end > n {
			return
		}
		reply := slices.Clone(packet[:end])
		copy(reply[2:12], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // an answer with one question and no records
		if binary.BigEndian.Uint16(reply[end-4:]) == 1 {
			reply[7] = 1
			ip := answer.As4()
			reply = append(reply, 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
			reply = append(reply, ip[:]...)
		}
		_, _ = conn.WriteTo(reply, from) // a lost answer is a silent server
	}
}

// listen accepts TCP connections on an address and returns its port.
func listen(t *testing.T, address string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

const host = "broker.yeolda.test"

// TestSilentNameServer puts a silent name server in front of a working one. Go's resolver waits 5 seconds for each question
// to the first one, which used up the time of every connection.
func TestSilentNameServer(t *testing.T) {
	t.Parallel()
	port := listen(t, "127.0.0.1:0")
	servers := []string{nameServer(t, netip.Addr{}), nameServer(t, netip.MustParseAddr("127.0.0.1"))}
	d := &tcpDialer{servers: func() []string { return servers }}
	ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
	defer cancel()
	conn, err := d.dial(ctx, net.JoinHostPort(host, port), false)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// TestCachedAddress connects while no name server answers: the address that worked last is on disk.
func TestCachedAddress(t *testing.T) {
	t.Parallel()
	port := listen(t, "127.0.0.1:0")
	address := net.JoinHostPort(host, port)
	file := filepath.Join(t.TempDir(), "address")
	silent := nameServer(t, netip.Addr{})
	answering := nameServer(t, netip.MustParseAddr("127.0.0.1"))
	dial := func(server string, useCache bool, limit time.Duration) (*tcpDialer, error) {
		d := newTCPDialer(file)
		d.servers = func() []string { return []string{server} }
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		conn, err := d.dial(ctx, address, useCache)
		if err == nil {
			conn.Close()
		}
		return d, err
	}
	first, err := dial(answering, true, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.cache.confirm()(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != host+" 127.0.0.1\n" {
		t.Errorf("got cache %q, %v", text, err)
	}
	again, err := dial(silent, true, 10*time.Second)
	if err != nil {
		t.Fatalf("with the cached address: %v", err)
	}
	if _, err := dial(silent, false, 2*time.Second); err == nil {
		t.Error("the cached address was used without TLS")
	}
	again.cache.reject()
	if got := again.cache.get(host); got != "" {
		t.Errorf("got cached address %s although no broker answered there", got)
	}
	if got := first.cache.get("other." + host); got != "" {
		t.Errorf("got cached address %s of another host", got)
	}
}

// TestErrorNamesTheStage checks that the log distinguishes a failing name server from a closed port.
func TestErrorNamesTheStage(t *testing.T) {
	t.Parallel()
	port := listen(t, "127.0.0.2:0")
	d := &tcpDialer{servers: func() []string { return nil }}
	if _, err := d.dial(t.Context(), "nowhere.invalid:1", false); err == nil || !strings.Contains(err.Error(), "resolve nowhere.invalid") {
		t.Errorf("got %v, want an error of the name resolution", err)
	}
	if _, err := d.dial(t.Context(), "127.0.0.1:"+port, false); err == nil || !strings.Contains(err.Error(), "connect to 127.0.0.1:"+port) {
		t.Errorf("got %v, want an error of the TCP connection", err)
	}
}

func TestNameServers(t *testing.T) {
	t.Parallel()
	got := nameServers("# by NetworkManager\nsearch lan\nnameserver 192.168.0.1\nnameserver fe80::1%eth0\nnameserver\nnameserver nonsense\noptions edns0\n")
	if want := []string{"192.168.0.1:53", "[fe80::1%eth0]:53"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPace checks the delays between connections.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		total := func(used time.Duration, err error, n int) (sum time.Duration) {
			var p pacer
			for range n {
				sum += p.next(used, err, false)
			}
			return sum
		}
		const n = 200
		if got := total(0, errStopped, n) / n; got < 5*time.Second {
			t.Errorf("got an average delay of %v for a broker that ends each connection, want over 5s", got)
		}
		connections := n // each of n agents begins with one
		for range n {
			var p pacer
			for at := p.next(0, errStopped, false); at < 6*time.Second; at += p.next(0, errStopped, false) {
				connections++
			}
		}
		if connections > 10*n {
			t.Errorf("got an average of %.1f connections in 6 seconds to a broker that ends each, want at most 10", float64(connections)/n)
		}
		if got := total(0, errUnreachable, n) / n; got > 4*time.Second || got < time.Second {
			t.Errorf("got an average delay of %v for an unreachable broker, want 1s to 4s", got)
		}
		if got := total(stableTime-1, errStopped, n) / n; got < 5*time.Second {
			t.Errorf("got an average delay of %v for connections of less than a minute, want over 5s", got)
		}
		if got := total(stableTime, errStopped, n) / n; got > backoffFirst {
			t.Errorf("got an average delay of %v for connections of a minute, want at most %v", got, backoffFirst)
		}
		earliest, latest := time.Hour, time.Duration(0)
		for range n {
			delay := new(pacer).next(stableTime, errStopped, true)
			earliest, latest = min(earliest, delay), max(latest, delay)
		}
		if earliest > backoffFirst+failoverSpread/2 || latest < failoverSpread/2 || latest > backoffFirst+failoverSpread {
			t.Errorf("got delays of %v to %v after a broker of a pool was lost, want them spread over %v", earliest, latest, failoverSpread)
		}
		if got := new(pacer).next(0, errUnreachable, true); got > backoffFirst {
			t.Errorf("got a delay of %v after an attempt at a broker of a pool, want at most %v", got, backoffFirst)
		}
		if got := total(0, errSessionTakenOver, 1); got != takeoverFirst {
			t.Errorf("got a delay of %v after a takeover, want %v", got, takeoverFirst)
		}
		if got := total(0, errSessionTakenOver, 6); got != 61*time.Second {
			t.Errorf("got a delay of %v for six takeovers, want 61s", got)
		}
	})
}

// TestLogVolume keeps the network in a bad state for a day. The log must stay below 1 MB a day.
func TestLogVolume(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for name, dial := range map[string]func(context.Context) (net.Conn, error){
		"no route": func(context.Context) (net.Conn, error) { return nil, errors.New("connect: network is unreachable") },
		"silent":   func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		"ends each connection": func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = theirs.Read(make([]byte, 1)); theirs.Close() }()
			return ours, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				u, err := ParseURL("mqtt://broker.yeolda.test")
				if err != nil {
					t.Fatal(err)
				}
				l := New(Config{Branch: "gangnam", Brokers: []*url.URL{u}, ClientID: "agent-gangnam", Receive: func(Message) {},
					Dial:   func(ctx context.Context, _ *url.URL) (net.Conn, error) { return dial(ctx) },
					Logger: slog.New(slog.NewTextHandler(&out, nil))})
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				if err := l.Run(ctx, AgentInfo{BootID: "boot"}); err != nil {
					t.Error(err)
				}
				t.Logf("%d bytes a day, %d attempts", out.Len(), l.connection)
				if n := out.Len(); n > limit || n == 0 {
					t.Errorf("got %d bytes a day, want some, but less than %d", n, limit)
				}
			})
		})
	}
}

// TestNameServerThatLies connects in a network whose name server answers every question with its own address, as a captive portal does:
// connections to it are accepted, and the TLS handshake fails. The address that worked last is used in turn with it.
func TestNameServerThatLies(t *testing.T) {
	t.Parallel()
	port := listen(t, "127.0.0.1:0")
	portal, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip("there is one loopback address only:", err)
	}
	t.Cleanup(func() { portal.Close() })
	file := filepath.Join(t.TempDir(), "address")
	if err := os.WriteFile(file, []byte(host+" 127.0.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newTCPDialer(file)
	servers := []string{nameServer(t, netip.MustParseAddr("127.0.0.2"))}
	d.servers = func() []string { return servers }
	dialed := func() string {
		t.Helper()
		conn, err := d.dial(t.Context(), net.JoinHostPort(host, port), true)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		address, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		return address
	}
	for _, want := range []string{"127.0.0.2", "127.0.0.1", "127.0.0.2", "127.0.0.1"} { // the certificate of none is right
		if got := dialed(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		d.cache.reject()
	}

	// The broker has moved, and the previous address is dead: it is tried once.
	if err := os.WriteFile(file, []byte(host+" 127.0.0.3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := dialed(); got != "127.0.0.2" {
		t.Errorf("got %s, want that of the name server", got)
	}
	d.cache.reject()
	if conn, err := d.dial(t.Context(), net.JoinHostPort(host, port), true); err == nil {
		t.Errorf("got a connection to %v, want none", conn.RemoteAddr())
	}
	if got := dialed(); got != "127.0.0.2" {
		t.Errorf("got %s, want that of the name server again", got)
	}
}

// TestOutageKeepsTheCachedAddress loses the network after a connection. When it returns without a name server, the address that worked last
// is still in use: no other machine has answered there.
func TestOutageKeepsTheCachedAddress(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	_, port, _ := net.SplitHostPort(closed.Addr().String())
	server := nameServer(t, netip.MustParseAddr("127.0.0.1"))
	for _, scheme := range []string{"wss", "mqtts"} {
		d := newDialer(Config{AddressFile: filepath.Join(t.TempDir(), "address")})
		d.tcp.servers = func() []string { return []string{server} }
		d.tcp.cache.dialed(host, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err := d.tcp.cache.confirm()(); err != nil {
			t.Fatal(err)
		}
		if conn, err := d.dial(t.Context(), &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: "/mqtt"}); err == nil {
			conn.Close()
			t.Fatal("connected to a closed port")
		}
		if got := d.tcp.cache.get(host); got != "127.0.0.1" {
			t.Errorf("%s: got cached address %q, want the one that worked", scheme, got)
		}
	}
}
