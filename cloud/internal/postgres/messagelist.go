package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// MessageByID returns a message, or booking.ErrNoMessage.
func MessageByID(ctx context.Context, q Querier, id int64) (booking.Message, error) {
	rows, err := q.Query(ctx, selectMessage+`where id = $1`, id)
	if err != nil {
		return booking.Message{}, err
	}
	m, err := pgx.CollectExactlyOneRow(rows, scanMessage)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, booking.ErrNoMessage
	}
	return m, err
}

// MessagesInState returns the latest messages of a branch in a state (empty means any) before an id (0 means the
// newest).
func MessagesInState(ctx context.Context, q Querier, branch booking.BranchID, state string, before int64, limit int) ([]booking.Message, error) {
	rows, err := q.Query(ctx, selectMessage+`where branch_id = $1 and ($2::bigint = 0 or id < $2) and ($4 = '' or state = $4) order by id desc limit $3`, branch, before, limit, state)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanMessage)
}
