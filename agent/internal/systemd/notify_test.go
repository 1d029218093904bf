package systemd

import (
	"net"
	"path/filepath"
	"testing"
)

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify(Ready); err != nil {
		t.Errorf("without a manager: %v", err)
	}
	name := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Close() }()
	t.Setenv("NOTIFY_SOCKET", name)
	if err := Notify(Watchdog); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, err := manager.Read(b)
	if err != nil || string(b[:n]) != "WATCHDOG=1" {
		t.Errorf("got %q, %v", b[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", name+"-gone")
	if err := Notify(Ready); err == nil {
		t.Error("got no error without a listener")
	}
}

// TestManagerThatDoesNotRead fills the queue of the manager's socket. Notify must return an error instead of blocking.
func TestManagerThatDoesNotRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Close() }()
	t.Setenv("NOTIFY_SOCKET", name)
	for range 10_000 {
		if err := Notify(Watchdog); err != nil {
			return
		}
	}
	t.Error("got no error though the queue must be full")
}
