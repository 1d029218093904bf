package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// canary counts the canary writes that this process has committed. A database that has fewer of them was set back while the process ran: an
// older backup or snapshot took its place, or a standby that lacked the last changes.
type canary struct {
	process int64

	mu     sync.Mutex
	writes int64 // committed
	lost   bool  // the database was set back, and no rebuild has begun yet
}

// committed returns the number of committed writes, and whether a rebuild has to begin.
func (c *canary) committed() (writes int64, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes, c.lost
}

func (c *canary) set(writes int64, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes, c.lost = writes, lost
}

// WriteCanary commits a row, durably whatever the settings of the server, and stores the time of the success. If the database lacks an earlier
// one of this process, it begins a rebuild. Only one call may run at a time.
func (db *DB) WriteCanary(ctx context.Context, now time.Time) error {
	conn, err := db.Doors.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	committed, lost := db.canary.committed()
	var writes int64
	err = conn.QueryRow(ctx, `
		with durable as (select set_config('synchronous_commit', case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end, true))
		insert into canary (process, writes, written_at) select $1, 1, $2 from durable
		on conflict (process) do update set writes = canary.writes + 1, written_at = excluded.written_at returning writes`, db.canary.process, now).Scan(&writes)
	if err != nil {
		return fmt.Errorf("canary write: %w", err)
	}
	if lost || writes <= committed {
		if err := db.beginRebuild(ctx, conn.Conn(), writes); err != nil {
			db.canary.set(writes, true) // this write hides that earlier ones are missing
			return err
		}
	}
	db.canary.set(writes, false)
	return NoteSuccess(ctx, conn, WorkWrite, now)
}

// PurgeCanaries deletes the rows of other processes that have written none since a time. A row of a running process must stay, so the clock
// has to be steady.
func (db *DB) PurgeCanaries(ctx context.Context, before time.Time) error {
	_, err := db.Pool.Exec(ctx, `delete from canary where written_at < $1 and process <> $2`, before, db.canary.process)
	return err
}

// checkSetBack begins a rebuild if the database of a new connection lacks canary writes of this process. A server that is replaced ends all
// connections, so no time of a room is sold before.
func (db *DB) checkSetBack(ctx context.Context, conn *pgx.Conn) error {
	committed, lost := db.canary.committed()
	if committed == 0 && !lost {
		return nil
	}
	var writes int64
	err := conn.QueryRow(ctx, `select writes from canary where process = $1`, db.canary.process).Scan(&writes)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the canary writes: %w", err)
	}
	if !lost && writes >= committed {
		return nil
	}
	return db.beginRebuild(ctx, conn, writes)
}

// beginRebuild begins a rebuild because the database, which has so many canary writes of this process, was set back.
func (db *DB) beginRebuild(ctx context.Context, conn *pgx.Conn, writes int64) error {
	db.Logger.ErrorContext(ctx, "the database lacks what it had stored: it was set back; no reservations are taken until the payment provider's books are applied")
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return BeginRebuild(ctx, tx) })
	if err != nil { // also at a standby that is behind, which takes no writes
		return fmt.Errorf("begin a rebuild: %w", err)
	}
	db.canary.set(writes, false)
	return nil
}
