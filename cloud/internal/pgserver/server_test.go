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
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

// ownerEnv turns the test binary into a process that owns (or attaches to) the
// server of the data directory the variable names, until its stdin ends.
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

// testBinary is a copy of the running test binary where every user can execute it.
var testBinary string

// copyBinary makes it before the first fork, which could inherit the file while
// it is open for writing, and then nobody could execute it.
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
	remove = func() { os.RemoveAll(dir) }
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

// startProcess starts one and waits until it has a database. With a uid it runs
// as that user.
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

// kill ends the process without any chance to clean up.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // "signal: killed"
}

// publicDir is a short temporary directory any user can pass through, unlike
// t.TempDir, and in memory where there is enough: making clusters is most of the
// work of these tests.
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

// eventually polls, because the processes watched here tell nobody.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
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

func TestStartStopAndStartAgain(t *testing.T) {
	t.Parallel()
	dataDir := filepath.Join(publicDir(t), "data")
	s := start(t, dataDir)
	exe(t, s.URL(), "CREATE TABLE kept AS SELECT 42 AS n")
	h := homeOf(t, dataDir)
	for setting, want := range map[string]string{
		"listen_addresses": "", "deadlock_timeout": "100ms", "max_connections": "200",
		"fsync": "on", "synchronous_commit": "on", "TimeZone": "UTC", "server_encoding": "UTF8",
	} {
		if got := query[string](t, s.URL(), "SHOW "+setting); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	for _, path := range []string{h.dir, h.cluster(), h.socketDir()} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s is %v, want only its owner to enter", path, info.Mode())
		}
	}
	url := s.URL()
	s.Stop()
	s.Stop()
	if left := processes(t, h); len(left) != 0 {
		t.Fatalf("processes %v after Stop", left)
	}

	s = start(t, dataDir)
	if s.URL() != url {
		t.Errorf("URL changed from %s to %s", url, s.URL())
	}
	if n := query[int](t, s.URL(), "SELECT n FROM kept"); n != 42 {
		t.Errorf("n = %d after a restart", n)
	}
}

