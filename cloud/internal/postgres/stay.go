package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// lockAnchored locks the row of a reservation after those that it extends or replaces, which have lower ids, in one round trip.
// Every transaction uses this order, so two that begin at different rows of a stay wait instead of deadlocking. The row is read
// by a statement of its own: one that waits for a move would join the new row with the old room and find nothing. column is
// unique.
func lockAnchored(ctx context.Context, tx pgx.Tx, column string, value any) (r booking.Reservation, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`
		select a.id from reservation r, reservation a
		where r.`+column+` = $1 and a.id in (r.extends, r.replaces, r.id) order by a.id for no key update of a`, value)
	batch.Queue(selectReservation+`where r.`+column+` = $1`, value).Query(func(rows pgx.Rows) error {
		r, err = pgx.CollectExactlyOneRow(rows, scanReservation)
		if errors.Is(err, pgx.ErrNoRows) {
			err = ErrNoReservation
		}
		return err
	})
	return r, tx.SendBatch(ctx, batch).Close()
}

// LockExtensions returns the live extensions of a stay in order of time, and locks their rows until the transaction ends.
// The caller holds the lock of the root.
func LockExtensions(ctx context.Context, tx pgx.Tx, root booking.ReservationID) ([]booking.Reservation, error) {
	return manyReservations(ctx, tx, `
		where r.extends = $1 and r.`+liveStates+` order by r.start_at for no key update of r`, root)
}

// ExtensionsAfter returns the confirmed extensions of a stay that begin after one of its reservations.
func ExtensionsAfter(ctx context.Context, q Querier, r booking.Reservation) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `
		where r.extends = $1 and r.state = 'DONE' and r.start_at >= $2 order by r.start_at`, cmp.Or(r.Extends, r.ID), r.End)
}

// ConfirmedExtensions returns the confirmed extensions of stays, by the stays' first reservations.
func ConfirmedExtensions(ctx context.Context, q Querier, roots []booking.ReservationID) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `where r.extends = any($1) and r.state = 'DONE' order by r.start_at`, roots)
}

// ExtendedByDeposit reports whether a confirmed extension of a stay was paid by virtual account.
func ExtendedByDeposit(ctx context.Context, q Querier, root booking.ReservationID) (is bool, err error) {
	err = q.QueryRow(ctx, `
		select exists (select from reservation where extends = $1 and state = 'DONE' and method = $2)`, root, booking.VirtualAccount).Scan(&is)
	return is, err
}

// NextOccupied returns when another reservation begins to occupy a room after a time, or the zero time. It ignores expired
// holds and the unpaid hold of an extension of root.
func NextOccupied(ctx context.Context, q Querier, room booking.RoomID, after time.Time, root booking.ReservationID, now time.Time) (time.Time, error) {
	var next *time.Time
	err := q.QueryRow(ctx, `
		select min(lower(occupied)) from reservation
		where room_id = $1 and occupied && tstzrange($2, null) and `+liveStates+`
		  and not (state = 'HOLD' and (expires_at <= $4 or extends is not distinct from $3))`,
		room, after, root, now).Scan(&next)
	return value(next), err
}

