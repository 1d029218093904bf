package postgres

import (
	"context"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ReservationsDuring returns the reservations that keep rooms of a branch busy within a span of time, by room and time.
// Holds that have run out are among them: booking.Reservation.Occupies tells.
func ReservationsDuring(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `
		where r.branch_id = $1 and r.start_at < $3 and r.end_at > $2 and r.start_at > $2::timestamptz - interval '5 hours'
		  and r.`+liveStates+` order by m.no, r.start_at`, branch, span.Start, span.End)
}
