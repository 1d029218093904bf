package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// KeyFacts is what decides whether a key opens a door now. Without a reservation, the key is unknown.
type KeyFacts struct {
	Reservation booking.ReservationID
	Branch      string // code
	State       booking.State
	RoomNo      int
	booking.Interval
	ExpiresAt  time.Time // when a hold ends, or when a deposit is due
	CanceledAt time.Time
	Refunded   bool // the money of a cancelled reservation is back

	Kind      booking.KeyKind // empty: the reservation never had a key
	RevokedAs string
	RevokedAt time.Time

	// Opens is the condition of a press and of a claim: the key and its reservation open doors at this time.
	Opens   bool
	Blocked bool // the provider is asked whether the money is lost

	MovedAt time.Time // of the move of the start away from a time that would contain now; zero: none
	Failed  time.Time // of the latest press for the door if it failed and no keypad has opened the door since; zero: otherwise
	Keypad  string    // of the door: agent, standalone, none
	HasPass bool      // a PIN of the reservation is valid

	// LockedAt and LockedUntil are when a keypad of the door was locked and until when it ignores entries; zero: it does not.
	LockedAt, LockedUntil time.Time
}

// lockOut selects, as a row (since, until), the lock-out that the journal of an agent shows for a keypad, the subject of an alert a
// of the branch b: the first five wrong attempts lock it for a minute, each further five for twice as long (docs/specification.md,
// Keypads 6). now is an expression.
func lockOut(now string) string {
	return `(select max(e.at) as since, max(e.at) + least(interval '1 minute' * power(2, least(count(*), 5) - 1), interval '15 minutes') as until
		from pass_entry e where e.branch_id = b.id and e.device = a.subject and e.reason = 'locked-out' and e.at > ` + now + ` - interval '1 day'
		  and not exists (select from pass_entry o where o.branch_id = b.id and o.device = a.subject and o.outcome <> 'refused' and o.at > e.at))`
}

// LockedOut reports whether the journal of a branch's agent shows that a keypad is locked now.
func LockedOut(ctx context.Context, q Querier, branch, device string, now time.Time) (locked bool, err error) {
	err = q.QueryRow(ctx, `
		select coalesce(l.until > $3, false) from branch b, (select $2::text as subject) a, lateral `+lockOut("$3::timestamptz")+` l
		where b.code = $1`, branch, device, now).Scan(&locked)
	return locked, err
}

// keyFacts selects the facts of a key k and its reservation r. $2 is the kind of door, $3 the time plus the lead of the
// unlock window, $4 the age after which a failed press does not count, $5 that lead.
var keyFacts = `
	select coalesce(r.id, 0), coalesce(b.code, ''), coalesce(r.state, ''), coalesce(m.no, 0), r.start_at, ` + stayEnd + `, r.expires_at, r.canceled_at,
	       (exists (select from refund f where f.reservation_id = r.id and f.amount > 0 and f.state = 'COMPLETED')
	         or exists (select from money_entry e where e.reservation_id = r.id and e.kind = 'refunded')) -- in the provider's dashboard
	         and not exists (select from refund f where f.reservation_id = r.id and f.state not in ('COMPLETED', 'REFUSED')),
	       coalesce(k.kind, ''), coalesce(k.revoked_as, ''), k.revoked_at,
	       coalesce(k.id is not null and ` + opens + ` and r.start_at <= $3 and $3 < ` + stayEnd + `, false), coalesce(r.keys_blocked, false),
	       (select max(v.at) from reservation_move v where v.reservation_id = r.id and v.from_start <= $3 and $3 < v.from_end
	          and v.from_start <> v.to_start), -- not the end of a stay that became earlier
	       (select case when d.state in ('FAILED', 'UNKNOWN') and d.detail is distinct from '` + Offline + `' and not exists (
	            select from pass_entry p where p.reservation_id = r.id and p.at > d.created_at and p.outcome = 'opened' and p.device like $2 || '%')
	          then d.created_at end
	        from door_request d where d.reservation_id = r.id and d.kind = $2 and d.created_at > clock_timestamp() - $4::interval
	        order by d.created_at desc limit 1),
	       locked.since, locked.until,
	       coalesce(b.keypads ->> case $2 when 'front' then b.front_doors[1] else 'room_' || m.no end, 'standalone'),
	       exists (select from pass p where p.reservation_id = r.id and p.ended_at is null)
	from `

