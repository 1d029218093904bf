package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed migration/*.sql
var migrations embed.FS

const (
	// migrationLock is the key of the advisory lock of a running migration: "yeolda" in ASCII.
	migrationLock int64 = 0x79656f6c6461

	// migrationLockTimeout bounds the wait of a migration for the lock of a table. Statements of the running release queue
	// behind that wait, and those of doors wait at most 200 ms (forDoors). So a migration gives up sooner and tries again,
	// for instance until a backup has ended.
	migrationLockTimeout = 100 * time.Millisecond
	migrationRetryDelay  = time.Second

	// waitNotice is the interval at which a waiting migration is logged.
	waitNotice = 10 * time.Second
)

// silent keeps the two libraries from logging what Migrate logs.
var silent = slog.New(slog.DiscardHandler)

// Migrate brings the schema up to date: the service's own tables and those of River. It holds an advisory lock, so several
// replicas may start at the same time. A schema newer than this program remains as it is. A migration that cannot lock a
// table is rolled back and tried again until ctx is done; after another error the earlier migrations remain applied. After a
// restoration it begins the rebuild.
func Migrate(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) error {
	// Separate connections, because migrations and the wait for the advisory lock may exceed the service's time-outs.
	config := pool.Config()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, 4
	config.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	config.ConnConfig.RuntimeParams["lock_timeout"] = strconv.FormatInt(migrationLockTimeout.Milliseconds(), 10)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer pool.Close()

	locker, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	lock := locker.Hijack()
	defer lock.Close(context.WithoutCancel(ctx)) // the end of the session releases the lock
	if err := acquireMigrationLock(ctx, lock, logger); err != nil {
		return fmt.Errorf("migrate: wait for another migration: %w", err)
	}
	if err := checkRestored(ctx, pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := retryLocked(ctx, logger, func() error { return migrateService(ctx, pool, logger) }); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := retryLocked(ctx, logger, func() error { return migrateRiver(ctx, pool, logger) }); err != nil {
		return fmt.Errorf("migrate River: %w", err)
	}
	if err := endRestoration(ctx, pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// acquireMigrationLock polls for the advisory lock. A blocking call would hold a snapshot, for whose end CREATE INDEX
// CONCURRENTLY in the process that migrates would wait indefinitely.
func acquireMigrationLock(ctx context.Context, conn *pgx.Conn, logger *slog.Logger) error {
	var noticed time.Time
	for began := time.Now(); ; {
		var acquired bool
		if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, migrationLock).Scan(&acquired); err != nil || acquired {
			return err
		}
		if waited := time.Since(began); waited > waitNotice && time.Since(noticed) > waitNotice {
			noticed = time.Now()
			logger.WarnContext(ctx, "still waiting for another process that migrates the database",
				"waited", waited.Round(time.Second), "holders", migrationLockHolders(ctx, conn))
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// migrationLockHolders describes the sessions that hold the migration lock, for the log.
func migrationLockHolders(ctx context.Context, conn *pgx.Conn) []string {
	rows, err := conn.Query(ctx, `select format('pid %s (%s, %s)', a.pid, a.application_name, coalesce(host(a.client_addr), 'local'))
		from pg_locks l join pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'advisory' and l.granted and (l.classid::bigint << 32 | l.objid::bigint) = $1
		  and l.database = (select oid from pg_database where datname = current_database())`, migrationLock)
	if err != nil {
		return nil
	}
	holders, _ := pgx.CollectRows(rows, pgx.RowTo[string]) // only for the log
	return holders
}

// retryLocked runs a migration again for as long as it fails because a table is locked.
func retryLocked(ctx context.Context, logger *slog.Logger, migrate func() error) error {
	var noticed time.Time
	for {
		err := migrate()
		if !isLocked(err) {
			return err
		}
		if time.Since(noticed) > waitNotice {
			noticed = time.Now()
			logger.WarnContext(ctx, "a migration waits for the lock of a table, for instance during a backup, and is tried again", "error", err)
		}
		if sleep(ctx, migrationRetryDelay) != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// isLocked reports whether a statement gave up because of another transaction's lock.
func isLocked(err error) bool {
	var pgErr *pgconn.PgError
	const lockNotAvailable = "55P03"
	return errors.As(err, &pgErr) && pgErr.Code == lockNotAvailable || lostToAnother(err)
}

func migrateService(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) error {
	files, err := fs.Sub(migrations, "migration")
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSlog(silent), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	applied, err := provider.Up(ctx)
	if err != nil {
		return err
	}
	for _, m := range applied {
		logger.InfoContext(ctx, "migrated", "migration", m.Source.Path, "took", m.Duration)
	}
	return nil
}

func migrateRiver(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: silent})
	if err != nil {
		return err
	}
	result, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return err
	}
	for _, m := range result.Versions {
		logger.InfoContext(ctx, "migrated River", "version", m.Version, "migration", m.Name, "took", m.Duration)
	}
	_, err = pool.Exec(ctx, unlogJobs)
	return err
}

// unlogJobs keeps the jobs out of the write-ahead log. A job is a hint (package queue): after a crash of the database, or at a
// standby that takes over, the table is empty, and the sweep finds the work in the rows. Two jobs were a fifth of the log of a purchase
// (yeolda-bench -purchases). The sequence of the ids stays in the log: PostgreSQL 15 unlogs it with the table, and the unlogged one cannot be
// read at a standby that has taken over ("bad magic number in sequence", make patronitest).
const unlogJobs = `do $$ begin
	if (select relpersistence from pg_class where oid = 'river_job'::regclass) = 'p' then
		alter table river_job set unlogged;
	end if;
	if (select relpersistence from pg_class where oid = 'river_job_id_seq'::regclass) = 'u' then
		execute 'alter sequence river_job_id_seq set logged';
	end if;
end $$`

// Analyze refreshes the planner's statistics of all tables.
func Analyze(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `set local statement_timeout = 0; analyze`)
		return err
	})
}

// SchemaHash identifies the schema that Migrate creates: it changes whenever a migration is added or edited.
func SchemaHash() (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(migrations, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := migrations.ReadFile(path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		return "", err
	}
	river, err := rivermigrate.New(riverpgxv5.New(nil), &rivermigrate.Config{Logger: silent})
	if err != nil {
		return "", err
	}
	for _, m := range river.AllVersions() {
		fmt.Fprintf(hash, "river %d %d\n%s", m.Version, len(m.SQLUp), m.SQLUp)
	}
	fmt.Fprintf(hash, "%s", unlogJobs)
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
