package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPooler is returned by Open if the URL leads to a connection pooler that does not keep sessions.
var ErrPooler = errors.New("the database URL leads to a connection pooler (PgBouncer) that does not keep sessions, which loses prepared statements, time-outs and locks of sessions: connect to PostgreSQL directly")

// rejectPooler fails if the connections of a pool do not have server sessions of their own, or if a pooler ignored
// their start-up parameters.
func rejectPooler(ctx context.Context, pool *pgxpool.Pool) error {
	first, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer first.Release()
	var pid uint32
	if err := first.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	if pid == first.Conn().PgConn().PID() {
		return nil // a pooler announces a process id of its own
	}
	for name, value := range pool.Config().ConnConfig.RuntimeParams {
		var got string
		if err := first.QueryRow(ctx, `select current_setting($1)`, name).Scan(&got); err != nil {
			return err
		}
		if got != value {
			return fmt.Errorf("%w (%s is %s instead of %s)", ErrPooler, name, got, value)
		}
	}
	return keepsSession(ctx, pool, first)
}

// keepsSession sets a value in the session of the first connection and then occupies the server connection that is free. If
// the first connection has no session of its own, the pooler assigns it another server connection next, which does not have
// the value.
func keepsSession(ctx context.Context, pool *pgxpool.Pool, first *pgxpool.Conn) error {
	probe := uuid.NewString()
	if _, err := first.Exec(ctx, `select set_config('yeolda.session', $1, false)`, probe); err != nil {
		return err
	}
	second, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer second.Release()
	tx, err := second.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `select 1`); err != nil {
		return err
	}
	var got string
	if err := first.QueryRow(ctx, `select coalesce(current_setting('yeolda.session', true), '')`).Scan(&got); err != nil || got != probe {
		return ErrPooler
	}
	return nil
}

// explainPooler replaces the error of a pooler that rejects start-up parameters.
func explainPooler(err error) error {
	if err != nil && strings.Contains(err.Error(), "unsupported startup parameter") {
		return fmt.Errorf("%w (%w)", ErrPooler, err)
	}
	return err
}
