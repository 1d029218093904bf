// Package agent is the program that stands in a branch: it takes its orders from the cloud over MQTT and carries them
// out on the branch's Board.
package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// Config is what an agent must know besides its board.
type Config struct {
	Branch    string // branch code
	BrokerURL string // mqtt://host:1883, mqtts://host:8883, ws://host/mqtt or wss://host/mqtt
	ClientID  string // empty: protocol.AgentID(Branch)
	Username  string // empty: protocol.AgentID(Branch)
	Password  string

	GrantKeys []ed25519.PublicKey // any of them may sign grants

	TLS  *tls.Config                                             // nil: the system's roots
	Dial func(ctx context.Context, u *url.URL) (net.Conn, error) // opens the TCP connection; nil: a plain net.Dialer

	// Event is told what happens at the doors, as it happens and before the line is touched again; telemetry tells the
	// cloud the same later. It must not block. The simulator learns here which request a relay moved for. nil: nobody.
	Event func(protocol.Event)

	Version string
	Logger  *slog.Logger     // nil: slog.Default()
	Now     func() time.Time // the wall clock, for time stamps only: no decision about a door depends on it; nil: time.Now
}
