package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Occupancy holds the fields of a live reservation that look-ups need.
type Occupancy struct {
	ID    booking.ReservationID
	Room  booking.RoomID
	State booking.State
	booking.Interval
}

// Occupancies are a branch and the reservations that occupy its rooms within a window, margins included.
type Occupancies struct {
	Branch booking.Branch
	Window booking.Interval
	List   []Occupancy
	Basis  Basis
}

// Basis is what [DB.Unchanged] needs to decide whether an answer about a branch is still current. It is comparable.
type Basis struct {
	Expires time.Time // when the first hold of the answer expires; zero: it has none

	branch   booking.BranchID
	revision int64
	snapshot string    // what the query saw, in the text form of pg_snapshot
	server   time.Time // start of the server, whose successor may use numbers of transactions again
}

// Occupancies returns the occupancies of a branch. One round trip returns the reservations and the branch's revision, which
// shows whether the cached branch is current.
func (db *DB) Occupancies(ctx context.Context, code string, window booking.LocalWindow, now time.Time) (Occupancies, error) {
	branch, cached := db.branches.get(code)
	if !cached {
		var err error
		if branch, err = db.loadBranch(ctx, code); err != nil {
			return Occupancies{}, err
		}
	}
	for {
		o := Occupancies{Branch: branch, Window: window.In(branch.Zone)}
		err := o.read(ctx, db, now)
		if err != nil || o.Basis.revision == branch.Revision {
			return o, err
		}
		if branch, err = db.loadBranch(ctx, code); err != nil {
			return Occupancies{}, err
		}
	}
}

func (o *Occupancies) read(ctx context.Context, db *DB, now time.Time) error {
	// A reservation is at most MaxLength long, so start_at alone bounds the scan of reservation_by_time; its margins extend
	// up to an hour further on both sides. A reservation that is being cancelled counts as its previous state; only that case
	// reads a column that the index does not have.
	//
	// The times are selected so that PostgreSQL keeps one generic plan. If it saw their values, it would expect fewer rows
	// and plan each execution anew, which takes longer than the search.
	window := o.Window
	rows, err := db.Pool.Query(ctx, `
		select b.id, b.revision, pg_current_snapshot()::text, pg_postmaster_start_time(),
		       r.id, r.room_id, case when r.state = 'CANCELING' and (select c.paid_at is null from reservation c where c.id = r.id)
		                        then 'WAITING_FOR_DEPOSIT' else r.state end, r.start_at, r.end_at,
		       case when r.state = 'HOLD' then r.expires_at end
		from branch b left join reservation r
		  on r.branch_id = b.id and r.start_at < (select $3::timestamptz) and r.start_at > (select $2::timestamptz)
		     and r.end_at > (select $4::timestamptz) and r.`+liveStates+` and (r.state <> 'HOLD' or r.expires_at > (select $5::timestamptz))
		where b.code = $1`,
		o.Branch.Code, window.Start.Add(-booking.MaxLength-booking.MaxMargin), window.End.Add(booking.MaxMargin), window.Start.Add(-booking.MaxMargin), now)
	if err != nil {
		return err
	}
	var ( // reused for all rows; the capacity fits a usual window, because look-ups are frequent
		next    Occupancy
		expires time.Time
	)
	o.List = make([]Occupancy, 0, 32)
	basis := &o.Basis
	_, err = pgx.ForEachRow(rows, []any{&basis.branch, &basis.revision, &basis.snapshot, &basis.server, (*zeronull.Int8)(&next.ID),
		(*zeronull.Int4)(&next.Room), (*zeronull.Text)(&next.State), (*zeronull.Timestamptz)(&next.Start), (*zeronull.Timestamptz)(&next.End),
		(*zeronull.Timestamptz)(&expires)}, func() error {
		if next.ID != 0 {
			o.List = append(o.List, next)
		}
		if !expires.IsZero() && (basis.Expires.IsZero() || expires.Before(basis.Expires)) {
			basis.Expires = expires
		}
		return nil
	})
	return err // revision 0: the branch was deleted, and loadBranch returns the error
}

// Unchanged reports whether an answer is still current: its branch and the branch's reservations are as its query saw them,
// and none of its holds has expired. It reads the database, so no replica misses a change of another one. Concurrent calls
// share a question to it, which begins after each of them: BenchmarkLookUpOfADay/unchanged.
func (db *DB) Unchanged(ctx context.Context, basis Basis, now time.Time) (bool, error) {
	if !basis.Expires.IsZero() && !now.Before(basis.Expires) {
		return false, nil
	}
	return db.unchanged.Do(ctx, basis, db.areUnchanged)
}

// areUnchanged answers for each basis whether its branch is as its query saw it.
//
// A transaction counts as one that the query did not see if its number is new to the snapshot. Numbers that this server has
// not reached come from a restored dump, and are older than every answer.
func (db *DB) areUnchanged(ctx context.Context, list []Basis) ([]bool, error) {
	const question = `
		select b.revision = $2 and pg_postmaster_start_time() = $3 and not exists (
		    select from reservation r
		    where r.branch_id = b.id and r.changed >= pg_snapshot_xmin($4::text::pg_snapshot) and r.changed < pg_snapshot_xmax(pg_current_snapshot())
		      and not pg_visible_in_snapshot(r.changed, $4::text::pg_snapshot))
		from branch b where b.id = $1`
	unchanged := map[Basis]bool{} // each is asked once: guests ask the same questions
	read := func(basis Basis) func(pgx.Row) error {
		return func(row pgx.Row) error {
			var same bool
			err := row.Scan(&same)
			unchanged[basis] = same
			if errors.Is(err, pgx.ErrNoRows) { // the branch was deleted
				return nil
			}
			return err
		}
	}
	batch := new(pgx.Batch)
	for _, basis := range list {
		if _, asked := unchanged[basis]; !asked {
			unchanged[basis] = false
			batch.Queue(question, basis.arguments()...).QueryRow(read(basis))
		}
	}
	if err := db.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	answers := make([]bool, len(list))
	for i, basis := range list {
		answers[i] = unchanged[basis]
	}
	return answers, nil
}

func (b Basis) arguments() []any { return []any{b.branch, b.revision, b.server, b.snapshot} }
