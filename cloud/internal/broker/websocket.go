package broker

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/protocol"
)

var upgrader = websocket.Upgrader{
	Subprotocols:     []string{"mqtt"}, // [MQTT-6.0.0-4]
	HandshakeTimeout: connectTimeout,
}

// ServeWebSocket speaks MQTT over the WebSocket of a request (MQTT 5.0, section 6) until either side ends it. Browsers
// of other origins are refused. client is the address of the client as of [limit.Address], which a proxy may have forwarded.
func (b *Broker) ServeWebSocket(w http.ResponseWriter, r *http.Request, client string) {
	if !slices.Contains(websocket.Subprotocols(r), "mqtt") {
		http.Error(w, "subprotocol mqtt required", http.StatusBadRequest) // [MQTT-6.0.0-3]
		return
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	c, err := b.admission.enter(&wsConn{Conn: ws.NetConn(), ws: ws}, client)
	if err != nil {
		_ = ws.Close()
		return
	}
	ws.SetReadLimit(protocol.MaxPacket)
	// The hook logs the end of the connection where it matters.
	_ = b.server.EstablishConnection(listenerWebSocket, c)
}

var errNotBinary = errors.New("broker: websocket message is not binary") // [MQTT-6.0.0-1]

// wsConn reads and writes a WebSocket as a stream: packets may span several messages [MQTT-6.0.0-2].
type wsConn struct {
	net.Conn
	ws      *websocket.Conn
	message io.Reader
}

func (c *wsConn) Read(p []byte) (int, error) {
	for {
		if c.message == nil {
			kind, message, err := c.ws.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errNotBinary
			}
			c.message = message
		}
		n, err := c.message.Read(p)
		if err == io.EOF {
			c.message, err = nil, nil
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// Write is called for one write at a time only.
func (c *wsConn) Write(p []byte) (int, error) {
	if err := c.ws.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}
