package agent

import (
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/door"
	"github.com/yeolda/yeolda/agent/internal/pass"
	"github.com/yeolda/yeolda/protocol"
)

// slowDisk is a disk on which an entry takes until it is released.
type slowDisk struct{ entered, release chan struct{} }

func (slowDisk) Read(string) ([]byte, error)  { return nil, fs.ErrNotExist }
func (slowDisk) Replace(string, []byte) error { return nil }
func (d slowDisk) Append(string, []byte) error {
	close(d.entered)
	<-d.release
	return nil
}

type noClock struct{}

func (noClock) Uptime() (string, time.Duration) { return "boot", 0 }
func (noClock) HardwareClock() (int64, bool)    { return 0, false }

// TestEntryKeepsAgentRunning: an agent that ends or restarts while a PIN is judged would use up a one-time code and open nothing.
func TestEntryKeepsAgentRunning(t *testing.T) {
	t.Parallel()
	disk, log := slowDisk{make(chan struct{}), make(chan struct{})}, slog.New(slog.DiscardHandler)
	a := &agent{doors: door.NewController(door.Config{Logger: log}, nil)}
	if !a.idle() {
		t.Error("without a keypad: got busy, want idle")
	}
	a.passes = &passes{controller: pass.NewController(pass.Config{
		Branch: "gangnam", Devices: []string{"room_1"}, Disk: disk, Clock: pass.NewClock(noClock{}, disk, log),
		Verify: func(protocol.PassList) error { return nil }, Now: time.Now, Logger: log,
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.passes.controller.Attempt("room_1", "1234", time.Now())
	}()
	<-disk.entered
	if a.idle() {
		t.Error("during an entry: got idle, want busy")
	}
	close(disk.release)
	<-ended
	if !a.idle() {
		t.Error("after it: got busy, want idle")
	}
}