var keyFactsOf = ` left join room m on m.id = r.room_id left join branch b on b.id = r.branch_id
	left join lateral (select l.since, l.until from alert a, lateral ` + lockOut("$3::timestamptz") + ` l
		where a.kind = 'reader-lockout' and a.branch = b.code and a.ended_at is null and l.until > $3::timestamptz - $5::interval
		  and a.subject = any (case $2 when 'front' then b.front_doors || 'front'::text else array['room_' || m.no] end)
		order by l.until desc limit 1) locked on true`

// WhyKey returns the facts of a key, live or not. An unknown key has none, and takes the same statement.
func WhyKey(ctx context.Context, q Querier, key uuid.UUID, kind string, now time.Time, recent time.Duration) (KeyFacts, error) {
	return oneKeyFacts(ctx, q, keyFacts+`(select $1::bytea as hash) asked left join access_key k on k.hash = asked.hash
		left join reservation r on r.id = k.reservation_id`+keyFactsOf, HashKey(key), kind, now.Add(booking.UnlockLead), recent, booking.UnlockLead)
}

// WhyReservation returns the facts of the owner's key of a reservation, or ErrNoReservation. An extension opens doors with the key of its stay.
func WhyReservation(ctx context.Context, q Querier, id booking.ReservationID, kind string, now time.Time, recent time.Duration) (KeyFacts, error) {
	return oneKeyFacts(ctx, q, keyFacts+`reservation r left join access_key k on k.id = (
			select id from access_key where reservation_id = r.id and kind = 'owner' order by revoked_at is null desc, id desc limit 1)`+
		keyFactsOf+` where r.id = (select coalesce(extends, id) from reservation where id = $1)`, id, kind, now.Add(booking.UnlockLead), recent, booking.UnlockLead)
}

func oneKeyFacts(ctx context.Context, q Querier, sql string, args ...any) (KeyFacts, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return KeyFacts{}, err
	}
	f, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (f KeyFacts, err error) {
		var start, end, expires, canceled, revoked, moved, failed, locked, until *time.Time
		err = row.Scan(&f.Reservation, &f.Branch, &f.State, &f.RoomNo, &start, &end, &expires, &canceled, &f.Refunded,
			&f.Kind, &f.RevokedAs, &revoked, &f.Opens, &f.Blocked, &moved, &failed, &locked, &until, &f.Keypad, &f.HasPass)
		f.Interval = booking.Interval{Start: value(start), End: value(end)}
		f.ExpiresAt, f.CanceledAt, f.RevokedAt = value(expires), value(canceled), value(revoked)
		f.MovedAt, f.Failed, f.LockedAt, f.LockedUntil = value(moved), value(failed), value(locked), value(until)
		return f, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return f, ErrNoReservation
	}
	return f, err
}

// ReservationNear returns the reservation of a room that has or had a key or waits for its payment, and contains now or lies
// closest to it, live ones first, or ErrNoReservation. Of an extension it is the stay, which has the key.
func ReservationNear(ctx context.Context, q Querier, branch booking.BranchID, room int, now time.Time, within time.Duration) (id booking.ReservationID, err error) {
	err = q.QueryRow(ctx, `
		select coalesce(r.extends, r.id) from reservation r join room m on m.id = r.room_id
		where r.branch_id = $1 and m.no = $2 and r.start_at < $3::timestamptz + $4::interval and r.start_at > $3::timestamptz - $4::interval - `+maxLength+`
		  and r.end_at > $3::timestamptz - $4::interval and r.state in ('WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING', 'CANCELED')
		order by r.start_at <= $3 and $3 < r.end_at desc, r.state <> 'CANCELED' desc,
		         abs(extract(epoch from r.start_at - $3)), r.id desc limit 1`, branch, room, now, within).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNoReservation
	}
	return id, err
}
