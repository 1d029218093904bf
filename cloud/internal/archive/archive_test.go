package archive_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/archive"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// publicDir returns a directory that PostgreSQL's user can reach.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "archive-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(pgserver.Discard(dir), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// machine is a service's database with its archive.
type machine struct {
	*testing.T
	key, place string
	archive    *archive.Archive
	server     *pgserver.Server
	db         *postgres.DB
	keeper     *archive.Keeper
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{T: t, place: t.TempDir()}
	var err error
	if m.key, err = archive.NewKey(); err != nil {
		t.Fatal(err)
	}
	if m.archive, err = archive.Open(m.place, m.key, "", ""); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	dir := publicDir(t)
	if m.server, err = pgserver.Start(t.Context(), pgserver.Options{DataDir: dir, Logger: log, Archive: pgserver.ArchivingOn}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.server.Stop)
	if m.db, err = postgres.OpenMigrated(t.Context(), m.server.URL(), m.server.ServiceURL(), log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.db.Close)
	m.keeper = &archive.Keeper{Archive: m.archive, Server: m.server, DB: m.db, DataDir: dir, Keep: 24 * time.Hour, Log: log}
	m.write()
	return m
}

// run starts the keeper and returns a function that ends it.
func (m *machine) run() func() {
	ctx, cancel := context.WithCancel(m.Context())
	done := make(chan error, 1)
	go func() { done <- m.keeper.Run(ctx) }()
	stop := func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			m.Errorf("the keeper ended: %v", err)
		}
	}
	return stop
}

// write does what the service's canary does.
func (m *machine) write() {
	m.Helper()
	if err := postgres.NoteSuccess(m.Context(), m.db.Pool, postgres.WorkWrite, time.Now()); err != nil {
		m.Fatal(err)
	}
}

// flush waits until everything written so far is archived.
func (m *machine) flush() {
	m.Helper()
	owner, err := postgres.Open(m.Context(), m.server.URL(), slog.New(slog.DiscardHandler))
	if err != nil {
		m.Fatal(err)
	}
	defer owner.Close()
	var segment string
	if err := owner.Pool.QueryRow(m.Context(), `select pg_walfile_name(pg_switch_wal())`).Scan(&segment); err != nil {
		m.Fatal(err)
	}
	m.await("segment "+segment, func() bool { return len(m.files("*/wal/"+segment+"*")) == 1 })
}

func (m *machine) await(what string, ok func() bool) {
	m.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.Fatalf("%s does not come", what)
		}
	}
}

func (m *machine) files(pattern string) []string {
	m.Helper()
	found, err := filepath.Glob(filepath.Join(m.place, pattern))
	if err != nil {
		m.Fatal(err)
	}
	return found
}

func (m *machine) addBranch(code string) {
	m.Helper()
	if _, err := m.db.Pool.Exec(m.Context(), `insert into branch (code) values ($1)`, code); err != nil {
		m.Fatal(err)
	}
}

// restored returns the branches of a database that is restored on another machine.
func (m *machine) restored(until time.Time) string {
	m.Helper()
	base, err := m.archive.Choose(m.Context(), "", until)
	if err != nil {
		m.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(m.Output(), nil))
	server, err := m.archive.Restore(m.Context(), pgserver.Options{DataDir: publicDir(m.T), Logger: log}, base, until)
	if err != nil {
		m.Fatal(err)
	}
	defer server.Stop()
	db, err := postgres.Open(m.Context(), server.ServiceURL(), log)
	if err != nil {
		m.Fatal(err)
	}
	defer db.Close()
	var branches string
	if err := db.Pool.QueryRow(m.Context(), `select coalesce(string_agg(code, ' ' order by code), '') from branch`).Scan(&branches); err != nil {
		m.Fatal(err)
	}
	return branches
}

