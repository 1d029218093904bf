// Package postgres keeps everything that must survive: it is the only package
// with SQL in it, and PostgreSQL is the only place where two requests meet.
// What must not happen twice or at the same time is forbidden by a constraint
// (an exclusion constraint keeps reservations of a room apart), never by
// looking first and writing later.
//
// There is one file for each family of tables, with the SQL written by hand
// beside the code that scans it. Functions that read or write one row take a
// [Querier], so they work alone and as a part of [DB.InTx]; those that only make
// sense together with others take a pgx.Tx.
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

	"github.com/yeolda/yeolda/cloud/internal/tracing"
)

const (
	// MaxConns is how many connections a replica opens at most. It leaves room
	// for several and a psql below the 100 that PostgreSQL allows by default.
	// pool_max_conns in the URL wins, for those that are not for doors.
	MaxConns = 30

	// doorConns is how many of them are for doors. There are three kinds of statements, each one at a time.
	doorConns = 4

	connectTimeout = 5 * time.Second

	// maxRetries bounds how often InTx tries a transaction again.
	maxRetries = 3

	// retryPause, times the number of the retry and at random, keeps transactions
	// that deadlocked once from meeting again.
	retryPause = 20 * time.Millisecond
)

// DB is the service's database. It is safe for concurrent use.
type DB struct {
	Pool *pgxpool.Pool
	// Doors are connections for the statements of package access alone: who stands at a door waits neither for somebody
	// else's query nor for a plan to be made, and no longer than a moment for a row.
	Doors  *pgxpool.Pool
	Logger *slog.Logger

	// Now tells the time of transactions: time.Now, but for tests.
	Now func() time.Time

	branches branchCache
}

// Open connects to the database at url, a connection string of pgx, and fails
// if it does not answer. It does not migrate; see [Migrate]. Times come back in
// UTC.
func Open(ctx context.Context, url string, logger *slog.Logger) (*DB, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err) // pgx leaves the password out
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = MaxConns - doorConns
	}
	config.MaxConnLifetime = 30 * time.Minute // a failover or a new password is noticed in this time
	config.MaxConnLifetimeJitter = 5 * time.Minute
	config.MaxConnIdleTime = 5 * time.Minute
	config.PingTimeout = connectTimeout
	config.ConnConfig.ConnectTimeout = connectTimeout
	for name, value := range map[string]string{
		"application_name": "yeolda",
		"timezone":         "UTC",
		// Every wait ends. Requests have shorter limits of their own; these free
		// the connection and the row locks of whatever forgot one.
		"statement_timeout":                   "30s",
		"idle_in_transaction_session_timeout": "30s",
	} {
		if _, given := config.ConnConfig.RuntimeParams[name]; !given {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		scanInUTC(conn.TypeMap())
		return nil
	}
	if tracing.On() {
		config.ConnConfig.Tracer = spans{}
	}
	db := &DB{Logger: logger, Now: time.Now}
	if db.Pool, err = openPool(ctx, config); err != nil {
		return nil, err
	}
	if db.Doors, err = openPool(ctx, forDoors(config)); err != nil {
		db.Pool.Close()
		return nil, err
	}
	return db, nil
}

func openPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	return pool, nil
}

// forDoors is the configuration of the connections for doors. Their plans are made once, perhaps while the tables are
// empty, and are to find each row by its key all the same.
func forDoors(config *pgxpool.Config) *pgxpool.Config {
	config = config.Copy()
	config.MaxConns = doorConns
	for name, value := range map[string]string{
		"application_name": "yeolda doors",
		"lock_timeout":     "200ms", // one that waits keeps the others of its group waiting
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

// scanInUTC makes timestamptz, also in ranges and arrays, independent of the
// machine's time zone, which is pgx's default.
func scanInUTC(m *pgtype.Map) {
	instant := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	m.RegisterType(instant)
	m.RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: instant}})
	m.RegisterType(&pgtype.Type{Name: "tstzrange", OID: pgtype.TstzrangeOID, Codec: &pgtype.RangeCodec{ElementType: instant}})
}

// InTx runs do in a transaction, which commits when do returns nil and rolls
// back otherwise. now is the one time of the transaction, in UTC and as exact as
// PostgreSQL stores it. A transaction that lost to another one (a deadlock or a
// serialization failure) is run again up to three times, each time with a new
// now: do must have no effects but those on tx and on variables it sets anew.
func (db *DB) InTx(ctx context.Context, do func(ctx context.Context, tx pgx.Tx, now time.Time) error) error {
	for retry := 1; ; retry++ {
		now := db.Now().UTC().Truncate(time.Microsecond)
		err := pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error { return do(ctx, tx, now) })
		if err == nil || !lostToAnother(err) || retry > maxRetries {
			return err
		}
		db.Logger.WarnContext(ctx, "running a transaction again", "retry", retry, "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Duration(retry) * retryPause)):
		}
	}
}

// IsUniqueViolation reports whether err is a violation of the named unique
// constraint or index, or of any when constraint is empty.
func IsUniqueViolation(err error, constraint string) bool {
	return violates(err, "23505", constraint)
}

// IsForeignKeyViolation reports whether rows elsewhere refer to the row.
func IsForeignKeyViolation(err error) bool {
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

// lostToAnother reports whether the transaction was ended for the sake of
// another one and may well succeed now.
func lostToAnother(err error) bool {
	var pgErr *pgconn.PgError
	const deadlockDetected, serializationFailure = "40P01", "40001"
	return errors.As(err, &pgErr) && (pgErr.Code == deadlockDetected || pgErr.Code == serializationFailure)
}
