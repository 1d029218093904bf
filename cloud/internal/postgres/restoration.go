package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RestorationTable exists from the beginning of a restoration until Migrate has begun the rebuild. No migration creates it, because
// the database has no schema then, and no backup contains it.
const RestorationTable = "restoration"

// restorationLock is the key of the advisory lock of a running restoration.
const restorationLock = migrationLock + 1

var (
	// ErrRestoring is returned by LockRestoration while another process restores the database.
	ErrRestoring = errors.New("another yeolda restore fills this database")

	errNotRestored = errors.New("a restoration of this database is in progress, or was interrupted before it restored anything: " +
		"repeat yeolda restore; to begin without the backup, drop table " + RestorationTable)
)

// Restoration is a restoration that has begun.
type Restoration struct {
	File     string   // name of the backup
	Erasures []string // pseudonyms of the persons to erase again
}

// LockRestoration keeps other processes from restoring the database until the connection is closed.
func LockRestoration(ctx context.Context, pool *pgxpool.Pool) (release func(), err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	lock := conn.Hijack()
	release = func() { _ = lock.Close(context.WithoutCancel(ctx)) }
	var acquired bool
	if err = lock.QueryRow(ctx, `select pg_try_advisory_lock($1)`, restorationLock).Scan(&acquired); err == nil && !acquired {
		err = ErrRestoring
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// FindRestoration returns the restoration that has begun and not ended.
func FindRestoration(ctx context.Context, q Querier) (r Restoration, found bool, err error) {
	if err = q.QueryRow(ctx, `select to_regclass($1) is not null`, RestorationTable).Scan(&found); err != nil || !found {
		return r, false, err
	}
	err = q.QueryRow(ctx, `select file, erasures from `+RestorationTable).Scan(&r.File, &r.Erasures)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("read the restoration that has not ended, as the owner of the tables (yeolda migrate): %w", err)
	}
	return r, true, nil
}

// BeginRestoration records a restoration in place of an earlier one.
func BeginRestoration(ctx context.Context, tx pgx.Tx, r Restoration) error {
	if err := DropRestoration(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `create table `+RestorationTable+` (file text not null, erasures text[] not null)`); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `insert into `+RestorationTable+` values ($1, $2)`, r.File, append([]string{}, r.Erasures...))
	return err
}

// DropRestoration removes the record of a restoration.
func DropRestoration(ctx context.Context, q Querier) error {
	_, err := q.Exec(ctx, `drop table if exists `+RestorationTable)
	return err
}

// checkRestored fails if a restoration has begun and not filled the database: the migrations would make it that of a new
// installation, in which the backup has no place any more.
func checkRestored(ctx context.Context, pool *pgxpool.Pool) error {
	var waits bool
	err := pool.QueryRow(ctx, `select to_regclass($1) is not null and to_regclass($2) is null`, RestorationTable, "goose_db_version").Scan(&waits)
	if err == nil && waits {
		err = errNotRestored
	}
	return err
}

// endRestoration makes the service erase persons again and begins a rebuild, if the database was restored. It is part of the
// migration, so that a restoration which was interrupted has the same end.
func endRestoration(ctx context.Context, pool *pgxpool.Pool) error {
	r, found, err := FindRestoration(ctx, pool)
	if err != nil || !found {
		return err
	}
	db := &DB{Pool: pool, Now: time.Now}
	err = db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := PutPendingErasures(ctx, tx, r.Erasures); err != nil {
			return err
		}
		if err := EndRebuild(ctx, tx, now); err != nil { // of an earlier restoration, open when the backup was made
			return err
		}
		if err := BeginRebuild(ctx, tx); err != nil {
			return err
		}
		return DropRestoration(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("end the restoration of %s, as the owner of the tables (yeolda migrate): %w", r.File, err)
	}
	return nil
}
