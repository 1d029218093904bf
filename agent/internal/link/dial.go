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
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/protocol"
)

// ports are the schemes of broker addresses, with the port each has when none is given.
var ports = map[string]string{"mqtt": "1883", "mqtts": "8883", "ws": "80", "wss": "443"}

// ParseURL reads a broker address: mqtt://host, mqtts://host (TLS), ws://host/mqtt or wss://host/mqtt.
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
		return nil, errors.New("broker address holds a password; it belongs to the credentials")
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	return u, nil
}

// dial opens the connection that MQTT packets go over.
func dial(ctx context.Context, config Config) (net.Conn, error) {
	switch config.URL.Scheme {
	case "ws", "wss":
		return dialWebSocket(ctx, config)
	}
	conn, err := open(ctx, config, config.URL.Host)
	if err != nil {
		return nil, err
	}
	if config.URL.Scheme == "mqtts" {
		if conn, err = handshake(ctx, conn, config); err != nil {
			return nil, err
		}
	}
	return newPacketConn(conn), nil
}

// open makes a TCP connection to the broker, or to the proxy on the way to it.
func open(ctx context.Context, config Config, address string) (net.Conn, error) {
	if config.Dial != nil {
		return config.Dial(ctx, config.URL)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// Probe opens a connection to the broker as far as TLS and WebSocket go, and closes it. It does not introduce itself: a
// broker ends the connection of an agent when a second one comes under its name.
func Probe(ctx context.Context, config Config) error {
	conn, err := dial(ctx, config)
	if err != nil {
		return fmt.Errorf("dial %s: %w", config.URL.Redacted(), err)
	}
	return conn.Close()
}

func handshake(ctx context.Context, conn net.Conn, config Config) (net.Conn, error) {
	settings := &tls.Config{}
	if config.TLS != nil {
		settings = config.TLS.Clone()
	}
	if settings.ServerName == "" {
		settings.ServerName = config.URL.Hostname()
	}
	secure := tls.Client(conn, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

func dialWebSocket(ctx context.Context, config Config) (net.Conn, error) {
	dialer := websocket.Dialer{
		NetDialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return open(ctx, config, address)
		},
		Proxy:           config.Proxy,
		TLSClientConfig: config.TLS,
		Subprotocols:    []string{"mqtt"}, // MQTT 5, 6.0
	}
	if config.Proxy == nil && config.Dial == nil {
		dialer.Proxy = http.ProxyFromEnvironment
	}
	ws, _, err := dialer.DialContext(ctx, config.URL.String(), nil) //nolint:bodyclose // the library says that nobody need close it
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(protocol.MaxPacket)
	return newPacketConn(NewStream(ws)), nil
}

// packetConn turns each MQTT packet, which paho writes in five pieces between Lock and Unlock, into one write: one
// segment, one TLS record, one WebSocket frame. The write has a time-out, which paho's has not. Likewise paho reads a
// packet in three pieces or more, which takes one read.
type packetConn struct {
	net.Conn
	reader *bufio.Reader
	mu     sync.Mutex
	packet []byte
}

// readAhead has space for several asks and grants.
const readAhead = 2048

func newPacketConn(conn net.Conn) *packetConn {
	return &packetConn{Conn: conn, reader: bufio.NewReaderSize(conn, readAhead)}
}

// Read implements io.Reader.
func (c *packetConn) Read(b []byte) (int, error) { return c.reader.Read(b) }

// Lock implements sync.Locker for paho's packets.WriteTo, which holds it while it writes a packet.
func (c *packetConn) Lock() { c.mu.Lock() }

// Write collects a piece of a packet.
func (c *packetConn) Write(piece []byte) (int, error) {
	c.packet = append(c.packet, piece...)
	return len(piece), nil
}

// Unlock writes the packet. An error closes the connection, and so reaches paho by way of its reader.
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

// NewStream is a WebSocket as a stream: MQTT packets and frames need not begin together (MQTT 5, 6.0).
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

// Write sets the deadline of each frame itself: a WebSocket forgets those of its connection.
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
