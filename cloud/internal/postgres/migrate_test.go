package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// empty returns n pools of one new database without a schema.
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

// Jobs are hints, and cost no write-ahead log; their ids do, because an unlogged sequence does not outlast a failover.
func TestJobsAreUnlogged(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	check := func(when string) {
		t.Helper()
		for name, want := range map[string]string{"river_job": "u", "river_job_id_seq": "p"} {
			var persistence string
			if err := db.Pool.QueryRow(t.Context(), `select relpersistence::text from pg_class where oid = $1::text::regclass`, name).Scan(&persistence); err != nil {
				t.Fatal(err)
			}
			if persistence != want {
				t.Errorf("%s: %s has the persistence %q, want %q", when, name, persistence, want)
			}
		}
	}
	check("a new database")
	exec(t, db.Pool, `alter table river_job set logged`)
	if err := postgres.Migrate(t.Context(), db.Pool, db.Logger); err != nil {
		t.Fatal(err)
	}
	check("an upgraded one")
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
		t.Errorf("tables reservation and river_job: found %d, %v", tables, err)
	}
	// The server ends the session, which releases the lock, shortly after the connection is closed.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var locks int
		if err := replicas[0].Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = $1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, "advisory").Scan(&locks); err != nil {
			t.Fatal(err)
		}
		if locks == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the migration lock is still held")
		}
	}
}

func TestMigrateStopsWaitingWithItsContext(t *testing.T) {
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
		t.Error("migrated while another process held the lock")
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

// TestUpgradeUnderLocks applies every migration from 00012, which changes the table of door requests, while a transaction
// reads every table, as pg_dump does. The migration must wait without delaying unlock requests and holds, and finish after the
// reader has ended.
func TestUpgradeUnderLocks(t *testing.T) {
	t.Parallel()
	replicas := empty(t, 2)
	db, backup := replicas[0], replicas[1]
	if err := postgres.MigrateTo(t.Context(), db.Pool, 11); err != nil {
		t.Fatal(err)
	}
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `insert into room (branch_id, no) select id, 1 from branch`)
	reader, err := backup.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := reader.Exec(t.Context(), `do $$ declare t regclass; begin
		for t in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
			execute format('lock table %s in access share mode', t);
		end loop; end $$`); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() { migrated <- postgres.Migrate(t.Context(), db.Pool, slog.New(slog.DiscardHandler)) }()

	// A statement of the previous release, with the time-out of unlock requests.
	var presses postgres.Batcher[struct{}, struct{}]
	press := func() error {
		_, err := presses.Do(t.Context(), struct{}{}, func(ctx context.Context, one []struct{}) ([]struct{}, error) {
			_, err := db.Doors.Exec(ctx, `insert into door_request (id, branch_id, requested_by, kind, device, devices, created_at)
				select gen_random_uuid(), id, 'customer', 'front', 'front', '{front_1}', now() from branch where code = $1`, "gangnam")
			return one, err
		})
		return err
	}
	// A hold of a slot of its own.
	held := 0
	hold := func() error {
		held++
		return db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			_, err := tx.Exec(ctx, `insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at)
				select b.id, r.id, 'HOLD', 'CUSTOMER', s, s + interval '10 minutes', tstzrange(s, s + interval '20 minutes'), now() + interval '10 minutes'
				from branch b join room r on r.branch_id = b.id, lateral (select now() + $1 * interval '1 hour' as s) t`, held)
			return err
		})
	}
	refused := 0
	for i := range 150 {
		if err := hold(); err != nil {
			t.Fatalf("hold %d while the migration waits: %v", i, err)
		}
		// On a loaded machine the migration may give its lock up late. A migration that kept it would refuse every press.
		if err := press(); err != nil {
			if refused++; refused > 3 {
				t.Fatalf("press %d while the migration waits: %v; %d refused", i, err, refused)
			}
		}
		select {
		case err := <-migrated:
			t.Fatalf("the migration ended while every table was locked: %v", err)
		case <-time.After(20 * time.Millisecond): // 50 requests a second
		}
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for pressed := 150; ; pressed++ {
		select {
		case err := <-migrated:
			if err != nil {
				t.Fatal(err)
			}
			have, want, err := postgres.SchemaVersions(t.Context(), db.Pool)
			if err != nil || have != want {
				t.Errorf("schema after the reader ended: got %d, %v, want %d", have, err, want)
			}
			t.Logf("%d holds, none failed; %d presses, %d refused", held, pressed, refused)
			return
		case <-time.After(20 * time.Millisecond):
			if err := hold(); err != nil {
				t.Fatalf("hold %d while the migration runs: %v", held, err)
			}
			if err := press(); err != nil {
				if refused++; refused > 3 {
					t.Fatalf("press %d while the migration runs: %v; %d refused", pressed, err, refused)
				}
			}
		}
	}
}

// TestMigrateNamesTheHolder waits for a lock that another session holds, and expects the log to contain its process id.
func TestMigrateNamesTheHolder(t *testing.T) {
	t.Parallel()
	db := empty(t, 1)[0]
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `select pg_advisory_lock($1)`, int64(0x79656f6c6461)); err != nil {
		t.Fatal(err)
	}
	waiter, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Release()
	want := fmt.Sprintf("pid %d (yeolda, ", conn.Conn().PgConn().PID())
	if got := postgres.MigrationLockHolders(t.Context(), waiter.Conn()); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("holders of the migration lock: got %q, want one that begins with %q", got, want)
	}
}
