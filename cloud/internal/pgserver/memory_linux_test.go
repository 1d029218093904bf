package pgserver

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestMemoryOfAnEarlierServer starts a server while the memory of one that was killed is still attached, as it is for some
// milliseconds after the processes have disappeared.
func TestMemoryOfAnEarlierServer(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	owner := startProcess(t, dataDir, 0)
	h := homeOf(t, dataDir)
	detach := attachMemory(t, h)
	if err := owner.Process.Signal(syscall.SIGSTOP); err != nil { // so that it cannot start another
		t.Fatal(err)
	}
	postmaster, _ := h.postmaster()
	if err := syscall.Kill(postmaster, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	owner.kill(t)

	refusal := &refusalLog{out: t.Output(), refused: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		s, err := Start(t.Context(), Options{DataDir: dataDir, Logger: slog.New(slog.NewTextHandler(refusal, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		if err == nil {
			s.Stop()
		}
		started <- err
	}()
	select {
	case <-refusal.refused:
	case err := <-started:
		t.Fatalf("started beside the memory of the earlier server: %v", err)
	}
	detach()
	if err := <-started; err != nil {
		t.Error(err)
	}
}

// attachMemory attaches the shared memory of a running server; detach detaches it.
func attachMemory(t *testing.T, h home) (detach func()) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(h.cluster(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n") // the seventh has the key and the id of the memory
	id, err := strconv.Atoi(strings.Fields(lines[6])[1])
	if err != nil {
		t.Fatal(err)
	}
	at, _, failed := syscall.Syscall(syscall.SYS_SHMAT, uintptr(id), 0, 0)
	if failed != 0 {
		t.Fatal(failed)
	}
	return func() {
		if _, _, failed := syscall.Syscall(syscall.SYS_SHMDT, at, 0, 0); failed != 0 {
			t.Error(failed)
		}
	}
}

// refusalLog closes refused when postgres first complains about memory in use.
type refusalLog struct {
	out     io.Writer
	once    sync.Once
	refused chan struct{}
}

func (l *refusalLog) Write(line []byte) (int, error) {
	if strings.Contains(string(line), memoryInUse) {
		l.once.Do(func() { close(l.refused) })
	}
	return l.out.Write(line)
}
