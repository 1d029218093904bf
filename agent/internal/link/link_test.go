package link_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testLink is a link and the messages it received.
type testLink struct {
	*link.Link
	received chan link.Message
	stop     func()
}

func connect(t *testing.T, address string, change func(*link.Config)) *testLink {
	t.Helper()
	u, err := link.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	l := &testLink{received: make(chan link.Message, 100)}
	config := link.Config{Branch: "gangnam", Brokers: []*url.URL{u}, ClientID: protocol.AgentID("gangnam"), Username: protocol.AgentID("gangnam"),
		Password: brokertest.Password, Receive: func(m link.Message) { l.received <- m }, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&config)
	}
	l.Link = link.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, link.AgentInfo{BootID: "boot", Began: time.Now()}) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(l.stop)
	return l
}

var ask = protocol.Ask{RequestID: "0d3b0f34-9c1e-4b7a-8f62-5d6a0c1b2e3f", Doors: []string{"room_1"}}

func result(device string) protocol.Result {
	return protocol.Result{RequestID: ask.RequestID, Device: device, Outcome: protocol.Opened}
}

// wantBothWays sends a message in each direction.
func (l *testLink) wantBothWays(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.Send("gangnam", ask)
	select {
	case m := <-l.received:
		if m.Kind != protocol.KindDoorAsk {
			t.Errorf("got %s, want %s", m.Kind, protocol.KindDoorAsk)
		}
	case <-time.After(time.Minute):
		t.Fatal("the link received no message")
	}
	l.Send(result("room_1"), nil, protocol.ResultTTL)
	brokertest.Await[protocol.Result](b)
}

func TestTransports(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	roots, secure := terminateTLS(t, b.Addr)
	_, secureWS := terminateTLSWith(t, roots, mustParse(t, b.WSURL).Host)
	settings := &tls.Config{RootCAs: roots.pool}
	for name, c := range map[string]struct {
		address string
		tls     *tls.Config
	}{
		"TCP":              {"mqtt://" + b.Addr, nil},
		"TLS":              {"mqtts://" + secure, settings},
		"WebSocket":        {b.WSURL, nil},
		"secure WebSocket": {"wss://" + secureWS + "/mqtt", settings},
	} {
		t.Run(name, func(t *testing.T) {
			l := connect(t, c.address, func(config *link.Config) { config.TLS = c.tls })
			brokertest.Await[protocol.Status](b)
			l.wantBothWays(t, b)
			l.stop()
			if s := brokertest.Await[protocol.Status](b); s.State != protocol.Offline {
				t.Errorf("got status %+v after the link stopped, want offline", s)
			}
		})
	}
}

func TestUntrustedBrokerIsRejected(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	_, secure := terminateTLS(t, b.Addr)
	connect(t, "mqtts://"+secure, nil)
	if !b.Silent(time.Second, protocol.KindStatus) {
		t.Error("connected to a broker with an untrusted certificate")
	}
}

func TestReconnectsAfterCut(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	l := connect(t, "mqtt://"+b.Addr, nil)
	first := brokertest.Await[protocol.Status](b)
	for range 3 {
		b.DropAll()
		var s protocol.Status
		for s.State != protocol.Online {
			s = brokertest.Await[protocol.Status](b) // the will arrives first
		}
		if s.BootID != first.BootID || s.Connection <= first.Connection {
			t.Errorf("got status %+v after %+v", s, first)
		}
		first = s
		l.wantBothWays(t, b)
	}
	if s, ok := b.Retained(protocol.Agent{Branch: "gangnam", Username: protocol.AgentID("gangnam")}); !ok || s.State != protocol.Online {
		t.Errorf("got retained status %+v, want online", s)
	}
}

