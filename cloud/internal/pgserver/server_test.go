//go:build linux

package pgserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

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

func TestSocketDirectoryOfAnotherUser(t *testing.T) {
	t.Parallel()
	dataDir := filepath.Join(publicDir(t), strings.Repeat("long", 30))
	start(t, dataDir).Stop()
	dir := homeOf(t, dataDir).socketDir()
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
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
	defer func() { <-lost }() //nolint:errcheck // the session is lost with its server
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
