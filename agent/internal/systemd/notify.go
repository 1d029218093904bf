// Package systemd reports the agent's state to the service manager (sd_notify(3)). Without a service manager it does nothing.
package systemd

import (
	"fmt"
	"net"
	"os"
	"time"
)

// States for Notify.
const (
	Ready    = "READY=1"
	Watchdog = "WATCHDOG=1"
	Stopping = "STOPPING=1"
)

const writeTimeout = 500 * time.Millisecond

// Notify sends a state to the socket in NOTIFY_SOCKET.
func Notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"}) // "@" marks an abstract name
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer func() { _ = conn.Close() }() // the datagram is sent by Write
	// A manager that does not read must not block the agent.
	if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
