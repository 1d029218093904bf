// Package pgtest gives each test a migrated PostgreSQL database of its own.
//
// The first test of a process that asks for one starts a private server, which
// takes about half a second and ends with the process, however that ends (see
// keeper.go). The schema is made once, in a template named by the hash of the
// migrations; a test's database is a copy of it, made in some 20 milliseconds
// and dropped after the test.
//
// With YEOLDA_TEST_DATABASE_URL set to the URL of a database whose user may
// create others, that server is used instead, also by several processes at once.
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

// limit bounds every wait for the server.
const limit = time.Minute

// New returns a new migrated and otherwise empty database, which is closed and
// dropped after the test.
func New(t testing.TB) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), URL(t), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// URL is New for tests that connect in their own way, or have a program do it.
func URL(t testing.TB) string {
	t.Helper()
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
	base     *url.URL // a database to connect to for creating others
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
		return server{}, errors.New("YEOLDA_TEST_DATABASE_URL is not a URL") // and may hold a password
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

// exec runs one statement on a connection of its own. A pool would be quicker by
// a few milliseconds, but its goroutines would count as leaks of the tests.
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

// makeTemplate makes the template unless it is there. Other processes may want
// the same on a shared server: one makes it, the others wait. Only a complete
// one is marked as a template; what an interrupted process left is made anew.
func (s server) makeTemplate() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.base.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) // gives the lock back
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
