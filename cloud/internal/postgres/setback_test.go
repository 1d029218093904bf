package postgres_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestDatabaseThatWasSetBack removes canary writes of a process, as an older copy of the database does. A rebuild must begin before the
// first query on a new connection, or with the next canary write if connections survive, and only then.
func TestDatabaseThatWasSetBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	write := func() {
		t.Helper()
		if err := db.WriteCanary(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	open := func() (open bool) {
		t.Helper()
		open, err := postgres.RebuildOpen(t.Context(), db.Pool)
		if err != nil {
			t.Fatal(err)
		}
		if err := postgres.EndRebuild(t.Context(), db.Pool, time.Now()); err != nil {
			t.Fatal(err)
		}
		return open
	}
	reconnect := func() { db.Pool.Reset() }
	behind := func() { // a standby, to which a connection leads for a moment
		exec(t, db.Pool, `update canary set writes = writes - 1`)
		exec(t, db.Pool, `do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`)
		db.Pool.Reset()
		if _, err := postgres.RebuildOpen(t.Context(), db.Pool); err == nil {
			t.Error("a connection to a standby that is behind is used")
		}
		conn, err := pgx.Connect(t.Context(), db.Pool.Config().ConnString())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, sql := range []string{`set default_transaction_read_only = off`, `update canary set writes = writes + 1`,
			`do $$ begin execute format('alter database %I reset default_transaction_read_only', current_database()); end $$`} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name string
		do   []func()
		want bool
	}{
		{"a new process", []func(){reconnect, write}, false},
		{"more writes and new connections", []func(){write, reconnect, write, reconnect}, false},
		{"one write is lost, and connections are new", []func(){func() { exec(t, db.Pool, `update canary set writes = writes - 1`) }, reconnect}, true},
		{"after it", []func(){reconnect, write, reconnect}, false},
		{"a standby is behind", []func(){write, write, behind, write, reconnect}, false},
		{"all writes are lost, and connections are new", []func(){func() { exec(t, db.Pool, `delete from canary`) }, reconnect}, true},
		{"after them", []func(){reconnect, write, write, reconnect}, false},
		{"one write is lost, and connections survive", []func(){func() { exec(t, db.Pool, `update canary set writes = writes - 1`) }, write}, true},
		{"all writes are lost, and connections survive", []func(){write, func() { exec(t, db.Pool, `delete from canary`) }, write}, true},
		{"the writes of another process are lost", []func(){func() { exec(t, db.Pool, `insert into canary values (1, 5, now())`) }, write, func() { exec(t, db.Pool, `delete from canary where process = 1`) }, write, reconnect}, false},
	} {
		for _, do := range step.do {
			do()
		}
		if got := open(); got != step.want {
			t.Errorf("%s: a rebuild has begun: %v, want %v", step.name, got, step.want)
		}
	}
}

// TestServiceBeginsARebuild checks the rights of the service's role, which owns no sequence.
func TestServiceBeginsARebuild(t *testing.T) {
	t.Parallel()
	owner := pgtest.URL(t)
	if err := postgres.MigrateFor(t.Context(), owner, asRole(t, owner, "yeolda_service"), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `set session authorization yeolda_service`); err != nil {
		t.Fatal(err)
	}
	var next int64
	err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		if err := postgres.BeginRebuild(t.Context(), tx); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `select nextval(pg_get_serial_sequence('reservation', 'id'))`).Scan(&next)
	})
	if err != nil || next <= 1_000_000 {
		t.Errorf("the next reservation is %d, %v, want one above a million", next, err)
	}
}
