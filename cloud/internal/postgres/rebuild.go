package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// rebuilding is the SQLSTATE of a write that takes time of a room while a rebuild is open.
const rebuilding = "YR001"

// sequenceJump exceeds the identifiers that a service gives out between two backups.
const sequenceJump = 1_000_000

// BeginRebuild records that reservations are missing because a backup was restored: until EndRebuild no time of a room can be
// taken. Identifiers jump, because those after the backup are in receipts and messages already. It does nothing if a rebuild
// is open.
func BeginRebuild(ctx context.Context, tx pgx.Tx) error {
	tag, err := tx.Exec(ctx, `insert into rebuild default values on conflict do nothing`)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	// The place of an event is also its id, and that of its webhook deliveries.
	if _, err = tx.Exec(ctx, `update event_head set place = place + $1`, sequenceJump); err != nil {
		return err
	}
	// Agents may have a later list of brokers than the backup, and take none with a lower epoch.
	if _, err = tx.Exec(ctx, `
		insert into broker_list (epoch, brokers) select epoch + $1, brokers from broker_list order by epoch desc limit 1`, sequenceJump); err != nil {
		return err
	}
	// Likewise lists of passes: one that the backup does not know must not count as one of the same number.
	if _, err = tx.Exec(ctx, `update pass_agent set epoch = epoch + $1, version = 0, content = null, code_version = 0`, sequenceJump); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `select skip_identifiers($1)`, sequenceJump)
	return err
}

// RebuildOpen reports whether a rebuild has begun and not ended.
func RebuildOpen(ctx context.Context, q Querier) (open bool, err error) {
	err = q.QueryRow(ctx, `select exists (select from rebuild where ended_at is null)`).Scan(&open)
	return open, err
}

// RebuildBegun returns when the open rebuild began; zero: none is open.
func RebuildBegun(ctx context.Context, q Querier) (begun time.Time, err error) {
	err = q.QueryRow(ctx, `select begun_at from rebuild where ended_at is null`).Scan(&begun)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return begun, err
}

// EndRebuild ends an open rebuild.
func EndRebuild(ctx context.Context, q Querier, now time.Time) error {
	_, err := q.Exec(ctx, `update rebuild set ended_at = $1 where ended_at is null`, now)
	return err
}

// LostReservation is a reservation that the provider's payment proves and the database lacks.
type LostReservation struct {
	NewHold
	booking.Contact
	OrderID     string
	LegalEntity string // code; empty: that of the settings
	Amount      int    // won
}

// InsertLost inserts a lost reservation as a hold, or as an expired one if its time is taken, also while a rebuild is open: then it ends the
// holds and quarantines of its time that the backup has, because the time could not have been sold before they ended. It returns
// booking.ErrNoReservation if the room does not exist.
func InsertLost(ctx context.Context, tx pgx.Tx, l LostReservation, now time.Time) (booking.Reservation, error) {
	if _, err := tx.Exec(ctx, `select set_config('yeolda.rebuilding', 'on', true)`); err != nil {
		return booking.Reservation{}, err
	}
	_, err := tx.Exec(ctx, `
		update reservation q set state = 'RELEASED' from room m
		where m.id = $1 and q.room_id = m.id and q.state = 'HOLD' and q.occupied && room_occupied(m.turnover_minutes, false, $2, $3)
		  and exists (select from rebuild where ended_at is null)`, l.Room, l.Start, l.End)
	if err != nil {
		return booking.Reservation{}, err
	}
	if l.Extends, err = stayBefore(ctx, tx, l); err != nil {
		return booking.Reservation{}, err
	}
	id, err := InsertHold(ctx, tx, l.NewHold, now)
	if err == nil && id == 0 {
		err = tx.QueryRow(ctx, `
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at, created_by)
			select branch_id, id, 'EXPIRED', $2, $3, $4, tstzrange($3, $4), $5, $6 from room where id = $1 returning id`,
			l.Room, l.Source, l.Start, l.End, now, null(l.By)).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			err = booking.ErrNoReservation
		}
	}
	if err != nil {
		return booking.Reservation{}, err
	}
	_, err = tx.Exec(ctx, `
		update reservation set name = $2, mobile = $3, mobile_key = $4, language = $5, order_id = $6, amount = $7, legal_entity = $8 where id = $1`,
		id, null(l.Name), null(l.Mobile), null(booking.NormalizePhone(l.Mobile)), l.Language, l.OrderID, l.Amount, null(l.LegalEntity))
	if err != nil {
		return booking.Reservation{}, err
	}
	_, err = tx.Exec(ctx, `
		insert into orders (order_id, purchase_id, reservation_id, amount, created_at) values ($1, $2, $2, $3, $4)
		on conflict (order_id) do update set reservation_id = excluded.reservation_id`, l.OrderID, id, l.Amount, now)
	if err != nil {
		return booking.Reservation{}, err
	}
	return LockReservation(ctx, tx, id)
}

// stayBefore returns the stay of the same guest that ends where a lost reservation begins, without a margin: it is extended. 0: none.
func stayBefore(ctx context.Context, tx pgx.Tx, l LostReservation) (id booking.ReservationID, err error) {
	err = tx.QueryRow(ctx, `
		select id from reservation where room_id = $1 and coalesce(stay_end, end_at) = $2 and mobile_key = $3 and state = 'DONE' and source <> 'PARTNER' and extends is null`,
		l.Room, l.Start, null(booking.NormalizePhone(l.Mobile))).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return id, err
}
