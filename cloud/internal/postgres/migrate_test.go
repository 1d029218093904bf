package postgres_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// empty returns databases opened on one that nobody has migrated.
func empty(t *testing.T, n int) []*postgres.DB {
	t.Helper()
	parent := pgtest.New(t)
	var name string
	if err := parent.Pool.QueryRow(t.Context(), `SELECT current_database() || $1`, "_empty").Scan(&name); err != nil {
		t.Fatal(err)
	}
	exec(t, parent.Pool, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if _, err := parent.Pool.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	url := strings.Replace(parent.Pool.Config().ConnString(), "/"+strings.TrimSuffix(name, "_empty"), "/"+name, 1)
	replicas := make([]*postgres.DB, n)
	for i := range replicas {
		db, err := postgres.Open(t.Context(), url, parent.Logger)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		replicas[i] = db
	}
	return replicas
}

func TestReplicasMigrateAtOnce(t *testing.T) {
	t.Parallel()
	replicas := empty(t, 4)
	var wg sync.WaitGroup
	for _, db := range replicas {
		wg.Go(func() {
			if err := postgres.Migrate(t.Context(), db.Pool, db.Logger); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var tables int
	err := replicas[0].Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_class WHERE relname = ANY($1)`,
		[]string{"reservation", "river_job"}).Scan(&tables)
	if err != nil || tables != 2 {
		t.Errorf("%d tables, %v; want reservation and river_job", tables, err)
	}
	// The lock goes with its connection, which the server closes a moment after we do.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var locks int
		if err := replicas[0].Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = $1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, "advisory").Scan(&locks); err != nil {
			t.Fatal(err)
		}
		if locks == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the lock was not given back")
		}
	}
}

func TestMigrateWaitsNoLongerThanItsCaller(t *testing.T) {
	t.Parallel()
	db := empty(t, 1)[0]
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, int64(0x79656f6c6461)); err != nil { // another replica
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := postgres.Migrate(ctx, db.Pool, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("migrated beside another replica")
	}
}

func TestSchemaHash(t *testing.T) {
	t.Parallel()
	a, err := postgres.SchemaHash()
	if err != nil {
		t.Fatal(err)
	}
	b, err := postgres.SchemaHash()
	if err != nil {
		t.Fatal(err)
	}
	if a != b || len(a) != 16 {
		t.Errorf("hashes %q and %q", a, b)
	}
}
