package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// WantBlocks asks for the reservation's time to be blocked at every partner channel that offers its room, except the
// one it came from. It returns the new blocks.
func WantBlocks(ctx context.Context, tx pgx.Tx, r booking.Reservation) ([]int64, error) {
	rows, err := tx.Query(ctx, `
		insert into channel_block (reservation_id, listing_id, state, start_at, end_at)
		select $1, l.id, 'WANTED', $3, $4 from channel_listing l
		where l.room_id = $2 and l.enabled and l.channel <> 'manual' and ($5 = '' or l.partner <> $5)
		returning id`, r.ID, r.Room, r.Start, r.End, r.CreatedBy)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// UnwantBlocks asks for the blocks of a reservation to be taken away. It returns those to be worked on.
func UnwantBlocks(ctx context.Context, tx pgx.Tx, id booking.ReservationID) ([]int64, error) {
	rows, err := tx.Query(ctx, `
		update channel_block set state = 'UNWANTED', attempt = 0, next_at = clock_timestamp()
		where reservation_id = $1 and state in ('WANTED', 'PLACED') returning id`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