// TestOutboxSurvivesBrokerRestart checks that results sent while the broker is down arrive when it is back, unless they have
// expired.
func TestOutboxSurvivesBrokerRestart(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, brokertest.ReusableAddr(t))
	l := connect(t, "mqtt://"+b.Addr, nil)
	brokertest.Await[protocol.Status](b)
	b.Stop()
	l.Send(result("room_1"), nil, protocol.ResultTTL)
	l.Send(result("room_2"), nil, 50*time.Millisecond)
	l.Send(result("room_3"), []byte("42"), protocol.ResultTTL)
	time.Sleep(100 * time.Millisecond)

	again := brokertest.Start(t, b.Addr)
	devices := make(map[string]bool)
	for range 2 {
		devices[brokertest.Await[protocol.Result](again).Device] = true
	}
	if !devices["room_1"] || !devices["room_3"] {
		t.Errorf("got results of %v, want room_1 and room_3", devices)
	}
	if !again.Silent(200*time.Millisecond, protocol.KindDoorResult) {
		t.Error("a result arrived after it expired, or twice")
	}
}

// TestOutboxIsBounded checks that the newest messages replace the oldest ones.
func TestOutboxIsBounded(t *testing.T) {
	t.Parallel()
	down := httptest.NewUnstartedServer(nil) // listens, but never answers
	defer down.Close()
	var mu sync.Mutex
	address := down.Listener.Addr().String()
	l := connect(t, "mqtt://"+address, func(config *link.Config) {
		config.Dial = func(ctx context.Context, _ *url.URL) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if address == "" {
				return nil, errors.New("no route")
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	})
	for range 1000 {
		l.Send(result("room_1"), nil, protocol.ResultTTL)
	}
	l.Send(result("room_2"), nil, protocol.ResultTTL)
	b := brokertest.Start(t, "127.0.0.1:0")
	mu.Lock()
	address = b.Addr
	mu.Unlock()
	n := 0
	for device := ""; device != "room_2"; n++ {
		device = brokertest.Await[protocol.Result](b).Device
	}
	if n > 256 {
		t.Errorf("got %d results, want at most 256", n)
	}
}

// TestHalfOpenConnection drops all packets without closing the connection. The missing acknowledgement ends the connection,
// and a new one delivers the result.
func TestHalfOpenConnection(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	hole := newBlackHole()
	l := connect(t, "mqtt://"+b.Addr, func(config *link.Config) { config.Dial = hole.dial })
	brokertest.Await[protocol.Status](b)
	hole.open()
	l.Send(result("room_1"), nil, protocol.ResultTTL) // lost
	brokertest.Await[protocol.Result](b)
	l.wantBothWays(t, b)
}

// TestTopics checks that an agent uses the topics of its credential, except with a broker of the previous release.
func TestTopics(t *testing.T) {
	t.Parallel()
	for _, broker := range []string{"current", "rejects", "disconnects"} {
		b := brokertest.Start(t, "127.0.0.1:0")
		want := protocol.Agent{Branch: "gangnam", Username: protocol.AgentID("gangnam")}
		if broker != "current" {
			b.SetLegacy(broker == "disconnects")
			want.Username = ""
		}
		l := connect(t, "mqtt://"+b.Addr, nil)
		awaitOnline(b, 1)
		l.wantBothWays(t, b)
		l.Send(result("room_2"), nil, protocol.ResultTTL)
		if r := b.Next(protocol.KindDoorResult); r.Topic != want.Topic(protocol.KindDoorResult) {
			t.Errorf("got topic %s, want %s", r.Topic, want.Topic(protocol.KindDoorResult))
		}
		l.stop()
	}
}

// awaitOnline waits for the status of a connection, or a later one.
func awaitOnline(b *brokertest.Broker, connection uint32) {
	for s := (protocol.Status{}); s.State != protocol.Online || s.Connection < connection; {
		s = brokertest.Await[protocol.Status](b)
	}
}

// TestTakeoverBacksOff connects two agents under one client id, as a copied SD card does. Each disconnects the other, so they
// must slow down instead of reconnecting many times a second.
func TestTakeoverBacksOff(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	first := connect(t, "mqtt://"+b.Addr, nil)
	brokertest.Await[protocol.Status](b)
	busy, stop := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	defer func() { stop(); publishing.Wait() }()
	publishing.Go(func() { // so that a publisher is the first to notice the takeover
		for busy.Err() == nil {
			first.Send(result("room_9"), nil, protocol.ResultTTL)
			time.Sleep(time.Millisecond)
		}
	})
	connect(t, "mqtt://"+b.Addr, nil)
	time.Sleep(5 * time.Second)
	if n := b.Connections(); n < 2 || n > 6 {
		t.Errorf("got %d connections in 5 seconds, want 2 to 6", n)
	}
}

// TestReturnAfterTakeover checks that a single takeover costs the branch about a second: the other client left at once.
func TestReturnAfterTakeover(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	l := connect(t, "mqtt://"+b.Addr, nil)
	brokertest.Await[protocol.Status](b)
	usurper := connect(t, "mqtt://"+b.Addr, nil)
	for b.Connections() < 2 {
		time.Sleep(time.Millisecond)
	}
	usurper.stop()
	for b.Connections() < 3 {
		time.Sleep(time.Millisecond)
	}
	awaitOnline(b, 2)
	l.wantBothWays(t, b)
}

// TestBrokerThatEndsConnections ends each connection as soon as it is online, as a broker does that rejects a topic or a
// client over its quota. The agent must not reconnect at full speed, nor log every attempt.
func TestBrokerThatEndsConnections(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	var log lineCount
	connect(t, "mqtt://"+b.Addr, func(config *link.Config) { config.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b.DropAll()
	}
	// TestPace holds the average to ten. A single run has more than 13 by chance once in 100,000 times, and more than ten once in 30.
	if n := b.Connections(); n > 13 {
		t.Errorf("got %d connections in 6 seconds, want at most 13", n)
	}
	if n := log.Load(); n > 4 {
		t.Errorf("got %d log lines in 6 seconds, want at most 4", n)
	}
}

// lineCount counts the lines of a log.
type lineCount struct{ atomic.Int64 }

func (c *lineCount) Write(b []byte) (int, error) {
	c.Add(1)
	return len(b), nil
}

func TestFailedSubscriptionEndsTheConnection(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	b.RejectSubscriptions(4) // one connection and the first try of the next
	l := connect(t, "mqtt://"+b.Addr, nil)
	var s protocol.Status
	for s.State != protocol.Online {
		s = brokertest.Await[protocol.Status](b)
	}
	if s.Connection != 2 {
		t.Errorf("got connection %d, want 2", s.Connection)
	}
	l.wantBothWays(t, b)
}

// silent is a connection that delivers only the CONNACK, as one of a broker or a network that is too busy.
type silent struct {
	net.Conn
	reads  int
	closed chan struct{}
	once   sync.Once
}

func (c *silent) Read(b []byte) (int, error) {
	if c.reads++; c.reads > 1 {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Read(b)
}

func (c *silent) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// TestSlowSubscriptionIsNoRejection loses the answers to the first subscriptions. The topics of the credential, over which the agent receives
// the time, passes, keys and settings, are used as soon as a broker answers.
func TestSlowSubscriptionIsNoRejection(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	dials := 0
	connect(t, "mqtt://"+b.Addr, func(config *link.Config) {
		config.Dial = func(ctx context.Context, u *url.URL) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
			if dials++; err == nil && dials <= 3 {
				conn = &silent{Conn: conn, closed: make(chan struct{})}
			}
			return conn, err
		}
	})
	wantOwnTopic(t, b)
}

// late is a connection on which every byte arrives after delay.
type late struct {
	net.Conn
	delay    time.Duration
	arriving chan arrival
	rest     []byte
}

type arrival struct {
	at    time.Time
	bytes []byte
}

func newLate(conn net.Conn, delay time.Duration) *late {
	l := &late{Conn: conn, delay: delay, arriving: make(chan arrival, 1000)}
	go func() {
		defer close(l.arriving)
		for {
			buffer := make([]byte, 4096)
			n, err := conn.Read(buffer)
			if n > 0 {
				l.arriving <- arrival{time.Now().Add(delay), buffer[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	return l
}

func (l *late) Read(b []byte) (int, error) {
	if len(l.rest) == 0 {
		a, ok := <-l.arriving
		if !ok {
			return 0, io.EOF
		}
		time.Sleep(time.Until(a.at))
		l.rest = a.bytes
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// TestSlowNetwork has a network that takes longer for each answer than an agent waits on a fast one, as a congested uplink does. The agent
// is online all the same and stays so: keypads need the time and their passes.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	const roundTrip = 3300 * time.Millisecond
	b := brokertest.Start(t, "127.0.0.1:0")
	username := protocol.AgentID("gangnam")
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	b.SetKey(username, key.Public().(ed25519.PublicKey))
	connect(t, "mqtt://"+b.Addr, func(config *link.Config) {
		config.Secrets = func() []link.Secret { return []link.Secret{{Key: key}} }
		config.Dial = func(ctx context.Context, u *url.URL) (net.Conn, error) {
			select {
			case <-time.After(roundTrip):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
			if err != nil {
				return nil, err
			}
			return newLate(conn, roundTrip), nil
		}
	})
	for limit, heartbeats := time.After(2*time.Minute), 0; heartbeats < 2; {
		select {
		case m := <-b.Messages():
			if m.Kind != protocol.KindHeartbeat {
				continue
			}
			h, err := protocol.Decode[protocol.Heartbeat](m.Payload)
			if err != nil || h.Connection != 1 {
				t.Fatalf("got heartbeat %+v (%v), want one of connection 1", h, err)
			}
			heartbeats++
		case <-limit:
			t.Fatalf("got %d heartbeats, want 2", heartbeats)
		}
	}
}

// TestTopicsOfTheCredentialAreTriedAgain connects to a broker of an earlier release, which is then replaced by one of this release without
// ending the connection, as a proxy may do.
func TestTopicsOfTheCredentialAreTriedAgain(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	b.SetLegacy(false)
	connect(t, "mqtt://"+b.Addr, func(config *link.Config) { config.LegacyTime = 100 * time.Millisecond })
	if r := b.Next(protocol.KindStatus); r.Topic != protocol.Topic("gangnam", protocol.KindStatus) {
		t.Errorf("got a status on %s, want the topic of the branch", r.Topic)
	}
	b.EndLegacy()
	wantOwnTopic(t, b)
}

// wantOwnTopic waits for a status on the topic of the credential.
func wantOwnTopic(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	own := protocol.Agent{Branch: "gangnam", Username: protocol.AgentID("gangnam")}.Topic(protocol.KindStatus)
	limit := time.After(time.Minute)
	for {
		select {
		case r := <-b.Messages():
			if r.Topic == own {
				return
			}
		case <-limit:
			t.Fatal("no status on the topic of the credential within a minute")
		}
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	connect(t, "mqtt://"+b.Addr, func(config *link.Config) { config.Password = "guess" })
	if !b.Silent(500*time.Millisecond, protocol.KindStatus) {
		t.Error("connected with a wrong password")
	}
}

// TestHeartbeat checks that heartbeats come at their interval. The first comes after a random part of it.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	connect(t, "mqtt://"+b.Addr, nil)
	s := brokertest.Await[protocol.Status](b)
	first, second := brokertest.Await[protocol.Heartbeat](b), brokertest.Await[protocol.Heartbeat](b)
	for _, h := range []protocol.Heartbeat{first, second} {
		if h.BootID != s.BootID || h.Connection != s.Connection {
			t.Errorf("got heartbeat %+v of status %+v", h, s)
		}
	}
	if first.UptimeMs > 7000 {
		t.Errorf("got the first heartbeat after %d ms, want at most an interval", first.UptimeMs)
	}
	if interval := second.UptimeMs - first.UptimeMs; interval < 4900 || interval > 7000 {
		t.Errorf("got heartbeats %d ms apart, want 5000", interval)
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for address, host := range map[string]string{
		"mqtt://broker": "broker:1883", "mqtts://broker": "broker:8883", "ws://broker/mqtt": "broker:80", "wss://broker/mqtt": "broker:443",
		"mqtt://[::1]": "[::1]:1883", "mqtt://broker:7": "broker:7",
	} {
		if u, err := link.ParseURL(address); err != nil || u.Host != host {
			t.Errorf("%s: got %v, %v, want host %s", address, u, err, host)
		}
	}
	for _, address := range []string{"", "broker:1883", "tcp://broker", "mqtt://", "mqtt://:1883", "mqtts://user:secret@broker", "://"} {
		if u, err := link.ParseURL(address); err == nil {
			t.Errorf("%q: got %v, want an error", address, u)
		}
	}
}

func TestExposed(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"mqtt://yeolda.example.com": true, "ws://8.8.8.8/mqtt": true, "ws://[2001:4860:4860::8888]/mqtt": true,
		"wss://yeolda.example.com/mqtt": false, "mqtts://yeolda.example.com": false, "mqtt://broker": false, "ws://127.0.0.1/mqtt": false,
		"ws://192.168.0.10/mqtt": false, "mqtt://[::1]": false, "mqtt://broker.lan": false, "mqtt://[fe80::1]": false,
	} {
		if got := link.Exposed(mustParse(t, address)); got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
}

// blackHole is a network that drops the packets of existing connections without closing them. New connections work.
type blackHole struct {
	mu    sync.Mutex
	conns []*vanishing
}

func newBlackHole() *blackHole { return &blackHole{} }

func (h *blackHole) dial(ctx context.Context, u *url.URL) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	v := &vanishing{Conn: conn, cut: make(chan struct{}), closed: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, v)
	return v, nil
}

// open drops all further packets of the existing connections.
func (h *blackHole) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		close(c.cut)
	}
}

type vanishing struct {
	net.Conn
	cut, closed chan struct{}
	once        sync.Once
}

func (v *vanishing) Read(b []byte) (int, error) {
	n, err := v.Conn.Read(b)
	select {
	case <-v.cut:
		<-v.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (v *vanishing) Write(b []byte) (int, error) {
	select {
	case <-v.cut:
		return len(b), nil
	default:
		return v.Conn.Write(b)
	}
}

func (v *vanishing) Close() error {
	v.once.Do(func() { close(v.closed) })
	return v.Conn.Close()
}

func mustParse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// authority is a certificate and a pool that trusts it.
type authority struct {
	pool        *x509.CertPool
	certificate tls.Certificate
}

// terminateTLS puts TLS in front of a plain address. It returns the certificate and the address of the listener.
func terminateTLS(t *testing.T, to string) (authority, string) {
	t.Helper()
	https := httptest.NewTLSServer(nil) // for its certificate
	https.Close()
	pool := x509.NewCertPool()
	pool.AddCert(https.Certificate())
	return terminateTLSWith(t, authority{pool, https.TLS.Certificates[0]}, to)
}

func terminateTLSWith(t *testing.T, a authority, to string) (authority, string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{a.certificate}})
	if err != nil {
		t.Fatal(err)
	}
	var proxying sync.WaitGroup
	proxying.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			proxying.Go(func() { proxy(in, to) })
		}
	})
	t.Cleanup(func() { listener.Close(); proxying.Wait() })
	return a, listener.Addr().String()
}

func proxy(in net.Conn, to string) {
	defer in.Close()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	go func() { _, _ = io.Copy(out, in); out.Close() }() // either side may close, as on a real network
	_, _ = io.Copy(in, out)
}

// TestStalledCardDelaysNoConnection has the card stall while the address of the broker is stored.
func TestStalledCardDelaysNoConnection(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	_, port, err := net.SplitHostPort(b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "address")
	if err := syscall.Mkfifo(file+".new", 0o600); err != nil { // opening it blocks until it is read
		t.Fatal(err)
	}
	l := connect(t, "mqtt://localhost:"+port, func(c *link.Config) { c.AddressFile = file })
	l.Send(protocol.Claim{RequestID: ask.RequestID, Nonce: protocol.NewNonce()}, nil, time.Minute)
	brokertest.Await[protocol.Claim](b)
	if text, err := os.ReadFile(file + ".new"); err != nil || string(text) != "localhost 127.0.0.1\n" {
		t.Errorf("stored %q, %v", text, err)
	}
}
