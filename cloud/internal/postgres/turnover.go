package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// SetTurnover changes how long a room stays empty after a reservation, for its present reservations too. If some lie closer
// together, it returns the later ones and changes nothing. The caller holds the room's lock.
//
// An exclusion violation means that a quarantine is in the way that another transaction has just inserted.
func SetTurnover(ctx context.Context, tx pgx.Tx, room booking.RoomID, minutes int, now time.Time) ([]booking.Reservation, error) {
	if err := expireAll(ctx, tx, room, now); err != nil {
		return nil, err
	}
	close, err := manyReservations(ctx, tx, `
		where r.room_id = $1 and r.end_at > $3 and r.`+liveStates+` and exists (
		    select from reservation a where a.room_id = $1 and a.`+liveStates+`
		      and coalesce(a.extends, a.id) <> coalesce(r.extends, r.id)
		      and a.end_at <= r.start_at and a.end_at > r.start_at - make_interval(mins => $2::integer))
		order by r.start_at, r.id`, room, minutes, now)
	if err != nil || len(close) > 0 {
		return close, err
	}
	batch := &pgx.Batch{}
	batch.Queue(`update room set turnover_minutes = $2 where id = $1`, room, minutes)
	// As in MoveStay, in two steps. A stay that has ended keeps its margin, unless a longer one still lies ahead.
	batch.Queue(`
		update reservation r set occupied = 'empty' where room_id = $1 and `+liveStates+` and turnover_minutes <> $2
		  and (end_at > $3 or exists (select from reservation e where e.extends = r.id and e.end_at > $3 and e.`+liveStates+`)
		       or turnover_minutes < $2 and end_at > $3::timestamptz - interval '1 hour' and not exists (
		           select from reservation b where b.room_id = $1 and b.`+liveStates+` and b.start_at >= r.end_at and b.end_at <= $3))`,
		room, minutes, now)
	batch.Queue(`update reservation set occupied = tstzrange(start_at, end_at) where room_id = $1 and `+liveStates+` and isempty(occupied)`, room)
	return nil, tx.SendBatch(ctx, batch).Close()
}

// expireAll ends the expired holds of a room.
func expireAll(ctx context.Context, tx pgx.Tx, room booking.RoomID, now time.Time) error {
	_, err := tx.Exec(ctx, `update reservation set state = 'EXPIRED' where room_id = $1 and state = 'HOLD' and expires_at <= $2`, room, now)
	return err
}