// MoveStay changes the room and the times of the reservations of a stay, the root first. The caller holds the locks of both
// rooms and of the reservations, and gives the stay a pass for its new time. An exclusion violation means that the target is
// occupied.
func MoveStay(ctx context.Context, tx pgx.Tx, stay []booking.Reservation, room booking.Room, to []booking.Interval, by, reason string) error {
	ids := make([]booking.ReservationID, len(stay))
	start, end := make([]time.Time, len(stay)), make([]time.Time, len(stay))
	batch := &pgx.Batch{}
	for i, r := range stay {
		ids[i], start[i], end[i] = r.ID, to[i].Start, to[i].End
		if i > 0 && r.Room == room.ID && r.Interval.Equal(to[i]) {
			continue // an extension that stays where it is
		}
		batch.Queue(`
			insert into reservation_move (reservation_id, moved_by, reason, from_room, from_start, from_end, to_room, to_start, to_end)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			r.ID, by, null(reason), r.RoomNo, r.Start, r.End, room.No, to[i].Start, to[i].End)
	}
	if len(stay) > 1 {
		// Each row is placed without meeting the others at their old times. Until the transaction commits, others wait for those.
		batch.Queue(`update reservation set occupied = 'empty' where id = any($1)`, ids)
	}
	batch.Queue(`
		update reservation r set room_id = $2, start_at = p.start_at, end_at = p.end_at, stay_end = null,
		       occupied = tstzrange(p.start_at, p.end_at) -- the trigger adds the margin
		from unnest($1::bigint[], $3::timestamptz[], $4::timestamptz[]) as p (id, start_at, end_at)
		where r.id = p.id`, ids, room.ID, start, end)
	return tx.SendBatch(ctx, batch).Close()
}

// EndedByGuest reports whether the guest moved the end of a stay forward to a time, with that reason.
func EndedByGuest(ctx context.Context, q Querier, root booking.ReservationID, end time.Time, reason string) (ended bool, err error) {
	err = q.QueryRow(ctx, `
		select exists (select from reservation_move v
		    where v.reservation_id in (select $1::bigint union all select id from reservation where extends = $1)
		      and v.moved_by = 'customer' and v.reason = $3 and v.to_end = $2 and v.from_end > $2)`, root, end, reason).Scan(&ended)
	return ended, err
}

// Vacate makes reservations of a stay occupy nothing. The caller ends them in the same transaction.
func Vacate(ctx context.Context, tx pgx.Tx, ids ...booking.ReservationID) error {
	_, err := tx.Exec(ctx, `update reservation set occupied = 'empty' where id = any($1)`, ids)
	return err
}

// unpaidExchange is the predicate of a column state that an exchange may still be paid.
const unpaidExchange = `state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT')`

// replacedBy selects the stays that the guest has exchanged, one after the other, for reservation $1, and their extensions.
const replacedBy = `
	with recursive earlier (id) as (
	    select replaces from reservation where id = $1
	    union select r.replaces from reservation r join earlier e on r.id = e.id)
	select id from earlier union select r.id from reservation r join earlier e on r.extends = e.id`

// LockReplaced returns the stays that the guest has exchanged for a reservation, without their extensions, and locks their rows.
func LockReplaced(ctx context.Context, tx pgx.Tx, id booking.ReservationID) ([]booking.Reservation, error) {
	return manyReservations(ctx, tx, `
		where r.id = any(array(`+replacedBy+`)) and r.extends is null order by r.id for no key update of r`, id)
}

// LockExchanges returns the unpaid reservations that are to replace a reservation, and locks their rows. The caller holds the
// lock of the reservation.
func LockExchanges(ctx context.Context, tx pgx.Tx, replaced booking.ReservationID) ([]booking.Reservation, error) {
	return manyReservations(ctx, tx, `
		where r.replaces = $1 and r.`+unpaidExchange+` order by r.id for no key update of r`, replaced)
}

// Exchanged reports whether an exchange other than r was confirmed that replaces r, or the reservation that r replaces.
func Exchanged(ctx context.Context, q Querier, r booking.Reservation) (exchanged bool, err error) {
	err = q.QueryRow(ctx, `select exists (select from reservation where replaces in ($1, $2) and id <> $1 and paid_at is not null)`,
		r.ID, null(r.Replaces)).Scan(&exchanged)
	return exchanged, err
}

// Doubted reports whether a confirmed extension of the same stay that ends before extension r begins is blocked.
func Doubted(ctx context.Context, q Querier, r booking.Reservation) (doubted bool, err error) {
	err = q.QueryRow(ctx, `
		select exists (select from reservation where extends = $1 and state = 'DONE' and keys_blocked and end_at <= $2)`, r.Extends, r.Start).Scan(&doubted)
	return doubted, err
}

// SetReplacedAccount stores the sealed account to which the refund of a replaced reservation goes.
func SetReplacedAccount(ctx context.Context, tx pgx.Tx, id booking.ReservationID, account []byte) error {
	_, err := tx.Exec(ctx, `update reservation set replaced_account = $2 where id = $1`, id, account)
	return err
}

// TakeReplacedAccount returns the account of SetReplacedAccount and deletes it; nil if there is none.
func TakeReplacedAccount(ctx context.Context, tx pgx.Tx, id booking.ReservationID) (account []byte, err error) {
	err = tx.QueryRow(ctx, `select replaced_account from reservation where id = $1`, id).Scan(&account)
	if err != nil || account == nil {
		return nil, err
	}
	return account, SetReplacedAccount(ctx, tx, id, nil)
}