func TestTwoDataDirectoriesSideBySide(t *testing.T) {
	t.Parallel()
	a, b := start(t, publicDir(t)), start(t, publicDir(t))
	exe(t, a.URL(), "CREATE TABLE only_here ()")
	if n := query[int](t, b.URL(), "SELECT count(*) FROM pg_class WHERE relname = 'only_here'"); n != 0 {
		t.Error("both use one database")
	}
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	for _, name := range []string{strings.Repeat("long", 30), "a,b", "방 예약 'q\" %41?&"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dataDir := filepath.Join(publicDir(t), name)
			s := start(t, dataDir)
			if n := query[int](t, s.URL(), "SELECT 1"); n != 1 {
				t.Errorf("SELECT 1 = %d", n)
			}
			s.Stop()
			if h := homeOf(t, dataDir); h.socketDir() != h.dir {
				if err := os.RemoveAll(h.socketDir()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestSocketDirectoryOfSomebodyElse(t *testing.T) {
	t.Parallel()
	dataDir := filepath.Join(publicDir(t), strings.Repeat("long", 30))
	start(t, dataDir).Stop()
	dir := homeOf(t, dataDir).socketDir()
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{DataDir: dataDir, Logger: testLogger(t)})
	if err == nil || !strings.Contains(err.Error(), "open to others") {
		t.Errorf("err = %v, want a refusal of the open directory", err)
	}
}

func TestOwnerKilled(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	owner := startProcess(t, dataDir, 0)
	exe(t, owner.url, "CREATE TABLE kept AS SELECT 42 AS n")
	h := homeOf(t, dataDir)

	// At once, while the orphan may still be shutting down.
	owner.kill(t)
	s := start(t, dataDir)
	if n := query[int](t, s.URL(), "SELECT n FROM kept"); n != 42 {
		t.Errorf("n = %d", n)
	}
	s.Stop()

	owner = startProcess(t, dataDir, 0)
	owner.kill(t)
	eventually(t, "no orphan is left", func() bool { return len(processes(t, h)) == 0 })
}

func TestEverythingKilled(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	owner := startProcess(t, dataDir, 0)
	exe(t, owner.url, "CREATE TABLE kept AS SELECT 42 AS n")
	h := homeOf(t, dataDir)

	// A session inside a long query does not notice that its server is gone.
	busy, err := pgx.Connect(t.Context(), owner.url)
	if err != nil {
		t.Fatal(err)
	}
	busyPID := int(busy.PgConn().PID())
	lost := make(chan error)
	go func() {
		_, err := busy.Exec(context.Background(), "DO $$ BEGIN LOOP END LOOP; END $$")
		lost <- err
	}()
	defer func() { <-lost }()
	eventually(t, "the session is busy", func() bool {
		return query[int](t, owner.url, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO%'") == 1
	})

	if err := owner.Process.Signal(syscall.SIGSTOP); err != nil { // so that it cannot start another
		t.Fatal(err)
	}
	postmaster, _ := h.postmaster()
	if err := syscall.Kill(postmaster, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	owner.kill(t)
	if !slices.Contains(processes(t, h), busyPID) {
		t.Fatal("the busy session should have survived")
	}

	s := start(t, dataDir)
	if n := query[int](t, s.URL(), "SELECT n FROM kept"); n != 42 {
		t.Errorf("n = %d after recovery", n)
	}
	if slices.Contains(processes(t, h), busyPID) {
		t.Errorf("session %d of the old server still runs", busyPID)
	}
}

func TestProcessIDOfDeadServerInUse(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	s := start(t, dataDir)
	h := homeOf(t, dataDir)
	content, err := os.ReadFile(filepath.Join(h.cluster(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()

	// An unrelated process of the same user, which has the old server's id.
	other := exec.Command("sleep", "100")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: h.as.credential()}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})
	_, rest, _ := strings.Cut(string(content), "\n")
	stale := strconv.Itoa(other.Process.Pid) + "\n" + rest
	if err := os.WriteFile(filepath.Join(h.cluster(), "postmaster.pid"), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dataDir)
	if err := syscall.Kill(other.Process.Pid, 0); err != nil {
		t.Errorf("the unrelated process was harmed: %v", err)
	}
}

func TestPostgresKilled(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	s := start(t, dataDir)
	pool, err := pgxpool.New(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "CREATE TABLE kept AS SELECT 42 AS n"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		killed, _ := homeOf(t, dataDir).postmaster()
		if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		eventually(t, "the same pool works again", func() bool {
			var n int
			pid, _ := homeOf(t, dataDir).postmaster()
			return pid != killed && pool.QueryRow(t.Context(), "SELECT n FROM kept").Scan(&n) == nil && n == 42
		})
		t.Logf("outage %v", time.Since(began).Round(time.Millisecond))
	}
}

func TestAttachAndInherit(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	owner := startProcess(t, dataDir, 0)
	h := homeOf(t, dataDir)
	first, _ := h.postmaster()

	s := start(t, dataDir)
	if s.URL() != owner.url {
		t.Errorf("attached to %s, want %s", s.URL(), owner.url)
	}
	s.Stop()
	if pid, _ := h.postmaster(); pid != first || query[int](t, owner.url, "SELECT 1") != 1 {
		t.Error("the end of an attached process stopped the server")
	}

	for _, end := range []struct {
		name string
		do   func()
	}{
		{"stopped", func() { owner.stdin.Close() }},
		{"killed", func() { owner.kill(t) }},
	} {
		s = start(t, dataDir)
		before, _ := h.postmaster()
		end.do()
		began := time.Now()
		eventually(t, "a new server after the owner was "+end.name, func() bool {
			pid, ready := h.postmaster()
			return ready && pid != before
		})
		t.Logf("owner %s: outage %v", end.name, time.Since(began).Round(time.Millisecond))
		if n := query[int](t, s.URL(), "SELECT 1"); n != 1 {
			t.Errorf("SELECT 1 = %d", n)
		}
		s.Stop()
		owner = startProcess(t, dataDir, 0)
	}
}

func TestConcurrentFirstStart(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	type result struct {
		p   *process
		err error
	}
	results := make(chan result)
	const n = 4
	for range n {
		go func() {
			p, err := tryProcess(t, dataDir, 0)
			results <- result{p, err}
		}()
	}
	systems := map[string]bool{}
	for range n {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
			continue
		}
		systems[query[string](t, r.p.url, "SELECT system_identifier || ' ' || pg_postmaster_start_time() FROM pg_control_system()")] = true
	}
	if len(systems) != 1 {
		t.Errorf("%d servers instead of one: %v", len(systems), systems)
	}
}

func TestKilledDuringFirstStart(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			dataDir := publicDir(t)
			cmd := exec.Command(testBinary)
			cmd.Env = append(os.Environ(), ownerEnv+"="+dataDir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after) // any point of initdb will do
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			s := start(t, dataDir)
			if n := query[int](t, s.URL(), "SELECT 1"); n != 1 {
				t.Errorf("SELECT 1 = %d", n)
			}
		})
	}
}

func TestStartCancelled(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, Options{DataDir: dataDir, Logger: testLogger(t)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the deadline", err)
	}
	start(t, dataDir)
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can change users")
	}
}

