package link_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is a link with what it received.
type line struct {
	*link.Link
	received chan link.Message
	stop     func()
}

func connect(t *testing.T, address string, change func(*link.Config)) *line {
	t.Helper()
	u, err := link.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{received: make(chan link.Message, 100)}
	config := link.Config{Branch: "gangnam", URL: u, ClientID: protocol.AgentID("gangnam"), Username: protocol.AgentID("gangnam"),
		Password: brokertest.Password, Receive: func(m link.Message) { l.received <- m }, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&config)
	}
	l.Link = link.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, link.Self{BootID: "boot", Began: time.Now()}) }()
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

// wantBothWays passes a message in each direction.
func (l *line) wantBothWays(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.Send("gangnam", ask)
	select {
	case m := <-l.received:
		if m.Kind != protocol.KindDoorAsk {
			t.Errorf("received %s", m.Kind)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("deaf")
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
				t.Errorf("status %+v after the goodbye", s)
			}
		})
	}
}

func TestUntrustedBrokerIsRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	_, secure := terminateTLS(t, b.Addr)
	connect(t, "mqtts://"+secure, nil)
	if !b.Silent(time.Second, protocol.KindStatus) {
		t.Error("connected to a broker whose certificate nobody knows")
	}
}

func TestReconnectsAfterACut(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	l := connect(t, "mqtt://"+b.Addr, nil)
	first := brokertest.Await[protocol.Status](b)
	for range 5 {
		cut := time.Now()
		b.DropAll()
		var s protocol.Status
		for s.State != protocol.Online {
			s = brokertest.Await[protocol.Status](b) // the will comes first
		}
		if took := time.Since(cut); took > time.Second {
			t.Errorf("back after %v", took)
		}
		if s.BootID != first.BootID || s.Connection <= first.Connection {
			t.Errorf("status %+v after %+v", s, first)
		}
		first = s
		l.wantBothWays(t, b)
	}
	if s, ok := b.Retained("gangnam"); !ok || s.State != protocol.Online {
		t.Errorf("retained status %+v", s)
	}
}

// TestOutboxSurvivesABrokerRestart: results that were sent while the broker was away arrive when it is back, and those
// whose life has ended do not.
func TestOutboxSurvivesABrokerRestart(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	l := connect(t, "mqtt://"+b.Addr, nil)
	brokertest.Await[protocol.Status](b)
	b.Stop()
	l.Send(result("room_1"), nil, protocol.ResultTTL)
	l.Send(result("room_2"), nil, 50*time.Millisecond)
	l.Send(result("room_3"), []byte("42"), protocol.ResultTTL)
	time.Sleep(100 * time.Millisecond)

	back := time.Now()
	again := brokertest.Start(t, b.Addr)
	devices := make(map[string]bool)
	for range 2 {
		devices[brokertest.Await[protocol.Result](again).Device] = true
	}
	if took := time.Since(back); took > 2*time.Second {
		t.Errorf("back after %v", took)
	}
	if !devices["room_1"] || !devices["room_3"] {
		t.Errorf("arrived: %v", devices)
	}
	if !again.Silent(200*time.Millisecond, protocol.KindDoorResult) {
		t.Error("a result arrived after its life, or twice")
	}
}

// TestOutboxIsBounded: what does not fit pushes the oldest out.
func TestOutboxIsBounded(t *testing.T) {
	t.Parallel()
	down := httptest.NewUnstartedServer(nil) // listens, never answers
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
		t.Errorf("%d results kept", n)
	}
}

// TestHalfOpenLine: packets vanish and nothing is closed. The heartbeat notices, and a new connection takes over.
func TestHalfOpenLine(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	hole := newBlackHole()
	l := connect(t, "mqtt://"+b.Addr, func(config *link.Config) { config.Dial = hole.dial })
	brokertest.Await[protocol.Status](b)
	hole.open()
	l.Send(result("room_1"), nil, protocol.ResultTTL) // swallowed
	cut := time.Now()
	brokertest.Await[protocol.Result](b)
	if took := time.Since(cut); took > 5*time.Second {
		t.Errorf("delivered after %v", took)
	}
	l.wantBothWays(t, b)
}

func TestTakenOverAgentStaysAway(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	first := connect(t, "mqtt://"+b.Addr, nil)
	brokertest.Await[protocol.Status](b)
	busy, stop := context.WithCancel(t.Context())
	var talking sync.WaitGroup
	defer func() { stop(); talking.Wait() }()
	talking.Go(func() { // so that the first to notice is one who publishes
		for busy.Err() == nil {
			first.Send(result("room_9"), nil, protocol.ResultTTL)
			time.Sleep(time.Millisecond)
		}
	})
	second := connect(t, "mqtt://"+b.Addr, nil)
	brokertest.Await[protocol.Status](b)
	time.Sleep(2 * time.Second)
	if n := b.Connections(); n != 2 {
		t.Errorf("%d connections, want one of each", n)
	}
	stop()
	second.wantBothWays(t, b)
}

func TestDeafConnectionIsDropped(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	b.RefuseSubscriptions(4) // one connection and the first try of the next
	l := connect(t, "mqtt://"+b.Addr, nil)
	var s protocol.Status
	for s.State != protocol.Online {
		s = brokertest.Await[protocol.Status](b)
	}
	if s.Connection != 2 {
		t.Errorf("connection %d, want the second", s.Connection)
	}
	l.wantBothWays(t, b)
}

func TestWrongPasswordKeepsTrying(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	connect(t, "mqtt://"+b.Addr, func(config *link.Config) { config.Password = "guess" })
	if !b.Silent(500*time.Millisecond, protocol.KindStatus) {
		t.Error("connected with a wrong password")
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	connect(t, "mqtt://"+b.Addr, nil)
	s := brokertest.Await[protocol.Status](b)
	h := brokertest.Await[protocol.Heartbeat](b)
	if h.BootID != s.BootID || h.Connection != s.Connection || h.UptimeMs < 4900 || h.UptimeMs > 7000 {
		t.Errorf("heartbeat %+v of %+v", h, s)
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for address, host := range map[string]string{
		"mqtt://broker": "broker:1883", "mqtts://broker": "broker:8883", "ws://broker/mqtt": "broker:80", "wss://broker/mqtt": "broker:443",
		"mqtt://[::1]": "[::1]:1883", "mqtt://broker:7": "broker:7",
	} {
		if u, err := link.ParseURL(address); err != nil || u.Host != host {
			t.Errorf("%s: host %v, error %v", address, u, err)
		}
	}
	for _, address := range []string{"", "broker:1883", "tcp://broker", "mqtt://", "mqtt://:1883", "mqtts://user:secret@broker", "://"} {
		if u, err := link.ParseURL(address); err == nil {
			t.Errorf("%q accepted as %v", address, u)
		}
	}
}

// blackHole is a network that stops carrying packets and closes nothing. Connections made later are sound.
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

// open swallows what the connections so far carry.
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

// authority is a certificate that tests trust.
type authority struct {
	pool        *x509.CertPool
	certificate tls.Certificate
}

// terminateTLS puts TLS before a plain address and returns who signed it and where it listens.
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
	go func() { _, _ = io.Copy(out, in); out.Close() }() // either side may hang up, as on a real line
	_, _ = io.Copy(in, out)
}
