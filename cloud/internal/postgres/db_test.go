package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func exec(t *testing.T, q postgres.Querier, sql string, args ...any) {
	t.Helper()
	if _, err := q.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestOpenUnreachable(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres:///x?host=" + t.TempDir(), // no server
		"postgres://a:secret@localhost:notaport/x",
	} {
		db, err := postgres.Open(t.Context(), url, slog.New(slog.DiscardHandler))
		if err == nil {
			db.Close()
			t.Errorf("opened %s", url)
		}
	}
}

func TestOpenRefusesTooFewConnections(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t).Pool.Config().ConnString()
	db, err := postgres.Open(t.Context(), url+"&pool_max_conns=9", slog.New(slog.DiscardHandler))
	if err == nil {
		db.Close()
		t.Fatal("opened with connections for the jobs only")
	}
	if !strings.Contains(err.Error(), "pool_max_conns") {
		t.Errorf("the error does not name the setting: %v", err)
	}
}

func TestSessionSettings(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name, want := range map[string]string{
		"TimeZone": "UTC", "application_name": "yeolda",
		"statement_timeout": "30s", "idle_in_transaction_session_timeout": "30s", "jit": "off",
	} {
		var got string
		if err := db.Pool.QueryRow(t.Context(), `SELECT current_setting($1)`, name).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if n := db.Pool.Config().MaxConns + db.Doors.Config().MaxConns; n != 30 {
		t.Errorf("at most %d connections, want 30", n)
	}
	other, err := postgres.Open(t.Context(), db.Pool.Config().ConnString()+"&pool_max_conns=10&statement_timeout=3s", db.Logger)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var timeout string
	if err := other.Pool.QueryRow(t.Context(), `SELECT current_setting($1)`, "statement_timeout").Scan(&timeout); err != nil {
		t.Fatal(err)
	}
	if n := other.Pool.Config().MaxConns; n != 10 || timeout != "3s" {
		t.Errorf("%d connections and a time-out of %s, want those of the URL", n, timeout)
	}
}

// TestDoorsNeedNoFurtherConnections: once the service runs, doors open although the server accepts no more connections, as when
// other clients use all of max_connections.
func TestDoorsNeedNoFurtherConnections(t *testing.T) {
	t.Parallel()
	db, err := postgres.OpenMigrated(t.Context(), "", pgtest.URL(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	most := db.Doors.Config().MaxConns
	for deadline := time.Now().Add(time.Minute); db.Doors.Stat().IdleConns() < most; time.Sleep(10 * time.Millisecond) { // opened in the background
		if time.Now().After(deadline) {
			t.Fatalf("%d connections for doors, want %d", db.Doors.Stat().IdleConns(), most)
		}
	}
	config := db.Pool.Config().ConnConfig.Copy()
	name := pgx.Identifier{config.Database}.Sanitize()
	config.Database = "postgres"
	server, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(context.WithoutCancel(t.Context()))
	exec(t, server, "alter database "+name+" with allow_connections false")
	for range most {
		conn, err := db.Doors.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		exec(t, conn, "select 1")
	}
}

func TestTimesComeBackInUTC(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	seoul := time.FixedZone("KST", 9*60*60)
	in := time.Date(2026, 11, 21, 15, 0, 0, 0, seoul)
	var (
		one  time.Time
		null *time.Time
		many []time.Time
		span pgtype.Range[time.Time]
	)
	err := db.Pool.QueryRow(t.Context(),
		`SELECT $1::timestamptz, $1::timestamptz, ARRAY[$1::timestamptz], tstzrange($1, $1, '[]')`, in).Scan(&one, &null, &many, &span)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []time.Time{one, *null, many[0], span.Lower} {
		if !out.Equal(in) || out.Location() != time.UTC {
			t.Errorf("%v came back as %v", in, out)
		}
	}
}

func TestInTxCommitsOrRollsBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, `CREATE TABLE n (n int)`)
	insert := func(outcome error) error {
		return db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			exec(t, tx, `INSERT INTO n VALUES ($1)`, 1)
			return outcome
		})
	}
	refused := errors.New("refused")
	if err := insert(refused); !errors.Is(err, refused) {
		t.Errorf("err = %v, want the function's own", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			exec(t, tx, `INSERT INTO n VALUES ($1)`, 1)
			panic("bug")
		})
	}()
	if err := insert(nil); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM n`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 1 {
		t.Errorf("%d rows, want that of the committed transaction", n)
	}
}

func TestNowOfTransaction(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	clock := time.Date(2026, 11, 21, 15, 0, 0, 123456789, time.FixedZone("KST", 9*60*60))
	db.Now = func() time.Time { return clock }
	err := db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		var stored time.Time
		if err := tx.QueryRow(ctx, `SELECT $1::timestamptz`, now).Scan(&stored); err != nil {
			return err
		}
		if stored != now {
			t.Errorf("now %v is stored as %v", now, stored)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Two transactions lock two rows in opposite order. PostgreSQL aborts one of them, and InTx repeats it.
func TestDeadlockIsRetried(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, `CREATE TABLE account (id int PRIMARY KEY, balance int)`)
	exec(t, db.Pool, `INSERT INTO account SELECT id, 100 FROM generate_series(1, 2) id`)

	var (
		wg    sync.WaitGroup
		first = map[int]chan struct{}{1: make(chan struct{}), 2: make(chan struct{})} // closed when the row is locked
		runs  = make(chan int, 10)
	)
	for _, from := range []int{1, 2} {
		wg.Go(func() {
			to := 3 - from
			locked := sync.OnceFunc(func() { close(first[from]) })
			err := db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
				runs <- from
				if _, err := tx.Exec(ctx, `UPDATE account SET balance = balance - 10 WHERE id = $1`, from); err != nil {
					return err
				}
				locked()
				<-first[to]
				_, err := tx.Exec(ctx, `UPDATE account SET balance = balance + 10 WHERE id = $1`, to)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(runs) < 3 { // PostgreSQL may abort both at once
		t.Errorf("%d runs, want at least 3: the loser twice", len(runs))
	}
	var sum, spread int
	if err := db.Pool.QueryRow(t.Context(), `SELECT sum(balance), max(balance) - min(balance) FROM account`).Scan(&sum, &spread); err != nil {
		t.Fatal(err)
	}
	if sum != 200 || spread != 0 {
		t.Errorf("sum %d, spread %d: a transfer was lost or made twice", sum, spread)
	}
}

func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, c := range []struct {
		code string
		runs int
	}{{"40P01", 4}, {"40001", 4}, {"23505", 1}} {
		runs := 0
		err := db.InTx(t.Context(), func(context.Context, pgx.Tx, time.Time) error {
			runs++
			return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: c.code})
		})
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != c.code || runs != c.runs {
			t.Errorf("%s: %d runs, err = %v; want %d runs", c.code, runs, err, c.runs)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	err := db.InTx(ctx, func(context.Context, pgx.Tx, time.Time) error {
		runs++
		cancel()
		return &pgconn.PgError{Code: "40001"}
	})
	if err == nil || runs != 1 {
		t.Errorf("%d runs, err = %v after the caller had returned", runs, err)
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, `CREATE TABLE span (id int CONSTRAINT span_id UNIQUE, room int, during int4range,
		CONSTRAINT span_apart EXCLUDE USING gist (room WITH =, during WITH &&))`)
	insert := func(id int, from, to int) error {
		_, err := db.Pool.Exec(t.Context(), `INSERT INTO span VALUES ($1, 1, int4range($2, $3))`, id, from, to)
		if err != nil {
			return fmt.Errorf("insert: %w", err)
		}
		return nil
	}
	if err := insert(1, 0, 10); err != nil {
		t.Fatal(err)
	}
	same, overlapping := insert(1, 20, 30), insert(2, 5, 15)
	for _, c := range []struct {
		name      string
		got, want bool
	}{
		{"unique, named", postgres.IsUniqueViolation(same, "span_id"), true},
		{"unique, any", postgres.IsUniqueViolation(same, ""), true},
		{"unique, another", postgres.IsUniqueViolation(same, "span_apart"), false},
		{"unique of exclusion", postgres.IsUniqueViolation(overlapping, ""), false},
		{"exclusion, named", postgres.IsExclusionViolation(overlapping, "span_apart"), true},
		{"exclusion, any", postgres.IsExclusionViolation(overlapping, ""), true},
		{"exclusion, another", postgres.IsExclusionViolation(overlapping, "span_id"), false},
		{"exclusion of unique", postgres.IsExclusionViolation(same, ""), false},
		{"no error", postgres.IsExclusionViolation(nil, ""), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// onDemotedServer opens a database on a server that takes no writes. With promote, its address leads to one that does, and open connections
// stay where they are.
func onDemotedServer(t *testing.T) (db *postgres.DB, promote func()) {
	t.Helper()
	url := pgtest.URL(t)
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	readOnly := func(value string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), fmt.Sprintf(`alter database %s set default_transaction_read_only = %s`, admin.Config().Database, value)); err != nil {
			t.Fatal(err)
		}
	}
	readOnly("on")
	db, err = postgres.Open(t.Context(), url, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, func() { readOnly("off") }
}

// TestPoolLeavesADemotedServer opens connections to a server that takes no writes, as after a failover whose new address a name server
// does not have yet. Once the address leads to a server that does, the pool must not keep the others for the rest of their lives.
func TestPoolLeavesADemotedServer(t *testing.T) {
	t.Parallel()
	db, promote := onDemotedServer(t)
	write := func() error { return postgres.NoteSuccess(t.Context(), db.Pool, postgres.WorkWrite, time.Now()) }
	if err := write(); !postgres.IsUnavailable(err) {
		t.Fatalf("a write to a server that takes none: got %v, want an error that means unavailable", err)
	}
	promote()
	var err error
	for range db.Pool.Config().MaxConns {
		if err = write(); err == nil {
			return
		}
	}
	t.Errorf("a write after each connection has met the demoted server: %v", err)
}

// TestReadersLeaveADemotedServer keeps a listener and connections that only read on a server that takes no writes any more, as after a
// switch-over that leaves the old primary running. No write meets them, and no notification of the new primary arrives there.
func TestReadersLeaveADemotedServer(t *testing.T) {
	t.Parallel()
	db, promote := onDemotedServer(t)
	sessions := func() (demoted int) { // of three connections that are in use at once
		t.Helper()
		for range 3 {
			conn, err := db.Pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			var value string
			if err := conn.QueryRow(t.Context(), `select current_setting($1)`, "transaction_read_only").Scan(&value); err != nil {
				t.Fatal(err)
			}
			if value == "on" {
				demoted++
			}
		}
		return demoted
	}
	if got := sessions(); got != 3 {
		t.Fatalf("%d of 3 connections to the demoted server, want 3", got)
	}
	listening, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- postgres.ListenDoors(t.Context(), db, func() { close(listening) }, func(uuid.UUID) {})
	}()
	<-listening
	promote()
	select {
	case err := <-ended:
		t.Log(err)
	case <-time.After(time.Minute):
		t.Fatal("the listener stays on the demoted server")
	}
	if got := sessions(); got != 0 {
		t.Errorf("%d of 3 connections still lead to the demoted server", got)
	}
}
