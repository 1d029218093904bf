package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Visit holds the times at which the guests of a reservation entered and left, as far as the doors have shown it.
type Visit struct {
	EnteredAt time.Time
	ByKey     string     // owner, staff, or the label of a companion; pin or code: at the keypad; empty: not known
	LeftAt    *time.Time // nil: not known
}

// stayTail is how long after the end of a stay an opening of the door counts as its guests leaving: the margin.
const stayTail = booking.Margin

// VisitOf returns the visit of a reservation, or nil if no guest is known to have entered. EnteredAt is the first press or
// entry at the keypad that opened the door of the room. LeftAt is known after the stay, if the door has a contact: the last
// closing after an opening that no press explains, so from the inside. It concerns the room in which the stay ended.
func VisitOf(ctx context.Context, q Querier, id booking.ReservationID, now time.Time) (*Visit, error) {
	var (
		stay   Visit
		label  *string
		branch booking.BranchID
		device string
		end    time.Time
		here   *time.Time // the first entry into the room in which the stay ended
	)
	err := q.QueryRow(ctx, `
		select e.at, e.by, r.branch_id, 'room_' || m.no, least(`+stayEnd+`, r.canceled_at), min(e.at) filter (where e.device = 'room_' || m.no) over ()
		from reservation r join room m on m.id = r.room_id join lateral (
			select d.finished_at as at, coalesce(nullif(k.label, ''), k.kind) as by, d.device
			from door_request d left join access_key k on k.hash = d.key_hash
			where d.reservation_id = r.id and d.kind = 'room' and d.state = 'SUCCESS'
			union all
			select p.at, p.source, p.device from pass_entry p
			where p.reservation_id = r.id and p.device like 'room%' and p.outcome = 'opened'
		) e on true
		where r.id = $1 order by e.at limit 1`, id).Scan(&stay.EnteredAt, &label, &branch, &device, &end, &here)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("stay of %d: %w", id, err)
	}
	stay.ByKey = value(label)
	if now.Before(end) || here == nil {
		return &stay, nil
	}
	err = q.QueryRow(ctx, `
		select min(c.at) from door_event c where c.branch_id = $1 and c.device = $2 and c.kind = 'door-closed' and c.at >= (
			select max(o.at) from door_event o
			where o.branch_id = $1 and o.device = $2 and o.kind = 'door-opened' and o.at > $3 and o.at <= $4
			  and not exists (select from door_event e where e.branch_id = $1 and e.device = $2 and e.at between o.at - $5::interval and o.at
			                  and e.kind in ('energized', 'released', 'lock-released')))
		  and c.at <= $4`, branch, device, here, end.Add(stayTail), passWindow).Scan(&stay.LeftAt)
	if err != nil {
		return nil, fmt.Errorf("end of stay %d: %w", id, err)
	}
	return &stay, nil
}

// HasOpened reports whether any door is known to have opened for a reservation.
func HasOpened(ctx context.Context, q Querier, id booking.ReservationID) (opened bool, err error) {
	err = q.QueryRow(ctx, `
		select exists (select from door_request where reservation_id = $1 and state = 'SUCCESS')
		    or exists (select from pass_entry where reservation_id = $1 and outcome = 'opened')`, id).Scan(&opened)
	return opened, err
}
