package postgres_test

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// asRole returns a connection string of another role of the same database.
func asRole(t *testing.T, owner, role string) string {
	t.Helper()
	u, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("user", role)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	u.User = nil
	return u.String()
}

// The service works with the rights of its role, and cannot rewrite what is append-only.
func TestServiceCannotRewriteTheAuditLog(t *testing.T) {
	t.Parallel()
	owner := pgtest.URL(t)
	service := asRole(t, owner, "yeolda_service")
	quiet := slog.New(slog.DiscardHandler)
	for range 2 { // the second time changes nothing
		if err := postgres.MigrateFor(t.Context(), owner, service, quiet); err != nil {
			t.Fatal(err)
		}
	}
	db, err := postgres.Open(t.Context(), owner, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	// The socket of the server of tests accepts no other role, so the role is assumed.
	conn, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), `set session authorization yeolda_service`); err != nil {
		t.Fatal(err)
	}

	if err := postgres.AppendAudit(t.Context(), conn, audit.Entry{Actor: "system", Action: "settings.change"}); err != nil {
		t.Fatalf("an entry: %v", err)
	}
	for _, allowed := range []string{
		`update audit set place = 1, prev_hash = '', hash = 'x' where place is null`,
		`update branch set code = code`, `delete from message`, `select count(*) from money_entry`, `select count(*) from goose_db_version`,
		`insert into rate_limit select * from rate_limit`,
	} {
		if _, err := conn.Exec(t.Context(), allowed); err != nil {
			t.Errorf("%s: %v", allowed, err)
		}
	}
	for _, forbidden := range []string{
		`update audit set actor = 'x'`, `delete from audit`, `truncate audit`, `alter table audit disable trigger all`, `drop table audit`,
		`update ledger set amount = 0`, `delete from ledger`, `truncate ledger`, `alter table ledger disable trigger all`,
		`update money_entry set won = 0`, `delete from money_entry`, `truncate money_entry`, `alter table money_entry disable trigger all`,
		`truncate reservation`, `alter table reservation add column x int`, `create table x (y int)`, `drop function append_only() cascade`,
		`create or replace function append_only() returns trigger language plpgsql as 'begin return null; end'`,
		`set session_replication_role = replica`, `update goose_db_version set version_id = 0`, `set role ` + pgx.Identifier{ownerOf(t, db)}.Sanitize(),
	} {
		if _, err := conn.Exec(t.Context(), forbidden); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: got %v, want permission denied", forbidden, err)
		}
	}

	if excess, err := postgres.ExcessRights(t.Context(), db.Pool, "yeolda_service"); err != nil || len(excess) > 0 {
		t.Errorf("excess rights of the service: %v %v", excess, err)
	}
	excess, err := postgres.ExcessRights(t.Context(), db.Pool, "")
	if err != nil || !slices.Contains(excess, "is a superuser") || !slices.Contains(excess, "owns audit, ledger, money_entry") {
		t.Errorf("excess rights of the owner: %v %v", excess, err)
	}
	if err := postgres.MigrateFor(t.Context(), owner, owner, quiet); err == nil || !strings.Contains(err.Error(), "YEOLDA_DATABASE_OWNER_URL") {
		t.Errorf("the owner as the service: got %v, want an error that names the setting", err)
	}
}

func ownerOf(t *testing.T, db *postgres.DB) (name string) {
	t.Helper()
	if err := db.Pool.QueryRow(t.Context(), `select current_user`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}
