package world

import (
	"bytes"
	"net"
	"sync"

	"github.com/eclipse/paho.golang/packets"
)

// eavesdropper keeps the credential of the last MQTT client that has connected through a link. Without TLS, as here, any machine on the
// network between two replicas can do so.
type eavesdropper struct {
	mu                 sync.Mutex
	username, password string
}

// tap returns a connection to a broker that the eavesdropper listens to.
func (e *eavesdropper) tap(broker net.Conn) net.Conn {
	return &tapped{Conn: broker, by: e}
}

func (e *eavesdropper) credential() (username, password string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.username, e.password
}

// connectSize is more than the CONNECT packet of a replica has.
const connectSize = 4096

// hear reads the first packet that a client sends. It reports whether that has arrived completely.
func (e *eavesdropper) hear(sent []byte) bool {
	packet, err := packets.ReadPacket(bytes.NewReader(sent))
	if err != nil {
		return len(sent) > connectSize
	}
	if connect, ok := packet.Content.(*packets.Connect); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.username, e.password = connect.Username, string(connect.Password)
	}
	return true
}

// tapped has only the methods of net.Conn: those with which a TCP connection copies would pass Write by.
type tapped struct {
	net.Conn
	by    *eavesdropper
	sent  []byte
	heard bool
}

// Write implements io.Writer.
func (t *tapped) Write(sent []byte) (int, error) {
	if !t.heard {
		t.sent = append(t.sent, sent...)
		t.heard = t.by.hear(t.sent)
	}
	return t.Conn.Write(sent)
}
