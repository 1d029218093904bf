package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// StuckDoor is a confirmed reservation whose guest could not enter: the agent reported a failure of a door, and nothing after
// it shows an entry.
type StuckDoor struct {
	Reservation booking.ReservationID
	Room        booking.RoomID
	Since       time.Time // the first such failure, or the start of the stay if that is later
}

// stuckSpan is how far back failures are looked for: a stay lasts at most five hours.
const stuckSpan = 8 * time.Hour

// enteredAfter is the predicate that something after the failed request d shows that the guest of the reservation r has entered:
// any later opening of the same door, and any later entry into the room, by key, at a keypad or by staff, who let the guest in. A request or
// an attempt at a keypad whose outcome is unknown may have opened the door, so it counts as one. A press for the front drives all front doors and
// fails if one of them does: if the room has no lock, nothing later shows that the guest has entered through another one, so its opening counts.
const enteredAfter = `(exists (
		select from door_request s where s.reservation_id = r.id and s.state in ('SUCCESS', 'UNKNOWN') and s.created_at > d.created_at
		   and (s.device = d.device or s.kind = 'room'))
	or exists (
		select from door_request s where s.branch_id = r.branch_id and s.reservation_id is null and s.state in ('SUCCESS', 'UNKNOWN') and s.created_at > d.created_at
		   and (s.device = d.device or s.device = 'room_' || (select m.no from room m where m.id = r.room_id)))
	or d.kind = 'front' and exists (select from room m where m.id = r.room_id and m.lock = 'none') and exists (
		select from door_request s where s.branch_id = r.branch_id and s.kind = 'front' and s.created_at >= d.created_at
		   and (s.reservation_id = r.id or s.reservation_id is null)
		   and jsonb_path_exists(s.outcomes, '$.* ? (@.outcome == "opened" || @.outcome == "unknown")'))
	or exists (
		select from door_event e where e.branch_id = r.branch_id and e.kind = 'door-opened' and e.at > d.created_at
		   and (e.device = d.device or e.device = 'room_' || (select m.no from room m where m.id = r.room_id)
		        or d.kind = 'front' and e.device like 'front%'))
	or exists (
		select from pass_entry p where p.reservation_id = r.id and p.at > d.created_at and p.outcome in ('opened', 'unknown')
		   and (p.device = d.device or p.device like 'room%' or d.kind = 'front' and p.device like 'front%')))`

// StuckDoors returns the stuck reservations of branches that compensate for which a step of the compensation is due: the first one, or the
// return of everything, once the door has failed for fullAfterMinutes within the stay. id is 0 for all.
//
//   - A request without an answer of the agent is not a failure: the guest had a code or a PIN.
//   - Failures before the window of the key do not count: they are from before a move.
//   - While the agent is offline, nothing is due: whether its guests have entered is known once it has reported its journal.
//   - A step that waits for another refund remains due.
func StuckDoors(ctx context.Context, q Querier, id booking.ReservationID, now time.Time) ([]StuckDoor, error) {
	rows, err := q.Query(ctx, `
		with stuck as (
			select r.id, r.room_id, greatest(min(d.created_at), r.start_at) as since, least($3, `+stayEnd+`) as until,
			       coalesce((b.compensation ->> 'afterMinutes')::int, 0) as part, coalesce((b.compensation ->> 'fullAfterMinutes')::int, 0) as whole
			from branch b
			join door_request d on d.branch_id = b.id and d.created_at > $2 and d.created_at <= $3
			join reservation r on r.id = d.reservation_id
			where b.compensation is not null and ($1::bigint = 0 or r.id = $1) and r.state = 'DONE'
			  and d.created_at >= r.start_at - `+unlockLead+` - interval '5 seconds' -- the clock of a replica differs a little from that of the database
			  and d.state = 'FAILED' and jsonb_path_exists(d.outcomes, '$.* ? (@.outcome == "failed")')
			  and not exists (select from agent_inventory i where i.branch_id = b.id and not (`+reported("$3")+`))
			  and not `+enteredAfter+`
			group by r.id, b.id)
		select s.id, s.room_id, s.since from stuck s left join compensation c on c.reservation_id = s.id
		where case when c.reservation_id is null then s.since + make_interval(mins => s.part) <= $3
		           else s.whole > s.part and s.since + make_interval(mins => s.whole) <= s.until and c.reason <> all($4) end
		union all
		select r.id, r.room_id, c.since from compensation c join reservation r on r.id = c.reservation_id
		where c.reason = '`+CompensationOwed+`' and ($1::bigint = 0 or r.id = $1) and r.state = 'DONE'
		  and c.since >= r.start_at - `+unlockLead+` - interval '5 seconds'
		order by 1 limit 200`, id, now.Add(-stuckSpan), now, []string{CompensationLimit, CompensatedWhole, CompensationOwed})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[StuckDoor])
}

// The reasons with which a compensation is final, and that of one that is not: everything is refunded when another refund has ended.
const (
	CompensationLimit = "limit per phone"
	CompensatedWhole  = "everything is refunded"
	CompensationOwed  = "everything is owed"
)

// Compensated is what a guest got for a door that did not open.
type Compensated struct {
	Kind    string // extended, refunded, none
	Since   time.Time
	At      time.Time
	Minutes int
	Amount  int
	Refund  int64
	Reason  string // why there is none, or why it is final
}

// PutCompensation stores the compensation of a reservation. It replaces that of the first step.
func PutCompensation(ctx context.Context, tx pgx.Tx, r booking.Reservation, c Compensated) error {
	_, err := tx.Exec(ctx, `
		insert into compensation (reservation_id, branch_id, mobile_key, since, at, kind, minutes, amount, refund_id, reason)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		on conflict (reservation_id) do update set since = excluded.since, at = excluded.at, kind = excluded.kind, minutes = excluded.minutes,
			amount = excluded.amount, refund_id = excluded.refund_id, reason = excluded.reason`,
		r.ID, r.Branch, null(booking.NormalizePhone(r.Mobile)), c.Since, c.At, c.Kind, c.Minutes, c.Amount, null(c.Refund), c.Reason)
	return err
}

// ErrNoCompensation is returned if a reservation has no compensation.
var ErrNoCompensation = errors.New("postgres: no compensation")

// CompensationOf returns the compensation of a reservation, or ErrNoCompensation.
func CompensationOf(ctx context.Context, q Querier, id booking.ReservationID) (c Compensated, err error) {
	err = q.QueryRow(ctx, `select kind, since, at, minutes, amount, coalesce(refund_id, 0), reason from compensation where reservation_id = $1`, id).
		Scan(&c.Kind, &c.Since, &c.At, &c.Minutes, &c.Amount, &c.Refund, &c.Reason)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoCompensation
	}
	return c, err
}

// CountCompensations counts what a phone number got since a time, under a lock that two transactions of the number share.
func CountCompensations(ctx context.Context, tx pgx.Tx, mobile string, since time.Time) (n int, err error) {
	key := booking.NormalizePhone(mobile)
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('compensation ' || $1, 0))`, key); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `select count(*) from compensation where mobile_key = $1 and at >= $2 and kind <> 'none'`, key, since).Scan(&n)
	return n, err
}
