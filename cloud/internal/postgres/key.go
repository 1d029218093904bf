package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ReservationByKey returns the confirmed reservation that a doorlockKey belongs to, or ErrNoReservation.
func ReservationByKey(ctx context.Context, q Querier, key uuid.UUID) (booking.Reservation, error) {
	return oneReservation(ctx, q, `where r.doorlock_key = $1 and r.state = 'DONE'`, key)
}
