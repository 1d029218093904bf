// Package postgres stores all durable state. It is the only package with SQL, and PostgreSQL is the only place where
// concurrent requests are ordered: conflicts are rejected by a constraint (an exclusion constraint keeps reservations of a
// room apart), never by a read followed by a write.
//
// There is one file per family of tables, with handwritten SQL beside the code that scans it. Functions that read or write
// one row take a [Querier], so they work alone and as part of [DB.InTx]; functions that need a transaction take a pgx.Tx.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
)

const (
	// MaxConns is the maximum number of connections of a replica. Several replicas and a psql fit into the 100 that
	// PostgreSQL allows by default. pool_max_conns in the URL replaces it, except for doors.
	MaxConns = 30

	// minConns is the minimum of pool_max_conns: seven jobs hold a connection for their lock and wait for another one to work with,
	// all at once at the start, and the queue listens on one. With fewer, they would wait for each other without end.
	minConns = 10

	// doorConns is the number of connections for doors: three kinds of statements, one batch of each at a time, and a spare.
	doorConns = 4

	connectTimeout = 5 * time.Second

	// maxRetries bounds the repetitions of a transaction by InTx.
	maxRetries = 3

	// retryDelay is multiplied by the number of the retry and a random factor, so that transactions that deadlocked are
	// unlikely to collide again.
	retryDelay = 20 * time.Millisecond
)

// DB is the service's database. It is safe for concurrent use.
type DB struct {
	Pool *pgxpool.Pool
	// Doors are connections for the statements of package access, so that an unlock waits for no other query and no planning,
	// and only briefly for a locked row. Readiness is asked there too: a replica that is overloaded must not be taken for one
	// without a database.
	Doors  *pgxpool.Pool
	Logger *slog.Logger

	// Now returns the time of transactions: the database's clock as compared when it was opened, the service's [Clock], or a test's.
	Now func() time.Time

	canary    canary
	load      overload
	branches  branchCache
	unchanged Batcher[Basis, bool]
	claims    Batcher[messageClaim, booking.Message]
	sent      Batcher[sentMessage, struct{}]
}

// Open connects to the database at url, a connection string of pgx. It fails if the database does not answer, and with
// [ErrPooler] if a pooler does not keep sessions. It does not migrate; see [Migrate]. Times are returned in UTC.
func Open(ctx context.Context, url string, logger *slog.Logger) (*DB, error) {
	return open(ctx, url, 0, logger)
}

// open is Open, and keeps so many connections for doors open while they are idle.
func open(ctx context.Context, url string, keptDoors int32, logger *slog.Logger) (*DB, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err) // pgx omits the password
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = MaxConns - doorConns
	}
	if config.MaxConns < minConns {
		return nil, fmt.Errorf("database URL: pool_max_conns is %d; set %d or more", config.MaxConns, minConns)
	}
	config.MaxConnLifetime = 30 * time.Minute // a failover or a new password takes effect within this time
	config.MaxConnLifetimeJitter = 5 * time.Minute
	config.MaxConnIdleTime = 5 * time.Minute
	config.PingTimeout = connectTimeout
	leaveLostServers(config)
	for name, value := range map[string]string{
		"application_name": "yeolda",
		"timezone":         "UTC",
		// Every wait is bounded. Requests have shorter time-outs; these release the connection and row locks of a caller
		// without one.
		"statement_timeout":                   "30s",
		"idle_in_transaction_session_timeout": "30s",
		// By default PostgreSQL compiles statements that it considers expensive, such as the search for alerts of sensors from about two hundred
		// branches on. That takes longer than running them: BenchmarkAlertSweep.
		"jit": "off",
	} {
		if _, given := config.ConnConfig.RuntimeParams[name]; !given {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	if tracing.On() {
		config.ConnConfig.Tracer = spans{}
	}
	db := &DB{Logger: logger, Now: time.Now, canary: canary{process: rand.Int64()}}
	prepare := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := prepare(ctx, conn); err != nil {
			return err
		}
		return db.checkSetBack(ctx, conn)
	}
	if db.Pool, err = openPool(ctx, config); err != nil {
		return nil, err
	}
	if db.Doors, err = openPool(ctx, forDoors(config, keptDoors)); err != nil {
		db.Pool.Close()
		return nil, err
	}
	clock := NewClock(time.Now)
	if err := clock.Compare(ctx, db.Pool); err != nil {
		db.Close()
		return nil, err
	}
	db.Now = clock.Now
	return db, nil
}

func openPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open database: %w", explainPooler(err))
	}
	if err := rejectPooler(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	return pool, nil
}

// forDoors returns the configuration of the connections for doors. Their plans are made once, possibly while the tables
// are empty, and must find each row by its key. BenchmarkDoor: with these settings an unlock's three statements take
// 1.2 ms (median) on tables that grew since the plan was made, without them 12 ms; without the generic plans 2.2 ms.
func forDoors(config *pgxpool.Config, kept int32) *pgxpool.Config {
	config = config.Copy()
	config.MaxConns, config.MinConns = doorConns, kept
	for name, value := range map[string]string{
		"application_name": "yeolda doors",
		"lock_timeout":     "200ms", // a statement that waits delays its whole batch
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	return config
}

// Close waits for connections in use and closes the pools.
func (db *DB) Close() {
	db.Doors.Close()
	db.Pool.Close()
}

// scanInUTC returns timestamptz values, also in ranges and arrays, in UTC instead of the machine's time zone.
func scanInUTC(m *pgtype.Map) {
	instant := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	m.RegisterType(instant)
	m.RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: instant}})
	m.RegisterType(&pgtype.Type{Name: "tstzrange", OID: pgtype.TstzrangeOID, Codec: &pgtype.RangeCodec{ElementType: instant}})
}

// InTx runs do in a transaction, which commits if do returns nil and rolls back otherwise. now is the time of the
// transaction, in UTC and with PostgreSQL's precision. After a deadlock or a serialization failure the transaction runs
// again, up to three times, with a new now: do may affect only tx and variables that it sets anew.
func (db *DB) InTx(ctx context.Context, do func(ctx context.Context, tx pgx.Tx, now time.Time) error) error {
	for retry := 1; ; retry++ {
		now := db.Now().UTC().Truncate(time.Microsecond)
		err := pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error { return do(ctx, tx, now) })
		if err == nil || !lostToAnother(err) || retry > maxRetries {
			return err
		}
		db.Logger.WarnContext(ctx, "repeating a transaction", "retry", retry, "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Duration(retry) * retryDelay)):
		}
	}
}

// IsUniqueViolation reports whether err is a violation of the named unique constraint or index; any if the name is empty.
func IsUniqueViolation(err error, constraint string) bool {
	return violates(err, "23505", constraint)
}

// isForeignKeyViolation reports whether err is a violation of a foreign key.
func isForeignKeyViolation(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "23503"
}

// IsExclusionViolation is IsUniqueViolation for exclusion constraints.
func IsExclusionViolation(err error, constraint string) bool {
	return violates(err, "23P01", constraint)
}

func violates(err error, code, constraint string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == code && (constraint == "" || pgErr.ConstraintName == constraint)
}

// lostToAnother reports whether the transaction was rolled back in favour of another one and may succeed if repeated.
func lostToAnother(err error) bool {
	var pgErr *pgconn.PgError
	const deadlockDetected, serializationFailure = "40P01", "40001"
	return errors.As(err, &pgErr) && (pgErr.Code == deadlockDetected || pgErr.Code == serializationFailure)
}

// isLockTimeout reports whether a statement was canceled because it waited for a lock longer than lock_timeout.
func isLockTimeout(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55P03"
}
