package postgres

import (
	"context"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ReservationsDuring returns the reservations that occupy rooms of a branch within a span of time, by room and time. It
// includes expired holds; see booking.Reservation.Occupies.
func ReservationsDuring(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `
		where r.branch_id = $1 and `+overlaps("r", "$2", "$3")+`
		  and r.`+liveStates+` order by m.no, r.start_at`, branch, span.Start, span.End)
}

// ConflictsDuring returns the bookings of partners in conflict within a span of time, by room and time.
func ConflictsDuring(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `
		where r.branch_id = $1 and `+overlaps("r", "$2", "$3")+`
		  and r.state = 'CONFLICT' order by m.no, r.start_at`, branch, span.Start, span.End)
}

// StaysDuring returns the stays that occupy rooms of a branch within a span of time, by room and start. A confirmed extension is
// not listed, but its root is, which may have begun a month before. It includes expired holds; see booking.Reservation.Occupies.
func StaysDuring(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval) ([]booking.Reservation, error) {
	// root.state || '' keeps the planner from reading all confirmed reservations instead of looking up each root.
	return manyReservations(ctx, q, `
		where r.id in (
			select coalesce(root.id, x.id) from reservation x left join reservation root
			  on x.state = 'DONE' and root.id = x.extends and root.state || '' = 'DONE' and root.room_id = x.room_id
			 and coalesce(root.stay_end, root.end_at) >= x.end_at
			where x.branch_id = $1 and `+overlaps("x", "$2", "$3")+`
			  and x.`+liveStates+`)
		order by m.no, r.start_at`, branch, span.Start, span.End)
}

// CanceledDuring returns the cancelled reservations of a branch that started within a span of time, by room and time. A
// hold that ran out or was released before its payment is not among them.
func CanceledDuring(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `
		where r.branch_id = $1 and r.start_at < $3 and r.start_at >= $2 and r.state = 'CANCELED' and `+bought+`
		order by m.no, r.start_at, r.id`, branch, span.Start, span.End)
}

// Upcoming returns the live reservations of branches that have not ended, by start, without quarantines and withheld time.
func Upcoming(ctx context.Context, q Querier, now time.Time, branches ...booking.BranchID) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `
		where r.branch_id = any($1) and r.end_at > $2 and r.`+liveStates+` and (r.state <> 'HOLD' or r.expires_at > $2)
		  and r.quarantine_of is null and not `+withheld+`
		order by r.start_at, m.no`, branches, now)
}
