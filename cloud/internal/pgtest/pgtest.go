// Package pgtest provides each test with a migrated PostgreSQL database of its own.
//
// The first test of a process that needs one starts a private server, which takes about half a second and ends with
// the process (see keeper.go). The schema is created once, in a template named by the hash of the migrations. A test's
// database is a copy of the template, created in some 20 milliseconds and dropped after the test.
//
// With YEOLDA_TEST_DATABASE_URL set to the URL of a database whose user may create others, that server is used
// instead, also by several processes at the same time.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// limit bounds every wait for the server. The schema is created in two seconds, and in more than a minute on a machine with twenty
// times as much to do as it can.
const limit = 5 * time.Minute

// New returns a new, migrated and empty database, which is closed and dropped after the test.
func New(t testing.TB) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), URL(t), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// URL is New for tests that connect on their own, or start a program that does. With -short it skips the test.
func URL(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	server, err := prepared()
	if err != nil {
		t.Fatalf("test database: %v", err)
	}
	name := "yeolda_test_" + strings.ToLower(rand.Text())
	if err := server.exec("CREATE DATABASE " + name + " TEMPLATE " + server.template); err != nil {
		t.Fatalf("test database: %v", err)
	}
	t.Cleanup(func() {
		if err := server.exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Errorf("test database: %v", err)
		}
	})
	return server.url(name)
}

// server is a PostgreSQL server with a template for test databases.
type server struct {
	base     *url.URL // a database for the connections that create others
	template string
}

// prepared returns the server of this process.
var prepared = sync.OnceValues(func() (server, error) {
	base := os.Getenv("YEOLDA_TEST_DATABASE_URL")
	if base == "" {
		var err error
		if base, err = startKeeper(); err != nil {
			return server{}, err
		}
	}
	u, err := url.Parse(base)
	if err != nil {
		return server{}, errors.New("YEOLDA_TEST_DATABASE_URL is not a URL") // not quoted, because it may hold a password
	}
	hash, err := postgres.SchemaHash()
	if err != nil {
		return server{}, err
	}
	s := server{base: u, template: "yeolda_template_" + hash}
	return s, s.makeTemplate()
})

func (s server) url(database string) string {
	u := *s.base
	u.Path = "/" + database
	return u.String()
}

// exec runs one statement on a connection of its own. A pool would be a few milliseconds faster, but its goroutines
// would count as leaks of the tests.
func (s server) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.base.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// makeTemplate creates the template unless it exists. Several processes may need it on a shared server: one creates
// it, the others wait. Only a complete template is marked as one; an incomplete one of an interrupted process is
// created again.
func (s server) makeTemplate() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.base.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) // the end of the session releases the lock
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext($1))`, s.template); err != nil {
		return err
	}
	var complete bool
	err = conn.QueryRow(ctx, `SELECT datistemplate FROM pg_database WHERE datname = $1`, s.template).Scan(&complete)
	if complete {
		return nil
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + s.template + " WITH (FORCE)", "CREATE DATABASE " + s.template} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+s.template+" IS_TEMPLATE true")
	return err
}

func (s server) migrate(ctx context.Context) error {
	silent := slog.New(slog.DiscardHandler)
	db, err := postgres.Open(ctx, s.url(s.template), silent)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := postgres.Migrate(ctx, db.Pool, silent); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	return nil
}
