//go:build hw

package hwtest

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/internal/systemd"
)

const (
	setTimeout = 0xC0045706 // WDIOC_SETTIMEOUT
	timeout    = 5          // seconds; the agent notifies every two
)

// TestWatchdog feeds the kernel's watchdog with the agent's notifications to its service manager: it does not trigger
// while the agent runs, and triggers when the agent hangs.
func TestWatchdog(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	p := start(t, b)
	triggered := kernelSays(t, "softdog: Triggered")

	fd, err := unix.Open("/dev/watchdog0", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = unix.Write(fd, []byte("V")) // magic close: stops the watchdog
		unix.Close(fd)
	})
	if err := unix.IoctlSetPointerInt(fd, setTimeout, timeout); err != nil {
		t.Fatal(err)
	}
	go func() {
		for message := make([]byte, 64); ; {
			n, err := p.manager.Read(message)
			if err != nil {
				return
			}
			if string(message[:n]) == systemd.Watchdog {
				_, _ = unix.Write(fd, []byte{1})
			}
		}
	}()
	time.Sleep((timeout + 2) * time.Second)
	if triggered() {
		t.Fatal("the watchdog triggered while the agent was running")
	}
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, "the watchdog", 2*timeout*time.Second, triggered)
}

// kernelSays reads the kernel's log from now on.
func kernelSays(t *testing.T, what string) func() bool {
	t.Helper()
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.Seek(fd, 0, os.SEEK_END); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		line := make([]byte, 8192)
		for {
			n, err := unix.Read(fd, line)
			if err != nil || n <= 0 {
				return false
			}
			if strings.Contains(string(line[:n]), what) {
				return true
			}
		}
	}
}
