package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Quarantine is time of a room that is not sold although its reservation was cancelled or moved: an agent may still hold
// that reservation's pass. It is a hold under the exclusion constraint of all reservations.
type Quarantine struct {
	ID          booking.ReservationID // of the hold
	Reservation booking.ReservationID // whose time it was
	RoomNo      int
	booking.Interval
	Reason string    // canceled, moved
	Until  time.Time // the end of the pass, at which the time becomes free by itself
}

// ErrNoQuarantine is returned for a quarantine that does not exist or has ended.
var ErrNoQuarantine = errors.New("postgres: no such quarantine")

// Quarantines returns the quarantines of a branch, by room and time.
func Quarantines(ctx context.Context, q Querier, branch booking.BranchID, now time.Time) ([]Quarantine, error) {
	rows, err := q.Query(ctx, `
		select r.id, r.quarantine_of, m.no, r.start_at, r.end_at, coalesce(r.reason, ''), r.expires_at
		from reservation r join room m on m.id = r.room_id
		where r.branch_id = $1 and r.quarantine_of is not null and r.state = 'HOLD' and r.expires_at > $2
		order by m.no, r.start_at`, branch, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (k Quarantine, err error) {
		return k, row.Scan(&k.ID, &k.Reservation, &k.RoomNo, &k.Start, &k.End, &k.Reason, &k.Until)
	})
}

// ReleaseQuarantine ends a quarantine of a branch. The reason may name a guest: it is the note of the hold, which retention and
// erasure empty, and not in the audit log, which is permanent. It returns ErrNoQuarantine.
func ReleaseQuarantine(ctx context.Context, tx pgx.Tx, branch booking.BranchID, id booking.ReservationID, reason string, now time.Time) error {
	tag, err := tx.Exec(ctx, `
		update reservation set state = 'RELEASED', reason = $4
		where id = $1 and branch_id = $2 and quarantine_of is not null and state = 'HOLD' and expires_at > $3`, id, branch, now, reason)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoQuarantine
	}
	return err
}

// QuarantinesOf returns the quarantines of the time that a reservation has left.
func QuarantinesOf(ctx context.Context, tx pgx.Tx, id booking.ReservationID) ([]booking.ReservationID, error) {
	rows, err := tx.Query(ctx, `
		select q.id from reservation r join reservation q on q.branch_id = r.branch_id and q.quarantine_of = r.id
		where r.id = $1 and q.quarantine_of is not null and q.state = 'HOLD'`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[booking.ReservationID])
}

// OwnQuarantines returns the quarantines in a room of time which a stay, or an extension of it, has left.
func OwnQuarantines(ctx context.Context, tx pgx.Tx, stay booking.ReservationID, room booking.RoomID) ([]booking.Reservation, error) {
	rows, err := tx.Query(ctx, `
		select q.id, q.start_at, q.end_at from reservation q join reservation r on r.id = q.quarantine_of
		where (r.id = $1 or r.extends = $1) and q.branch_id = r.branch_id and q.room_id = $2 and q.state = 'HOLD'`, stay, room)
	if err != nil {
		return nil, fmt.Errorf("quarantines of reservation %d: %w", stay, err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (q booking.Reservation, err error) {
		err = row.Scan(&q.ID, &q.Start, &q.End)
		return q, err
	})
}

// ReleaseQuarantines ends quarantines whose time the stay takes back.
func ReleaseQuarantines(ctx context.Context, tx pgx.Tx, ids []booking.ReservationID) error {
	_, err := tx.Exec(ctx, `update reservation set state = 'RELEASED' where id = any($1) and quarantine_of is not null and state = 'HOLD'`, ids)
	return err
}

// LiftQuarantine ends the quarantines of the time that the guest of a stay, and of its extensions, has freed in this transaction. The
// stay was to begin at start and its PIN was not disclosed yet. A quarantine remains where an agent may hold another pass, such as
// one of an earlier window of the stay, whose PIN may be known.
func LiftQuarantine(ctx context.Context, tx pgx.Tx, id booking.ReservationID, start time.Time) error {
	_, err := tx.Exec(ctx, `
		with lifted as (update reservation q set state = 'RELEASED'
		where q.quarantine_of in (select id from reservation where id = $1 or extends = $1) and q.state = 'HOLD' and q.created_at = now()
		  and q.branch_id = (select branch_id from reservation where id = $1)
		  and not exists (
			select from pass_listed l where l.room_id = q.room_id and l.not_after > q.start_at and l.not_before < q.end_at
			  and not undisclosed(l.pass_id, $1, $2)) returning q.id)
		delete from channel_block b using lifted where b.reservation_id = lifted.id and b.state = 'WANTED' -- no partner knows it yet`, id, start)
	return err
}

// releaseClean ends the quarantines of a branch for which no agent may hold a pass any more.
func releaseClean(ctx context.Context, tx pgx.Tx, branch booking.BranchID) (n int64, err error) {
	tag, err := tx.Exec(ctx, `
		update reservation r set state = 'RELEASED'
		where r.branch_id = $1 and r.quarantine_of is not null and r.state = 'HOLD' and not exists (
			select from pass_listed l where l.room_id = r.room_id and l.not_after > r.start_at and l.not_before < r.end_at)`, branch)
	return tag.RowsAffected(), err
}
