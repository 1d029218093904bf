package broker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/protocol"
)

// wsLine is the agent's end of MQTT over WebSocket.
type wsLine struct {
	*wsConn
}

func dialWebSocket(url string, header http.Header) (net.Conn, error) {
	dialer := websocket.Dialer{Subprotocols: []string{"mqtt"}, HandshakeTimeout: 3 * time.Second}
	ws, response, err := dialer.Dial("ws"+strings.TrimPrefix(url, "http"), header)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	return wsLine{&wsConn{Conn: ws.NetConn(), ws: ws}}, nil
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	b := start(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.ServeWebSocket(w, r, "203.0.113.7") }))
	t.Cleanup(server.Close)
	a := agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: func() (net.Conn, error) { return dialWebSocket(server.URL, nil) }})
	id := b.ask(t, "gangnam")
	if h := receive(t, b.doors); h.branch != "gangnam" || h.message.(protocol.Claim).RequestID != id {
		t.Errorf("got %+v", h)
	}
	a.Close()
	wait(t, "offline", func() bool { return len(b.Online("gangnam")) == 0 })

	if _, err := dialWebSocket(server.URL, http.Header{"Origin": {"https://evil.example"}}); err == nil {
		t.Error("a page of another origin was let in")
	}
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("without the subprotocol: %d", response.StatusCode)
	}
}

func TestWebSocketGuards(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.hurry(300 * time.Millisecond)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.ServeWebSocket(w, r, "203.0.113.7") }))
	t.Cleanup(server.Close)
	idle, err := dialWebSocket(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	huge, err := dialWebSocket(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer huge.Close()
	_, _ = huge.Write(make([]byte, protocol.MaxPacket+1))
	text, err := dialWebSocket(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	_ = text.(wsLine).ws.WriteMessage(websocket.TextMessage, connectPacket("agent-gangnam", "agent-gangnam", "agent-gangnam-demo", 5, 10))
	for name, conn := range map[string]net.Conn{"idle": idle, "huge": huge, "text": text} {
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if n, err := conn.Read(make([]byte, 64)); err == nil {
			t.Errorf("%s: got %d bytes", name, n)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certificate, roots := selfSigned(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, func(_ *running, cfg *Config) {
		cfg.TLS, cfg.TLSConfig = l, &tls.Config{Certificates: []tls.Certificate{certificate}}
	})
	dial := func(config *tls.Config) func() (net.Conn, error) {
		return func() (net.Conn, error) { return tls.Dial("tcp", l.Addr().String(), config) }
	}
	a := agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: dial(&tls.Config{RootCAs: roots})})
	id := b.ask(t, "gangnam")
	a.Until(t, "the ask", func() bool { return a.Asked(id) > 0 })
	b.admission.mu.Lock()
	if n := b.admission.strangers.size() + b.admission.familiar.size(); n != 0 {
		t.Errorf("%d unauthenticated connections: admission does not see through TLS", n)
	}
	b.admission.mu.Unlock()
	if _, err := dial(&tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})(); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
	b.hurry(300 * time.Millisecond)
	silent, err := net.Dial("tcp", l.Addr().String()) // no handshake
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_ = silent.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("a silent socket stays")
	}
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{{127, 0, 0, 1}}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
