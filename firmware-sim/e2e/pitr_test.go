package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// archive is a PostgreSQL server that archives its write-ahead log as in the runbook.
type archive struct {
	t        *testing.T
	programs string
	dir      string
	as       *syscall.Credential
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	dir, err := os.MkdirTemp(bin, "pitr-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	programs, err := world.PostgresPrograms()
	if errors.Is(err, world.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	as, err := world.PostgresAccount(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &archive{t: t, programs: programs, dir: dir, as: as}
}

func (a *archive) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(a.programs, name), args...)
	c.Dir, c.SysProcAttr = a.dir, &syscall.SysProcAttr{Credential: a.as}
	return c
}

func (a *archive) run(name string, args ...string) string {
	a.t.Helper()
	out, err := a.command(name, args...).CombinedOutput()
	if err != nil {
		a.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (a *archive) url(port string) string {
	return "postgres://yeolda@127.0.0.1:" + port + "/postgres?sslmode=disable"
}

func (a *archive) query(port, sql string) string {
	a.t.Helper()
	return a.run("psql", a.url(port), "-At", "-v", "ON_ERROR_STOP=1", "-c", sql)
}

// configure appends lines to the postgresql.conf of a data directory.
func (a *archive) configure(data, lines string) {
	a.t.Helper()
	file, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("\n" + lines + "\n"); err != nil {
		a.t.Fatal(err)
	}
}

// serve starts a server and waits until it accepts writes, after a recovery if there is one.
func (a *archive) serve(data, port string) {
	a.t.Helper()
	server := a.command("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
	server.Stdout, server.Stderr = a.t.Output(), a.t.Output()
	if err := server.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		_ = server.Wait()
	})
	until(a.t, "the server takes writes", func() bool {
		out, err := a.command("psql", a.url(port), "-At", "-c", "select pg_is_in_recovery()").Output()
		return err == nil && strings.TrimSpace(string(out)) == "f"
	})
}

// TestPointInTime restores the moment before a mistake with the runbook's commands: a base backup, the archived log,
// and a server that stops replaying it at that moment.
func TestPointInTime(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	data, base, wal := filepath.Join(a.dir, "data"), filepath.Join(a.dir, "base"), filepath.Join(a.dir, "wal")
	ports := freePorts(t, 2)
	a.run("initdb", "-D", data, "-A", "trust", "-U", "yeolda", "-E", "UTF8", "--locale=C", "--no-sync")
	if err := os.Mkdir(wal, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(wal, 0o777); err != nil { // the server runs as another user
		t.Fatal(err)
	}
	a.configure(data, "archive_mode = on\narchive_command = 'test ! -f "+wal+"/%f && cp %p "+wal+"/%f'")
	a.serve(data, ports[0])
	yeolda := world.PrepareStack(world.StackOptions{Root: root(), Bin: bin, Dir: a.dir, Env: map[string]string{"YEOLDA_MODE": "demo", "YEOLDA_DATABASE_URL": a.url(ports[0])}, Log: t.Output()})
	run(t, yeolda.Command, "migrate")
	a.run("pg_basebackup", "-D", base, "-X", "stream", "-c", "fast", "-d", a.url(ports[0]))

	// Data written after the backup is destroyed by a mistake a moment later.
	run(t, yeolda.Command, "branch", "apply", "-f", filepath.Join(root(), "deploy/demo/branches.yaml"))
	const count = "select count(*) from door_pin"
	before := a.query(ports[0], count)
	moment := a.query(ports[0], "select clock_timestamp()")
	a.query(ports[0], "select pg_sleep(0.01); truncate door_pin")
	// Only archived segments can be restored: a busy server fills them, archive_timeout does it on a quiet one, and
	// here the test does it.
	segment := a.query(ports[0], "select pg_walfile_name(pg_current_wal_lsn())")
	a.query(ports[0], "select pg_switch_wal()")
	until(t, "the log is archived", func() bool {
		return a.query(ports[0], "select coalesce(last_archived_wal >= '"+segment+"', false) from pg_stat_archiver") == "t"
	})

	a.configure(base, "archive_mode = off\nrestore_command = 'cp "+wal+"/%f %p'\nrecovery_target_time = '"+moment+"'\nrecovery_target_action = 'promote'")
	if err := os.WriteFile(filepath.Join(base, "recovery.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if a.as != nil {
		if err := os.Chown(filepath.Join(base, "recovery.signal"), int(a.as.Uid), int(a.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	a.serve(base, ports[1])
	if after := a.query(ports[1], count); after != before || after == "0" {
		t.Errorf("%s PINs, want the %s of the moment before the mistake", after, before)
	}
	if lost := a.query(ports[0], count); lost != "0" {
		t.Errorf("the mistake destroyed nothing: %s", lost)
	}
}
