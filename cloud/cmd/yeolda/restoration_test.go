package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
)

// interruptRestore restores file into an empty database and interrupts the command when the rows are there, before the migrations.
func (s shell) interruptRestore(file string) (url string) {
	s.Helper()
	url = pgtest.Empty(s.T, pgtest.URL(s.T))
	s.Setenv("YEOLDA_DATABASE_URL", url)
	other, err := pgx.Connect(s.Context(), url)
	if err != nil {
		s.Fatal(err)
	}
	defer other.Close(s.Context())
	const migrationLock = 0x79656f6c6461
	if _, err := other.Exec(s.Context(), `select pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"restore", file}, strings.NewReader(""), io.Discard, io.Discard) }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var restored bool
		if err := other.QueryRow(s.Context(), `select to_regclass('branch') is not null`).Scan(&restored); err != nil || time.Now().After(deadline) {
			s.Fatalf("not restored: %v", err)
		}
		if restored {
			break
		}
	}
	cancel()
	if code := <-ended; code == 0 {
		s.Fatal("the restoration was not interrupted")
	}
	return url
}

// TestInterruptedRestore: a restoration that is interrupted after pg_restore is completed by its repetition, or by the next start. Otherwise
// the service would sell the time of lost reservations, and persons who were erased would be back.
func TestInterruptedRestore(t *testing.T) {
	s := newShell(t).withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	dir := t.TempDir()
	file := filepath.Join(dir, "backup")
	s.ok("backup", file)
	if err := os.WriteFile(filepath.Join(dir, "erasures"), []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string][]string{"repeated": {"restore", file}, "started": {"migrate"}} {
		t.Run(name, func(t *testing.T) {
			s := shell{t}
			url := s.interruptRestore(file)
			if name == "repeated" {
				other := filepath.Join(t.TempDir(), "other")
				if err := os.Link(file, other); err != nil {
					t.Fatal(err)
				}
				if _, errOut, code := s.run("", "restore", other); code == 0 || !strings.Contains(errOut, "backup") {
					t.Errorf("another backup over an interrupted restoration: %d %s", code, errOut)
				}
			}
			s.ok(again...)
			got := rows(t, url)
			if got["branch"] != 3 || got["rebuild"] != 1 || got["erasure_pending"] != 1 {
				t.Errorf("got %d branches, %d rebuilds, %d erasures, want 3, 1, 1", got["branch"], got["rebuild"], got["erasure_pending"])
			}
			if _, errOut, code := s.run("", "restore", file); code == 0 || !strings.Contains(errOut, "not empty") {
				t.Errorf("over a restored database: %d %s", code, errOut)
			}
		})
	}
}

// TestServeWaitsForARestoration: a database whose restoration is in progress, or was interrupted before it had a row, does not become that of
// a new installation, which would refund every order of the provider's books.
func TestServeWaitsForARestoration(t *testing.T) {
	s := newShell(t).withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	file := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", file)
	url := pgtest.Empty(t, os.Getenv("YEOLDA_DATABASE_URL"))
	s.Setenv("YEOLDA_DATABASE_URL", url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `create table restoration (file text not null, erasures text[] not null);
		insert into restoration values ('backup', '{}')`); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := s.run("", "migrate"); code == 0 || !strings.Contains(errOut, "yeolda restore") {
		t.Errorf("a database that is being restored was migrated: %d %s", code, errOut)
	}
	s.ok("restore", file)
	if got := rows(t, url); got["branch"] != 3 || got["rebuild"] != 1 {
		t.Errorf("got %d branches, %d rebuilds, want 3, 1", got["branch"], got["rebuild"])
	}
}

// TestBackupOfAnOpenRebuild restores a backup that was made while an order of an earlier restoration was still to be decided. The rebuild that
// begins is another one, and identifiers jump again: those after the backup are in receipts and messages.
func TestBackupOfAnOpenRebuild(t *testing.T) {
	s := newShell(t).withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	exec := func(url, sql string, into ...any) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if err := conn.QueryRow(t.Context(), sql).Scan(into...); err != nil {
			t.Fatal(err)
		}
	}
	var earlier, later time.Time
	exec(os.Getenv("YEOLDA_DATABASE_URL"), `insert into rebuild default values returning begun_at`, &earlier)
	file := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", file)
	restored := pgtest.Empty(t, os.Getenv("YEOLDA_DATABASE_URL"))
	s.Setenv("YEOLDA_DATABASE_URL", restored)
	s.ok("restore", file)
	exec(restored, `select begun_at from rebuild where ended_at is null`, &later)
	if !later.After(earlier) {
		t.Errorf("the open rebuild began at %v, that of the backup at %v", later, earlier)
	}
	var id int64
	exec(restored, `select nextval(pg_get_serial_sequence('reservation', 'id'))`, &id)
	if id < 1_000_000 {
		t.Errorf("the next reservation has the id %d, which the lost ones had", id)
	}
}
