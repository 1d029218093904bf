//go:build linux

package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// ownerEnv turns the test binary into a process that owns (or attaches to) the server of the data directory named by
// the variable, until its stdin ends.
const ownerEnv = "PGSERVER_TEST_DATA_DIR"

func TestMain(m *testing.M) {
	if dataDir := os.Getenv(ownerEnv); dataDir != "" {
		if err := ownServer(dataDir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	removeBinary, err := copyBinary()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeBinary()
		os.Exit(code)
	}))
}

// testBinary is a copy of the running test binary in a place where every user can execute it.
var testBinary string

// copyBinary creates it before the first fork: a forked process could inherit the file while it is open for writing,
// and then it cannot be executed.
func copyBinary() (remove func(), err error) {
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgs")
	if err != nil {
		return nil, err
	}
	testBinary = filepath.Join(dir, "pgserver.test")
	remove = func() { _ = os.RemoveAll(dir) }
	return remove, errors.Join(os.Chmod(dir, 0o755), os.WriteFile(testBinary, content, 0o755))
}

func ownServer(dataDir string) error {
	s, err := Start(context.Background(), Options{DataDir: dataDir, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Println(s.URL())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// process is another process of the service on the same data directory.
type process struct {
	*exec.Cmd
	stdin io.Closer
	url   string
}

// startProcess starts one and waits until it has a database. With a uid it runs as that user.
func startProcess(t *testing.T, dataDir string, uid uint32) *process {
	t.Helper()
	p, err := tryProcess(t, dataDir, uid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tryProcess(t *testing.T, dataDir string, uid uint32) (*process, error) {
	p := &process{Cmd: exec.Command(testBinary)}
	p.Env = append(os.Environ(), ownerEnv+"="+dataDir)
	p.Stderr = t.Output()
	if uid != 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	var err error
	if p.stdin, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		p.stdin.Close()
		_ = p.Wait() // may have been waited for, or killed
	})
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if !strings.HasPrefix(line, "postgres://") {
		return nil, fmt.Errorf("process: %s", line)
	}
	p.url = strings.TrimSpace(line)
	return p, nil
}

// kill ends the process without any clean-up.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // "signal: killed"
}

// publicDir is a short temporary directory that any user can enter, unlike t.TempDir, and in memory if there is
// enough: creating clusters is most of the work of these tests.
func publicDir(t *testing.T) string {
	t.Helper()
	base, memory := "", syscall.Statfs_t{}
	if err := syscall.Statfs("/dev/shm", &memory); err == nil && memory.Bavail*uint64(memory.Bsize) > 2<<30 {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "pgs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dataDir string) *Server {
	t.Helper()
	began := time.Now()
	s, err := Start(t.Context(), Options{DataDir: dataDir, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	t.Cleanup(s.Stop)
	return s
}

func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var v T
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func exe(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// eventually polls, because the watched processes send no notification.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within the time limit: %s", what)
		}
	}
}

func homeOf(t *testing.T, dataDir string) home {
	t.Helper()
	h, err := findHome(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func processes(t *testing.T, h home) []int {
	t.Helper()
	pids, err := processesNamed(h.name())
	if err != nil {
		t.Fatal(err)
	}
	return pids
}