// TestLostMachine archives a running database, loses it, and restores its last moment and an earlier one elsewhere.
func TestLostMachine(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.addBranch("before-base")
	stop := m.run()
	m.await("the test of a restoration", func() bool {
		last, err := postgres.LastSuccesses(t.Context(), m.db.Pool)
		if err != nil {
			t.Fatal(err)
		}
		m.write()
		return !last[postgres.WorkRestoreTest].IsZero()
	})
	m.await("a moment after the base, whose end is rounded up to a second", func() bool {
		bases, err := m.archive.Bases(t.Context())
		return err == nil && len(bases) == 1 && time.Now().After(bases[0].End)
	})
	m.addBranch("after-base")
	var moment time.Time
	if err := m.db.Pool.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&moment); err != nil {
		t.Fatal(err)
	}
	m.addBranch("later")
	m.flush()
	stop()
	m.addBranch("newest") // in a segment that is not full when the server stops
	m.db.Close()
	m.server.Stop()
	m.keeper.Finish(t.Context())

	if got := m.restored(time.Time{}); got != "after-base before-base later newest" {
		t.Errorf("the last moment: got branches %q, want all four", got)
	}
	if got := m.restored(moment); got != "after-base before-base" {
		t.Errorf("%s: got branches %q, want those of that moment", moment, got)
	}
	bases, err := m.archive.Bases(t.Context())
	if err != nil || len(bases) != 1 {
		t.Fatalf("base backups: got %+v, %v, want one", bases, err)
	}
	if _, err := m.archive.Choose(t.Context(), "", bases[0].Begin.Add(-time.Minute)); !errors.Is(err, archive.ErrNoBase) {
		t.Errorf("a moment before the first base backup: got %v, want ErrNoBase", err)
	}
	for _, file := range append(m.files("*/base/*.age"), m.files("*/wal/*")...) {
		content, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(content), "age-encryption.org/") {
			t.Errorf("%s is not encrypted: %v", file, err)
		}
	}
}

