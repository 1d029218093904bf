package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// PutRefundLink stores the hash of a link's token. Earlier links of the refund become invalid.
func PutRefundLink(ctx context.Context, tx pgx.Tx, refund int64, hash []byte, now, expires time.Time) error {
	_, err := tx.Exec(ctx, `update refund_link set used_at = $2 where refund_id = $1 and used_at is null`, refund, now)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into refund_link (token_hash, refund_id, created_at, expires_at) values ($1, $2, $3, $4)`, hash, refund, now, expires)
	return err
}

// RefundLink is a valid link of a refund that waits for an account.
type RefundLink struct {
	Refund      int64
	Reservation booking.ReservationID
	Amount      int
	ExpiresAt   time.Time
}

// RefundLinkOf returns the link with a token's hash, or ErrNoRefund if it is used, expired or no longer needed.
func RefundLinkOf(ctx context.Context, q Querier, hash []byte, now time.Time) (l RefundLink, err error) {
	err = q.QueryRow(ctx, `
		select f.id, f.reservation_id, f.amount, k.expires_at from refund_link k join refund f on f.id = k.refund_id
		where k.token_hash = $1 and k.used_at is null and k.expires_at > $2 and f.state = 'FAILED' and f.account_by is null`, hash, now).
		Scan(&l.Refund, &l.Reservation, &l.Amount, &l.ExpiresAt)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoRefund
	}
	return l, err
}

// OpenRefundLinks returns the refunds of a reservation, of its extensions and of the stays that it has replaced, that wait for the account of
// the guest at a link.
func OpenRefundLinks(ctx context.Context, q Querier, id booking.ReservationID) ([]RefundLink, error) {
	rows, err := q.Query(ctx, `
		select f.id, f.reservation_id, f.amount, max(k.expires_at) from refund_link k join refund f on f.id = k.refund_id
		join reservation r on r.id = f.reservation_id
		where (r.id = $1 or r.extends = $1 or r.id = any(array(`+replacedBy+`))) and k.used_at is null and f.state = 'FAILED' and f.account_by is null group by f.id order by f.id`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[RefundLink])
}

// UseRefundLink marks a link as used.
func UseRefundLink(ctx context.Context, tx pgx.Tx, hash []byte, now time.Time) error {
	_, err := tx.Exec(ctx, `update refund_link set used_at = $2 where token_hash = $1`, hash, now)
	return err
}
