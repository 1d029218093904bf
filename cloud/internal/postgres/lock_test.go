package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// A lock that waits for the move of a reservation to another room returns the moved reservation.
func TestLockWaitsForAMove(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := pgtest.New(t)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `insert into room (branch_id, no) select 1, n from generate_series(1, 2) n`)
	var id booking.ReservationID
	err := db.Pool.QueryRow(ctx, `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at)
		select 1, id, 'HOLD', 'CUSTOMER', '2036-12-01', '2036-12-01 01:00', tstzrange('2036-12-01', '2036-12-01 01:10'), '2036-12-01' from room where no = $1
		returning id`, 1).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	var locked booking.Reservation
	done := make(chan error, 1)
	err = db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if _, err := tx.Exec(ctx, `update reservation set room_id = (select id from room where no = 2) where id = $1`, id); err != nil {
			return err
		}
		go func() {
			done <- db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
				locked, err = postgres.LockReservation(ctx, tx, id)
				return err
			})
		}()
		return untilLocked(ctx, db)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || locked.RoomNo != 2 {
		t.Errorf("got room %d, %v, want room 2", locked.RoomNo, err)
	}
}

// untilLocked waits until a session waits for a lock.
func untilLocked(ctx context.Context, db *postgres.DB) error {
	for waiting := 0; waiting == 0; { // rows of another session: there is no event to wait for
		err := db.Pool.QueryRow(ctx, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = $1`, "Lock").Scan(&waiting)
		if err != nil {
			return err
		}
	}
	return nil
}

// The lock of a cash receipt that waits for a refund returns what is due after it.
func TestReceiptLockWaitsForARefund(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := pgtest.New(t)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `insert into room (branch_id, no) values (1, $1)`, 1)
	var id booking.ReservationID
	err := db.Pool.QueryRow(ctx, `
		with r as (insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, order_id, method, amount, paid_at)
		           select 1, id, 'DONE', 'CUSTOMER', '2036-12-01', '2036-12-01 01:00', tstzrange('2036-12-01', '2036-12-01 01:10'), 'order', '가상계좌', 1000, now() from room where no = $1
		           returning id),
		p as (insert into payment (reservation_id, payment_key, confirm_key, key_set, provider_status, total_amount, balance_amount) select id, 'key', 'confirm', 'widget', 'DONE', 1000, 1000 from r),
		c as (insert into cash_receipt (reservation_id, type, state, amount, standing, check_at) select id, 'personal', 'completed', 1000, 1000, now() from r)
		select id from r`, 1).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	var due int
	done := make(chan error, 1)
	err = db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if _, err := tx.Exec(ctx, `update payment set provider_status = 'PARTIAL_CANCELED', balance_amount = 400 where reservation_id = $1`, id); err != nil {
			return err
		}
		if woken, err := postgres.WakeReceipt(ctx, tx, id, now); err != nil || !woken {
			return errors.Join(err, errors.New("the receipt was not woken"))
		}
		go func() {
			done <- db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
				c, err := postgres.LockDueReceipt(ctx, tx, id, now.Add(time.Minute))
				due = c.Due
				return err
			})
		}()
		return untilLocked(ctx, db)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || due != 400 {
		t.Errorf("got %d won due, %v, want 400", due, err)
	}
}
