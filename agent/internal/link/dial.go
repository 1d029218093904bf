package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/protocol"
)

// ports maps the schemes of broker addresses to their default ports.
var ports = map[string]string{"mqtt": "1883", "mqtts": "8883", "ws": "80", "wss": "443"}

// ParseURL parses a broker address: mqtt://host, mqtts://host (TLS), ws://host/mqtt or wss://host/mqtt.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("broker address: %w", err)
	}
	port, known := ports[u.Scheme]
	if !known {
		return nil, fmt.Errorf("broker address: scheme %q is none of mqtt, mqtts, ws, wss", u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, errors.New("broker address has no host")
	}
	if u.User != nil {
		return nil, errors.New("broker address contains a password, which belongs in the credentials")
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	return u, nil
}

// encrypted reports whether connections to u use TLS.
func encrypted(u *url.URL) bool { return u.Scheme == "mqtts" || u.Scheme == "wss" }

// Exposed reports whether connections to u send the password unencrypted over a public network. Loopback and private
// addresses, single-label names and names of local networks are not public.
func Exposed(u *url.URL) bool {
	host := u.Hostname()
	if encrypted(u) || !strings.Contains(host, ".") && !strings.Contains(host, ":") {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsLinkLocalUnicast()
	}
	for _, local := range []string{".local", ".lan", ".home.arpa", ".internal", ".localhost", ".test"} {
		if strings.HasSuffix(host, local) {
			return false
		}
	}
	return true
}

// dialer opens connections for MQTT packets.
type dialer struct {
	config Config
	tcp    *tcpDialer
}

func newDialer(config Config) *dialer {
	return &dialer{config: config, tcp: newTCPDialer(config.AddressFile)}
}

// dial opens a connection: TCP, TLS and WebSocket, as the scheme requires.
func (d *dialer) dial(ctx context.Context, broker *url.URL) (net.Conn, error) {
	switch broker.Scheme {
	case "ws", "wss":
		return d.webSocket(ctx, broker)
	}
	conn, err := d.open(ctx, broker, broker.Host)
	if err != nil {
		return nil, err
	}
	if broker.Scheme == "mqtts" {
		if conn, err = d.handshake(ctx, broker, conn); err != nil {
			d.rejected(err)
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
	}
	return newPacketConn(conn), nil
}

// open opens a TCP connection to the broker or its proxy.
func (d *dialer) open(ctx context.Context, broker *url.URL, address string) (net.Conn, error) {
	if d.config.Dial != nil {
		return d.config.Dial(ctx, broker)
	}
	return d.tcp.dial(ctx, address, encrypted(broker) && address == broker.Host)
}

// rejected records that what answered at the address that was dialed last is not the broker, or is not trusted.
func (d *dialer) rejected(err error) {
	d.tcp.cache.reject()
	if d.config.HandshakeFailed != nil {
		d.config.HandshakeFailed(err)
	}
}

// Probe opens a connection to a broker up to the WebSocket upgrade and closes it. It sends no CONNECT: the broker would
// disconnect a running agent with the same client id.
func Probe(ctx context.Context, broker *url.URL, config Config) error {
	conn, err := newDialer(config).dial(ctx, broker)
	if err != nil {
		return fmt.Errorf("%s: %w", broker.Redacted(), err)
	}
	return conn.Close()
}

func (d *dialer) handshake(ctx context.Context, broker *url.URL, conn net.Conn) (net.Conn, error) {
	settings := &tls.Config{}
	if d.config.TLS != nil {
		settings = d.config.TLS.Clone()
	}
	if settings.ServerName == "" {
		settings.ServerName = broker.Hostname()
	}
	secure := tls.Client(conn, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

func (d *dialer) webSocket(ctx context.Context, broker *url.URL) (net.Conn, error) {
	stage, connected := "TCP connection", false
	dialer := websocket.Dialer{
		NetDialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			conn, err := d.open(ctx, broker, address)
			if err == nil {
				stage, connected = "TLS and WebSocket handshake", true
			}
			return conn, err
		},
		Proxy:           d.config.Proxy,
		TLSClientConfig: d.config.TLS,
		Subprotocols:    []string{"mqtt"}, // MQTT 5, 6.0
	}
	if d.config.Proxy == nil && d.config.Dial == nil {
		dialer.Proxy = http.ProxyFromEnvironment
	}
	ws, response, err := dialer.DialContext(ctx, broker.String(), nil) //nolint:bodyclose // not required, by the library's documentation
	if err != nil {
		if connected {
			d.rejected(err)
		}
		if response != nil {
			stage += ", HTTP status " + response.Status
		}
		return nil, fmt.Errorf("%s: %w", stage, err)
	}
	ws.SetReadLimit(protocol.MaxAgentPacket)
	return newPacketConn(NewStream(ws)), nil
}

// packetConn combines the pieces of an MQTT packet, which paho writes between Lock and Unlock, into one write: one segment, one
// TLS record, one WebSocket frame. Unlike paho's, the write has a time-out. Likewise, it combines paho's small reads.
type packetConn struct {
	net.Conn
	reader *bufio.Reader
	mu     sync.Mutex
	packet []byte
}

// readAhead is the size of the read buffer, enough for several asks and grants.
const readAhead = 2048

func newPacketConn(conn net.Conn) *packetConn {
	return &packetConn{Conn: conn, reader: bufio.NewReaderSize(conn, readAhead)}
}

// Read implements io.Reader.
func (c *packetConn) Read(b []byte) (int, error) { return c.reader.Read(b) }

// Lock implements sync.Locker for paho's packets.WriteTo, which holds the lock while it writes a packet.
func (c *packetConn) Lock() { c.mu.Lock() }

// Write collects a piece of a packet.
func (c *packetConn) Write(piece []byte) (int, error) {
	c.packet = append(c.packet, piece...)
	return len(piece), nil
}

// Unlock writes the packet. On an error it closes the connection, so that paho notices through its reader.
func (c *packetConn) Unlock() {
	defer c.mu.Unlock()
	err := c.SetWriteDeadline(time.Now().Add(packetTimeout))
	if err == nil {
		_, err = c.Conn.Write(c.packet)
	}
	if err != nil {
		c.Close()
	}
	c.packet = c.packet[:0]
}

// NewStream returns a WebSocket as a byte stream: MQTT packets need not be aligned with frames (MQTT 5, 6.0).
func NewStream(ws *websocket.Conn) net.Conn { return &stream{Conn: ws.NetConn(), ws: ws} }

type stream struct {
	net.Conn
	ws    *websocket.Conn
	frame io.Reader
}

func (c *stream) Read(b []byte) (int, error) {
	for {
		if c.frame == nil {
			kind, frame, err := c.ws.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errors.New("text frame in an MQTT stream")
			}
			c.frame = frame
		}
		n, err := c.frame.Read(b)
		if err == io.EOF {
			c.frame, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Write sets the deadline of each frame itself, because a WebSocket ignores that of its connection.
func (c *stream) Write(b []byte) (int, error) {
	err := c.ws.SetWriteDeadline(time.Now().Add(packetTimeout))
	if err == nil {
		err = c.ws.WriteMessage(websocket.BinaryMessage, b)
	}
	if err != nil {
		return 0, err
	}
	return len(b), nil
}