// TestLostMachineComesBack: a machine is restored from the archive and continues the database, and then the one that was lost comes back with
// the same settings. It stores nothing more, so the last moment of the other one can be restored.
func TestLostMachineComesBack(t *testing.T) {
	t.Parallel()
	lost := newMachine(t)
	lost.addBranch("of-both")
	stop := lost.run()
	defer stop()
	lost.await("a base backup", func() bool { return len(lost.files("*/base/*.complete")) == 1 })
	lost.write()
	lost.flush()

	base, err := lost.archive.Choose(t.Context(), "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	next := &machine{T: t, key: lost.key, place: lost.place, archive: lost.archive}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	dir := publicDir(t)
	if next.server, err = lost.archive.Restore(t.Context(), pgserver.Options{DataDir: dir, Logger: log, Archive: pgserver.ArchivingOn}, base, time.Time{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.server.Stop)
	if next.db, err = postgres.OpenMigrated(t.Context(), next.server.URL(), next.server.ServiceURL(), log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.db.Close)
	next.keeper = &archive.Keeper{Archive: next.archive, Server: next.server, DB: next.db, DataDir: dir, Keep: 24 * time.Hour, Log: log}
	stopNext := next.run()
	defer stopNext()
	next.await("a base backup of the next machine", func() bool { return len(next.files("*/base/*.complete")) == 2 })
	next.addBranch("of-next")
	next.write()
	next.flush()

	lost.addBranch("of-lost")
	if err := lost.keeper.Base(t.Context()); !errors.Is(err, archive.ErrContinued) {
		t.Errorf("a base backup of the lost machine: got %v, want ErrContinued", err)
	}
	if _, err := next.keeper.Test(t.Context()); err != nil {
		t.Errorf("the test of a restoration: %v", err)
	}
	if got := next.restored(time.Time{}); got != "of-both of-next" {
		t.Errorf("got branches %q, want those of the next machine", got)
	}
}

// TestKilledRestorationIsRepeated: a restoration that was killed while it fetched the archive has left its directories. One that was killed
// later has left a cluster, whose reservations are older than the provider's books: the service must not start with it.
func TestKilledRestorationIsRepeated(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	stop := m.run()
	m.await("a base backup", func() bool { return len(m.files("*/base/*.complete")) == 1 })
	stop()
	base, err := m.archive.Choose(t.Context(), "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	opts := pgserver.Options{DataDir: publicDir(t), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	left := []string{filepath.Join(opts.DataDir, "postgres", "recovery"), filepath.Join(opts.DataDir, "postgres", "unfinished-1")}
	for _, dir := range left {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server, err := m.archive.Restore(t.Context(), opts, base, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	server.Stop() // as if it was killed again, while the server replayed the archive
	if _, err := pgserver.Start(t.Context(), opts); !errors.Is(err, pgserver.ErrRestoring) {
		t.Errorf("a start after an interrupted restoration: got %v, want ErrRestoring", err)
	}
	if server, err = m.archive.Restore(t.Context(), opts, base, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := server.EndRestoration(); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	for _, dir := range left {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s remains: %v", dir, err)
		}
	}
	if _, err := m.archive.Restore(t.Context(), opts, base, time.Time{}); !errors.Is(err, pgserver.ErrNotEmpty) {
		t.Errorf("a restoration over a database: got %v, want ErrNotEmpty", err)
	}
	if server, err = pgserver.Start(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	server.Stop()
}

// An archive at another place begins with a base backup, although the last one is not a day old.
func TestArchiveMovesToAnotherPlace(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	stop := m.run()
	m.await("a base backup", func() bool { return len(m.files("*/base/*.complete")) == 1 })
	stop()
	m.place = t.TempDir()
	var err error
	if m.archive, err = archive.Open(m.place, m.key, "", ""); err != nil {
		t.Fatal(err)
	}
	m.keeper.Archive = m.archive
	stop = m.run()
	m.await("a base backup at the other place", func() bool { return len(m.files("*/base/*.complete")) == 1 })
	stop()
}

// TestRestoreTestFindsABrokenArchive changes an archive in each way that a disk or an operator may.
func TestRestoreTestFindsABrokenArchive(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	stop := m.run()
	m.await("a base backup", func() bool { return len(m.files("*/base/*.complete")) == 1 })
	for range 3 {
		m.write()
		m.flush()
	}
	defer stop()
	if _, err := m.keeper.Test(t.Context()); err != nil {
		t.Fatalf("the whole archive: %v", err)
	}
	base, segments := m.files("*/base/*.age")[0], m.files("*/wal/????????????????????????.gz.age")
	if len(segments) < 3 {
		t.Fatalf("segments %v", segments)
	}
	last := segments[len(segments)-1]
	for name, c := range map[string]struct {
		file   string
		change func([]byte) []byte
	}{
		"a changed byte of the base":       {base, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }},
		"half a base":                      {base, func(b []byte) []byte { return b[:len(b)/2] }},
		"no base":                          {base, nil},
		"a changed byte of a segment":      {last, func(b []byte) []byte { b[len(b)-40] ^= 1; return b }},
		"a segment without its end":        {last, func(b []byte) []byte { return b[:len(b)-1] }},
		"a segment in the middle is lost":  {segments[len(segments)-2], nil},
		"the segment of the base is lost":  {segments[0], nil},
		"an empty segment":                 {last, func([]byte) []byte { return nil }},
		"a base with another one's length": {base, func(b []byte) []byte { return append(b, b[len(b)-1000:]...) }},
	} {
		whole, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		if c.change == nil {
			err = os.Remove(c.file)
		} else {
			err = os.WriteFile(c.file, c.change(append([]byte(nil), whole...)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.keeper.Test(t.Context())
		if err == nil {
			t.Errorf("%s: the test of the restoration succeeds", name)
		}
		t.Logf("%s: %v", name, err)
		if err := os.WriteFile(c.file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other, err := archive.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	m.keeper.Archive, err = archive.Open(m.place, other, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.keeper.Test(t.Context()); err == nil {
		t.Error("an archive of another key was restored")
	}
	if left, _ := filepath.Glob(filepath.Join(m.keeper.DataDir, "restore-test-*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
