package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// GuestNote is a note of staff about a guest.
type GuestNote struct {
	ID     int64
	Branch string
	Text   string
	By     string
	At     time.Time
}

// GuestBlock is the reason why a phone number may not reserve. The zero block: it may.
type GuestBlock struct {
	Reason string
	By     string
	At     time.Time
}

// bought is the predicate of reservations r that were bought, registered or sold by a partner. Holds have no method of payment, and the
// stay of a partner's booking may have taken the place of an earlier one.
const bought = `(r.method is not null or r.source = 'PARTNER' and exists (select from partner_booking p where p.reservation_id = r.id))`

// StaysOfGuest returns the latest reservations of a phone number in branches; mobile is normalised.
func StaysOfGuest(ctx context.Context, q Querier, branches []string, mobile string, limit int) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `
		join branch b on b.id = r.branch_id
		where r.mobile_key = $2 and `+bought+` and ($1::text[] is null or b.code = any($1)) and r.state not in ('EXPIRED', 'RELEASED') and r.quarantine_of is null
		order by r.start_at desc limit $3`, branches, mobile, limit)
}

// GuestNotes returns the notes of branches about a guest, the latest first.
func GuestNotes(ctx context.Context, q Querier, branches []string, mobile string) ([]GuestNote, error) {
	rows, err := q.Query(ctx, `
		select n.id, b.code, n.text, n.created_by, n.created_at from guest_note n join branch b on b.id = n.branch_id
		where n.mobile_key = $2 and ($1::text[] is null or b.code = any($1)) order by n.created_at desc, n.id desc limit 100`, branches, mobile)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[GuestNote])
}

// AddGuestNote stores a note about a guest and returns its id.
func AddGuestNote(ctx context.Context, q Querier, branch booking.BranchID, mobile string, n GuestNote) (id int64, err error) {
	err = q.QueryRow(ctx, `insert into guest_note (mobile_key, branch_id, text, created_by, created_at) values ($1, $2, $3, $4, $5) returning id`,
		mobile, branch, n.Text, n.By, n.At).Scan(&id)
	return id, err
}

// RemoveGuestNote deletes a note of branches about a guest. It reports whether there was one.
func RemoveGuestNote(ctx context.Context, q Querier, branches []string, mobile string, id int64) (bool, error) {
	tag, err := q.Exec(ctx, `
		delete from guest_note n using branch b
		where n.id = $3 and n.mobile_key = $2 and b.id = n.branch_id and ($1::text[] is null or b.code = any($1))`, branches, mobile, id)
	return tag.RowsAffected() > 0, err
}

// BlockOfGuest returns the block of a phone number, or the zero block.
func BlockOfGuest(ctx context.Context, q Querier, mobile string) (b GuestBlock, err error) {
	err = q.QueryRow(ctx, `select reason, created_by, created_at from guest_block where mobile_key = $1`, mobile).Scan(&b.Reason, &b.By, &b.At)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return b, err
}

// BlockGuest blocks a phone number, or changes the reason of its block.
func BlockGuest(ctx context.Context, q Querier, mobile string, b GuestBlock) error {
	_, err := q.Exec(ctx, `
		insert into guest_block (mobile_key, reason, created_by, created_at) values ($1, $2, $3, $4)
		on conflict (mobile_key) do update set reason = excluded.reason, created_by = excluded.created_by, created_at = excluded.created_at`,
		mobile, b.Reason, b.By, b.At)
	return err
}

// UnblockGuest ends the block of a phone number, if there is one.
func UnblockGuest(ctx context.Context, q Querier, mobile string) error {
	_, err := q.Exec(ctx, `delete from guest_block where mobile_key = $1`, mobile)
	return err
}
