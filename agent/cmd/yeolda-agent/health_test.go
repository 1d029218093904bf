package main

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/agent"
)

// TestHealthIsWrittenAfterAFailure: the disk was full when the agent connected, as while dpkg unpacks an update. The trial of the update must
// not read for an hour that the agent is not connected.
func TestHealthIsWrittenAfterAFailure(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	h := health{file: filepath.Join(dir, "health")}
	if err := h.write(agent.Health{Connected: true}); err == nil {
		t.Fatal("written without its folder")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.write(agent.Health{Connected: true}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(h.file); err != nil || string(text) != "connected=yes\nfailed=0\n" {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestStalledCardHoldsUpNoReport writes the health to a card that stalls: the loop that feeds the watchdog must not wait for it. Reports are
// written again when the card works.
func TestStalledCardHoldsUpNoReport(t *testing.T) {
	t.Parallel()
	h := health{file: filepath.Join(t.TempDir(), "health")}
	if err := syscall.Mkfifo(h.file+".new", 0o600); err != nil { // its writer waits for a reader
		t.Fatal(err)
	}
	report, stop := reporter(func(state agent.Health) { _ = h.write(state) })
	defer stop()
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		for range 1000 {
			report(agent.Health{})
			runtime.Gosched()
		}
	}()
	select {
	case <-reported:
	case <-time.After(10 * time.Second):
		t.Fatal("the card holds up the watchdog")
	}
	fifo, err := os.OpenFile(h.file+".new", os.O_RDWR, 0) // the card works again
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	for n := 0; ; n++ { // the first report that is written goes to the FIFO
		report(agent.Health{Connected: n%2 == 0})
		if info, err := os.Lstat(h.file); err == nil && info.Mode().IsRegular() {
			return
		}
		runtime.Gosched()
	}
}

// TestLastReportIsWritten ends while a report is written: the write ends first, because the next start reads the file. A card that
// stalls keeps the agent from ending for a moment only.
func TestLastReportIsWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		takes   time.Duration
		written bool
	}{{lastWriteDelay / 2, true}, {time.Hour, false}} {
		synctest.Test(t, func(t *testing.T) {
			var written atomic.Bool
			writing := make(chan struct{})
			report, stop := reporter(func(agent.Health) { close(writing); time.Sleep(c.takes); written.Store(true) })
			synctest.Wait()
			report(agent.Health{})
			<-writing
			stop()
			if got := written.Load(); got != c.written {
				t.Errorf("a report that takes %v: got written %t", c.takes, got)
			}
			time.Sleep(c.takes) // until the write ends
		})
	}
}
