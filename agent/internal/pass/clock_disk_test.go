package pass

import (
	"bytes"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// fullDisk is a Disk that stores nothing while full is set.
type fullDisk struct {
	memory
	full bool
}

func (d *fullDisk) Replace(name string, data []byte) error {
	if d.full {
		return syscall.ENOSPC
	}
	return d.memory.Replace(name, data)
}

// Append implements Disk.
func (d *fullDisk) Append(name string, data []byte) error {
	if d.full {
		return syscall.ENOSPC
	}
	return d.memory.Append(name, data)
}

// TestClockOnAFullDisk checks the clock every two seconds for a day without a disk: the log is not flooded, and the clock is stored
// once there is room.
func TestClockOnAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		disk := &fullDisk{memory{}, true}
		clock := NewClock(pi{time.Now()}, disk, slog.New(slog.NewTextHandler(&log, nil)))
		if err := clock.Beacon(protocol.Beacon{Nonce: clock.Heartbeat(), Time: time.Now()}); err != nil {
			t.Fatal(err)
		}
		for range 24 * 60 * 30 {
			clock.Check()
			time.Sleep(2 * time.Second)
		}
		if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > 40 {
			t.Errorf("%d lines in the log of a day, want one an hour at most; the first are\n%.500s", lines, log.String())
		}
		disk.full = false
		clock.Check()
		if _, err := disk.Read(clockFile); err != nil {
			t.Errorf("with room again: %v", err)
		}
		if !strings.Contains(log.String(), "storing the clock works again") {
			t.Error("the log does not say that it works again")
		}
	})
}
