package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// CountReturned adds won to the sum of the refunds that keep the stay. A sum above the payment violates payment_refunds_within_paid.
func CountReturned(ctx context.Context, tx pgx.Tx, id booking.ReservationID, won int) error {
	_, err := tx.Exec(ctx, `update payment set returned = returned + $2 where reservation_id = $1`, id, won)
	return err
}

// SetRetained stores the won that the refund policy leaves with the shop.
func SetRetained(ctx context.Context, tx pgx.Tx, id booking.ReservationID, won int) error {
	_, err := tx.Exec(ctx, `update payment set retained = $2 where reservation_id = $1`, id, won)
	return err
}

// RefundRequest is the recorded answer to a request for a refund with an Idempotency-Key.
type RefundRequest struct {
	Reservation booking.ReservationID
	Key         string
	BodyHash    []byte
	Refund      int64
	Amount      int
	Balance     int
}

// RefundRequestOf returns the recorded request with a key, or ErrNoRefund.
func RefundRequestOf(ctx context.Context, q Querier, id booking.ReservationID, key string) (RefundRequest, error) {
	r := RefundRequest{Reservation: id, Key: key}
	err := q.QueryRow(ctx, `select body_hash, refund_id, amount, balance from refund_request where reservation_id = $1 and key = $2`, id, key).
		Scan(&r.BodyHash, &r.Refund, &r.Amount, &r.Balance)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoRefund
	}
	return r, err
}

// NoteRefundRequest records a request with an Idempotency-Key and its answer.
func NoteRefundRequest(ctx context.Context, tx pgx.Tx, r RefundRequest) error {
	_, err := tx.Exec(ctx, `insert into refund_request (reservation_id, key, body_hash, refund_id, amount, balance) values ($1, $2, $3, $4, $5, $6)`,
		r.Reservation, r.Key, r.BodyHash, r.Refund, r.Amount, r.Balance)
	return err
}

// RefundPolicyOf returns the refund policy that was fixed for a reservation when it was paid; nil is the default.
func RefundPolicyOf(ctx context.Context, q Querier, id booking.ReservationID) (booking.RefundPolicy, error) {
	var stored []byte
	if err := q.QueryRow(ctx, `select refund_policy from reservation where id = $1`, id).Scan(&stored); err != nil {
		return nil, err
	}
	return booking.ParseRefundPolicy(stored)
}
