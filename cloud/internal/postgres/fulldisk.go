package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrDiskFull is returned when the disk of the database has no space.
var ErrDiskFull = errors.New("the disk of the database is full")

// CheckDisk returns [ErrDiskFull] if the server cannot write a megabyte. An update of one row in place, like that of [NoteSuccess], needs no
// space, so it succeeds long after reservations and presses fail. The statement here has more rows than memory, so the server writes
// them to a temporary file, and nothing to tables or the write-ahead log. They are not sorted, because PostgreSQL 18 does not count the
// memory of a single column that it sorts. If the server forbids temporary files of that size, CheckDisk returns nil.
func CheckDisk(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local work_mem = '64kB'`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			with rows as materialized (select repeat(md5(n::text), 32) as filler from generate_series(1, 1024) n)
			select count(filler) from rows`)
		return err
	})
	var pgErr *pgconn.PgError
	switch {
	case !errors.As(err, &pgErr):
		return err
	case pgErr.Code == "53100":
		return fmt.Errorf("%w: %s", ErrDiskFull, pgErr.Message)
	case pgErr.Code == "53400": // temp_file_limit
		return nil
	}
	return err
}