func TestRootWithUnreachableDataDirectory(t *testing.T) {
	t.Parallel()
	needRoot(t)
	private := publicDir(t)
	if err := os.Chmod(private, 0o700); err != nil { // like a checkout below /root
		t.Fatal(err)
	}
	dataDir := filepath.Join(private, "data")
	s := start(t, dataDir)
	h := homeOf(t, dataDir)
	t.Cleanup(func() { os.RemoveAll(h.dir) })
	if h.as.uid == 0 || strings.HasPrefix(h.dir, private) {
		t.Fatalf("home %+v", h)
	}
	exe(t, s.URL(), "CREATE TABLE kept AS SELECT 42 AS n")
	s.Stop()

	// A moved data directory finds its data; a new one at the old place is empty.
	moved := filepath.Join(private, "moved")
	if err := os.Rename(dataDir, moved); err != nil {
		t.Fatal(err)
	}
	s = start(t, moved)
	if n := query[int](t, s.URL(), "SELECT n FROM kept"); n != 42 {
		t.Errorf("n = %d", n)
	}
	s.Stop()

	if err := os.Rename(h.dir, h.dir+"-away"); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{DataDir: moved, Logger: testLogger(t)})
	if restoreErr := os.Rename(h.dir+"-away", h.dir); restoreErr != nil {
		t.Fatal(restoreErr)
	}
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("err = %v, want a refusal to begin an empty database", err)
	}
}

func TestRootWithPreparedDirectory(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dataDir := publicDir(t)
	if err := os.Mkdir(filepath.Join(dataDir, "postgres"), 0o700); err != nil { // a volume
		t.Fatal(err)
	}
	start(t, dataDir)
	if h := homeOf(t, dataDir); h.dir != filepath.Join(dataDir, "postgres") || h.as.uid == 0 {
		t.Errorf("home %+v", h)
	}
}

func TestOtherUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	dataDir := publicDir(t)
	if err := os.Chown(dataDir, uid, uid); err != nil {
		t.Fatal(err)
	}
	owner := startProcess(t, dataDir, uint32(uid))
	h := homeOf(t, dataDir)
	if h.as.uid != uint32(uid) {
		t.Errorf("the server's files belong to %d, want %d", h.as.uid, uid)
	}
	// Root attaches, and takes over as the same user.
	s := start(t, dataDir)
	before, _ := h.postmaster()
	owner.kill(t)
	eventually(t, "root runs the server", func() bool {
		pid, ready := h.postmaster()
		return ready && pid != before
	})
	if n := query[int](t, s.URL(), "SELECT 1"); n != 1 {
		t.Errorf("SELECT 1 = %d", n)
	}
	s.Stop()
	startProcess(t, dataDir, uint32(uid))
}

// A Ctrl-C, which the terminal sends to its whole process group, must leave
// stopping the server to its owner.
func TestInterruptOfProcessGroup(t *testing.T) {
	t.Parallel()
	s := start(t, publicDir(t))
	pid, _ := s.home.postmaster()
	group, err := syscall.Getpgid(pid)
	if err != nil {
		t.Fatal(err)
	}
	if group == syscall.Getpgrp() {
		t.Error("the server is in the process group of the terminal")
	}
}
