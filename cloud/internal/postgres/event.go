package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrEventGone is returned for a place of the stream that is no longer, or not yet, part of it.
var ErrEventGone = errors.New("postgres: the events after this place are not kept")

// placeBatch is the number of events that receive their place in one transaction.
const placeBatch = 1000

// Event is one change of a subject. It contains no name, no contact and no key.
type Event struct {
	Place   int64 // in the stream; the id that clients see
	At      time.Time
	Type    string // reservation.done, door-request.success, ...
	Branch  *string
	Subject string
	Version int64 // of the subject: 1, 2, 3, ...
}

// PlaceEvents gives committed events their place in the stream, in the order of their ids. The writers of one subject are
// ordered by the lock of its row, so if an event is visible here, all earlier ones of its subject are too, and have smaller
// ids. If wait is false and another process places events, it does nothing.
func (db *DB) PlaceEvents(ctx context.Context, wait bool) error {
	lock := `select place from event_head for update skip locked`
	if wait {
		lock = `select place from event_head for update`
	}
	for {
		n, err := db.placeSome(ctx, lock)
		if err != nil || n < placeBatch {
			return err
		}
	}
}

func (db *DB) placeSome(ctx context.Context, lock string) (n int, err error) {
	err = db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		var head int64
		if err := tx.QueryRow(ctx, lock).Scan(&head); errors.Is(err, pgx.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		// A statement of its own: its snapshot includes the places that the previous holder of the lock gave.
		return tx.QueryRow(ctx, `
			with next as (select id, row_number() over (order by id) as n from event where place is null order by id limit $2),
			placed as (update event e set place = $1 + next.n from next where e.id = next.id returning 1),
			head as (update event_head set place = $1 + (select count(*) from next) where exists (select from next))
			select count(*) from placed`, head, placeBatch).Scan(&n)
	})
	return n, err
}

// EventFilter selects events. Branches nil: all, also those of no branch; Types empty: all.
type EventFilter struct {
	After    int64
	Limit    int
	Branches []string // codes
	Types    []string // a type, or a family such as reservation.*
}

// eventFilter is the condition of the parameters $1 (branch codes or null) and $2 (types).
const eventFilter = `
	($1::text[] is null or e.branch_id in (select id from branch where code = any($1)))
	and ($2::text[] = '{}' or e.type = any($2) or split_part(e.type, '.', 1) || '.*' = any($2))`

// Events returns the events after a place, in the order of the stream, and the place to continue from. It returns
// ErrEventGone if events after the place were deleted.
func Events(ctx context.Context, q Querier, f EventFilter) (events []Event, next int64, err error) {
	if f.Types == nil {
		f.Types = []string{}
	}
	var head, oldest int64
	err = q.QueryRow(ctx, `
		select h.place, coalesce((select min(place) from event), h.place + 1) from event_head h`).Scan(&head, &oldest)
	if err != nil {
		return nil, 0, err
	}
	if f.After > head || f.After > 0 && f.After < oldest-1 {
		return nil, 0, ErrEventGone
	}
	rows, err := q.Query(ctx, `
		select e.place, e.at, e.type, (select code from branch where id = e.branch_id), e.subject, e.version
		from event e where e.place > $3 and e.place <= $4 and`+eventFilter+` order by e.place limit $5`, f.Branches, f.Types, f.After, head, f.Limit)
	if err != nil {
		return nil, 0, err
	}
	if events, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Event]); err != nil {
		return nil, 0, err
	}
	if len(events) == f.Limit {
		return events, events[len(events)-1].Place, nil
	}
	return events, head, nil
}

// PurgeEvents deletes placed events before a time.
func PurgeEvents(ctx context.Context, q Querier, before time.Time) error {
	_, err := q.Exec(ctx, `delete from event where at < $1 and place is not null`, before)
	return err
}
