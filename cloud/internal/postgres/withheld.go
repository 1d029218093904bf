package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Withheld time is the free part of the time of a partner's booking in conflict: the partner has sold it, so it is not sold again. It is kept
// by holds that extend the booking's reservation. Until the booking is taken again, no hold covers a part that has become free since;
// partner_conflict, which has the whole time, keeps it from being sold.

// withheld is the predicate of the reservations that withhold time: a partner has no other holds.
const withheld = `(state = 'HOLD' and source = 'PARTNER')`

// soldInConflict reports whether a partner has sold a part of a place in room m with a booking in conflict, margins included. Its parameters
// are those of Place.args.
const soldInConflict = `exists (
	select from partner_conflict where room_id = $1 and not reservation_id = any($5) and occupied && ` + needed + `)`

// BeginConflict records the time that a partner has sold with a booking in conflict. The caller holds the room's lock.
func BeginConflict(ctx context.Context, tx pgx.Tx, id booking.ReservationID, p Place) error {
	_, err := tx.Exec(ctx, `
		insert into partner_conflict (reservation_id, room_id, occupied)
		select $1, id, room_occupied(turnover_minutes, false, $3, $4) from room where id = $2
		on conflict (reservation_id) do update set room_id = excluded.room_id, occupied = excluded.occupied`, id, p.Room, p.Start, p.End)
	return err
}

// EndConflict removes what BeginConflict has recorded, if anything.
func EndConflict(ctx context.Context, tx pgx.Tx, id booking.ReservationID) error {
	_, err := tx.Exec(ctx, `delete from partner_conflict where reservation_id = $1`, id)
	return err
}

// FreeParts returns the parts of a place that no reservation other than except occupies, margins included, in order of time. The caller holds
// the room's lock.
func FreeParts(ctx context.Context, tx pgx.Tx, p Place, margin time.Duration, except ...booking.ReservationID) ([]booking.Interval, error) {
	rows, err := tx.Query(ctx, `
		select lower(part), upper(part) from (
			select unnest(tstzmultirange(tstzrange($2, $3)) - coalesce(range_agg(tstzrange(lower(occupied) - $4::interval, upper(occupied))), '{}')) as part
			from reservation where room_id = $1 and not id = any($5) and occupied && tstzrange($2, $3::timestamptz + $4::interval) and `+liveStates+`) p
		order by part`, p.Room, p.Start, p.End, margin, append([]booking.ReservationID{}, except...))
	if err != nil {
		return nil, fmt.Errorf("free parts of room %d: %w", p.Room, err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (part booking.Interval, err error) {
		return part, row.Scan(&part.Start, &part.End)
	})
}

// Withhold keeps free parts of the time of a partner's booking, each no longer than a reservation, from being sold until they are over, and
// returns the ids of the holds. The caller holds the room's lock.
func Withhold(ctx context.Context, tx pgx.Tx, of booking.Reservation, partner string, room booking.RoomID, parts []booking.Interval) ([]booking.ReservationID, error) {
	start, end := make([]time.Time, len(parts)), make([]time.Time, len(parts))
	for i, part := range parts {
		start[i], end[i] = part.Start, part.End
	}
	rows, err := tx.Query(ctx, `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at, created_by, extends)
		select $1, $2, 'HOLD', 'PARTNER', start_at, end_at, tstzrange(start_at, end_at), end_at, $3, $4
		from unnest($5::timestamptz[], $6::timestamptz[]) as p (start_at, end_at) returning id`, of.Branch, room, partner, of.ID, start, end)
	if err != nil {
		return nil, fmt.Errorf("withhold the time of reservation %d: %w", of.ID, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[booking.ReservationID])
}
