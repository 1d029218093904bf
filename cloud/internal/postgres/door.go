package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ErrNoDoorRequest says that no request has that id, or that the key is not the one it was made with.
var ErrNoDoorRequest = errors.New("postgres: no such door request")

// DoorState is where a door request stands.
type DoorState string

// The states; migration 00004 draws the ways. Success, Failed and Unknown are final.
const (
	DoorPending DoorState = "PENDING"
	DoorGranted DoorState = "GRANTED"
	DoorSuccess DoorState = "SUCCESS"
	DoorFailed  DoorState = "FAILED"
	DoorUnknown DoorState = "UNKNOWN" // granted, and nobody ever said what became of it
)

// Final reports whether the state will not change any more.
func (s DoorState) Final() bool { return s == DoorSuccess || s == DoorFailed || s == DoorUnknown }

// DoorRequest is one press of an unlock button.
type DoorRequest struct {
	ID          uuid.UUID
	BranchID    booking.BranchID
	Branch      string                 // code
	Reservation *booking.ReservationID // nil: not a customer's
	RequestedBy string
	Kind        string   // front, room
	Device      string   // of the result: front, room_<n>
	Devices     []string // the locks to drive
	State       DoorState
	CreatedAt   time.Time
	Detail      string
}

// relaxed lets the statement it stands in return before its commit is on disk. It must be joined, or it is not run.
//
// Only the grant has to survive a crash of the database: were it forgotten, the row would be PENDING again and become
// FAILED with a PIN, or be granted twice, although a lock was driven. A forgotten request row is denied when its claim
// comes. A forgotten result leaves GRANTED, which ends as UNKNOWN: no lock moves by that. And the grant's own commit
// takes everything written before it to the disk.
const relaxed = `relaxed as (select set_config('synchronous_commit', 'off', true))`

// holdsNow is true of a reservation r in room m that still carries the key of door request d, for its door. The
// caller adds the time.
const holdsNow = `r.state = 'DONE' and r.branch_id + 0 = d.branch_id
	and sha256(convert_to(r.doorlock_key::text, 'UTF8')) = d.key_hash
	and (d.kind = 'front' or d.device = 'room_' || m.no)`

// What is found by its own key is not to be looked for among all of its branch, which PostgreSQL may think few: hence no
// join in ofBranch, the code of the branch of door request d, and the + 0 after branch_id elsewhere, which no index has.
const ofBranch = `(select code from branch where id = d.branch_id)`

// KeyedAsk is a customer's request for doors.
type KeyedAsk struct {
	ID      uuid.UUID
	Branch  string // code
	Kind    string // front, room
	Key     uuid.UUID
	KeyHash []byte
	State   DoorState // to be written with
	Detail  string
	Now     time.Time
}

// KeyedDoor is what a customer's request found.
type KeyedDoor struct {
	DoorRequest                     // BranchID 0: there is no such branch
	Holder      booking.Reservation // ID, State, RoomNo and Interval; ID 0: the key opens nothing in this branch
	Made        bool                // the request was written
}

// RequestDoorsByKey looks up the doorlockKey of each ask in its branch and, if the unlock window contains now, writes the
// request, all in one round trip.
//
// The window from start-lead to end-lead contains now if and only if [start, end) contains now+lead.
func RequestDoorsByKey(ctx context.Context, q Querier, asks []KeyedAsk) ([]KeyedDoor, error) {
	all, err := queryBatch(ctx, q, asks, func(a KeyedAsk) uuid.UUID { return a.ID }, `
		with `+relaxed+`, asked as (
			select * from unnest($1::text[], $2::uuid[], $3::text[], $4::uuid[], $5::bytea[], $6::text[], $7::text[], $8::timestamptz[])
				with ordinality as a (code, key, kind, request, key_hash, state, detail, at, place)
		), found as (
			select a.*, b.id as branch_id, b.front_doors, r.id, r.start_at, r.end_at, r.no,
			       case a.kind when 'front' then 'front' else 'room_' || r.no end as device,
			       case a.kind when 'front' then b.front_doors else array['room_' || r.no] end as devices
			from asked a join branch b on b.code = a.code left join lateral (
				select r.id, r.start_at, r.end_at, m.no from reservation r join room m on m.id = r.room_id
				where r.branch_id + 0 = b.id and r.doorlock_key = a.key and r.state = 'DONE' offset 0) r on true
		), made as (
			insert into door_request (id, branch_id, reservation_id, key_hash, requested_by, kind, device, devices,
			                          created_at, state, finished_at, detail)
			select request, branch_id, id, key_hash, 'customer', kind, device, devices, clock_timestamp(),
			       state, case when state = 'FAILED' then clock_timestamp() end, nullif(detail, '')
			from found, relaxed
			where start_at <= at and at < end_at
			returning id
		)
		select place, branch_id, f.id, start_at, end_at, no, device, case when made.id is not null then devices end
		from found f left join made on made.id = f.request`,
		func(turn []KeyedAsk) []any {
			return []any{
				array(turn, func(a KeyedAsk) string { return a.Branch }),
				array(turn, func(a KeyedAsk) pgtype.UUID { return native(a.Key) }),
				array(turn, func(a KeyedAsk) string { return a.Kind }),
				array(turn, func(a KeyedAsk) pgtype.UUID { return native(a.ID) }),
				array(turn, func(a KeyedAsk) []byte { return a.KeyHash }),
				array(turn, func(a KeyedAsk) string { return string(a.State) }),
				array(turn, func(a KeyedAsk) string { return a.Detail }),
				array(turn, func(a KeyedAsk) time.Time { return a.Now.Add(booking.UnlockLead) }),
			}
		},
		func(rows pgx.Rows, place *int) (found KeyedDoor, err error) {
			var (
				holder     *booking.ReservationID
				start, end *time.Time
				room       *int
				device     *string
			)
			err = rows.Scan(place, &found.BranchID, &holder, &start, &end, &room, &device, &found.Devices)
			if err != nil || holder == nil {
				return found, err
			}
			found.Reservation, found.Device, found.Made = holder, value(device), found.Devices != nil
			found.Holder = booking.Reservation{ID: *holder, State: booking.Done, RoomNo: value(room),
				Interval: booking.Interval{Start: value(start), End: value(end)}}
			return found, nil
		})
	if err != nil {
		return nil, err
	}
	for i, a := range asks {
		r := &all[i].DoorRequest
		r.ID, r.Branch, r.RequestedBy, r.Kind, r.State, r.Detail = a.ID, a.Branch, "customer", a.Kind, a.State, a.Detail
	}
	return all, nil
}

// InsertDoorRequest writes the request of somebody who needs no key.
func InsertDoorRequest(ctx context.Context, q Querier, r DoorRequest) error {
	_, err := q.Exec(ctx, `
		insert into door_request (id, branch_id, requested_by, kind, device, devices, created_at, state, finished_at, detail)
		values ($1, $2, $3, $4, $5, $6, clock_timestamp(), $7, case when $7 = 'FAILED' then clock_timestamp() end, nullif($8, ''))`,
		r.ID, r.BranchID, r.RequestedBy, r.Kind, r.Device, r.Devices, r.State, r.Detail)
	return err
}

// DoorClaim is an agent's question whether it may drive the doors of a request.
type DoorClaim struct {
	ID     uuid.UUID
	Branch string // code
	Nonce  string
	Now    time.Time
}

// GrantDoors answers claims: each with the doors that may be driven, or none. A request is granted while it is pending
// and younger than claimLimit, to one nonce; that nonce gets the same answer again, as long as the request is younger
// than driveLimit and has not failed. Each time the reservation must hold now: a cancelled or moved one has another key, state, room or time.
//
// Ages are measured by the database's clock alone, so that replicas may disagree about the time. FOR SHARE waits for a
// cancellation that is under way and then sees it; if that takes long there is an error, and the agent claims again.
func GrantDoors(ctx context.Context, q Querier, claims []DoorClaim, claimLimit, driveLimit time.Duration) (doors [][]string, err error) {
	return queryBatch(ctx, q, claims, func(c DoorClaim) uuid.UUID { return c.ID }, `
		update door_request d
		set state = case d.state when 'PENDING' then 'GRANTED' else d.state end,
		    nonce = c.nonce, granted_at = coalesce(d.granted_at, clock_timestamp())
		from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[]) with ordinality as c (id, branch, nonce, at, place)
		where d.id = c.id and `+ofBranch+` = c.branch
		  and (d.state = 'PENDING' and d.created_at > clock_timestamp() - $5::interval
		    or d.state in ('GRANTED', 'SUCCESS') and d.nonce = c.nonce and d.created_at > clock_timestamp() - $6::interval)
		  and (d.reservation_id is null or exists (
		    select from reservation r join room m on m.id = r.room_id
		    where r.id = d.reservation_id and `+holdsNow+` and r.start_at <= c.at and c.at < r.end_at
		    for share of r))
		returning c.place, d.devices`,
		func(turn []DoorClaim) []any {
			return []any{
				array(turn, func(c DoorClaim) pgtype.UUID { return native(c.ID) }),
				array(turn, func(c DoorClaim) string { return c.Branch }),
				array(turn, func(c DoorClaim) string { return c.Nonce }),
				array(turn, func(c DoorClaim) time.Time { return c.Now.Add(booking.UnlockLead) }),
				claimLimit, driveLimit,
			}
		},
		func(rows pgx.Rows, place *int) (doors []string, err error) { return doors, rows.Scan(place, &doors) })
}

// DoorOutcome is what an agent reported of one door.
type DoorOutcome struct {
	Outcome     string `json:"outcome"`
	Detail      string `json:"detail,omitempty"`
	EnergizedMs uint32 `json:"energizedMs"`
}

// DoorReport is the outcome of one door of a request.
type DoorReport struct {
	ID      uuid.UUID
	Branch  string // code
	Device  string
	Outcome DoorOutcome
}

// DoorReported is what came of a report.
type DoorReported struct {
	Known   bool      // else the request is not of this branch, does not have this door, was never granted, or has the report already
	Decided DoorState // empty: not by this report
}

// ReportDoors writes the first report of each door. The one of the last door of a granted request decides it: SUCCESS if
// all doors opened, else FAILED. Later reports are kept with the row and change nothing.
func ReportDoors(ctx context.Context, q Querier, reports []DoorReport) ([]DoorReported, error) {
	const complete = `d.state = 'GRANTED' and (d.outcomes || r.outcome) ?& d.devices`
	return queryBatch(ctx, q, reports, func(r DoorReport) uuid.UUID { return r.ID }, `
		with `+relaxed+`
		update door_request d
		set outcomes = d.outcomes || r.outcome,
		    state = case when not (`+complete+`) then d.state
		                 when jsonb_path_exists(d.outcomes || r.outcome, '$.* ? (@.outcome != "opened")') then 'FAILED'
		                 else 'SUCCESS' end,
		    finished_at = case when `+complete+` then clock_timestamp() else d.finished_at end
		from unnest($1::uuid[], $2::text[], $3::text[], $4::jsonb[]) with ordinality as r (id, branch, device, outcome, place), relaxed
		where d.id = r.id and `+ofBranch+` = r.branch
		  and r.device = any (d.devices) and d.granted_at is not null and not d.outcomes ? r.device
		returning r.place, case when d.finished_at >= statement_timestamp() then d.state end`,
		func(turn []DoorReport) []any {
			return []any{
				array(turn, func(r DoorReport) pgtype.UUID { return native(r.ID) }),
				array(turn, func(r DoorReport) string { return r.Branch }),
				array(turn, func(r DoorReport) string { return r.Device }),
				array(turn, func(r DoorReport) map[string]DoorOutcome { return map[string]DoorOutcome{r.Device: r.Outcome} }),
			}
		},
		func(rows pgx.Rows, place *int) (DoorReported, error) {
			var decided *DoorState
			err := rows.Scan(place, &decided)
			return DoorReported{Known: true, Decided: value(decided)}, err
		})
}

// FailDoor ends a request that nobody was granted. It reports false when the request was granted or has ended: granted
// and FAILED without a grant are two exits of one row.
func FailDoor(ctx context.Context, q Querier, id uuid.UUID, branch, detail string) (bool, error) {
	tag, err := q.Exec(ctx, `
		update door_request d set state = 'FAILED', finished_at = clock_timestamp(), detail = $3
		from branch b
		where d.id = $1 and b.id = d.branch_id and b.code = $2 and d.state = 'PENDING'`, id, branch, detail)
	return tag.RowsAffected() == 1, err
}

// noReport is the detail of a granted request that ended without a report.
const noReport = "no report"

// abandoned is the state in which such a request d ends. From the second in a row for one key and door it is FAILED, so
// that nobody stands outside for ever; by then no lock can be driven for it any more.
const abandoned = `case when d.key_hash is not null and (
		select p.detail from door_request p
		where p.reservation_id = d.reservation_id and p.device = d.device and p.key_hash = d.key_hash and p.created_at < d.created_at
		order by p.created_at desc limit 1) = '` + noReport + `' then 'FAILED' else 'UNKNOWN' end`

// AbandonDoor ends a granted request of which nothing was heard. state is empty when it has ended already.
func AbandonDoor(ctx context.Context, q Querier, id uuid.UUID) (state DoorState, err error) {
	err = q.QueryRow(ctx, `
		update door_request d set state = `+abandoned+`, finished_at = clock_timestamp(), detail = '`+noReport+`'
		where d.id = $1 and d.state = 'GRANTED'
		returning d.state`, id).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return state, err
}

// EndedDoor is a request that was ended for its age.
type EndedDoor struct {
	ID    uuid.UUID
	State DoorState
}

// EndOverdueDoors ends what a replica that died has left open: pending for longer than claimLimit, granted and without a
// report for longer than reportLimit.
func EndOverdueDoors(ctx context.Context, q Querier, claimLimit, reportLimit time.Duration) ([]EndedDoor, error) {
	rows, err := q.Query(ctx, `
		with overdue as (
			select id from door_request
			where finished_at is null and created_at < clock_timestamp() - case state when 'PENDING' then $1 else $2 end::interval
			order by created_at limit 500
			for update skip locked
		)
		update door_request d
		set state = case d.state when 'PENDING' then 'FAILED' else `+abandoned+` end,
		    detail = case d.state when 'PENDING' then 'no claim' else '`+noReport+`' end,
		    finished_at = clock_timestamp()
		from overdue where d.id = overdue.id
		returning d.id, d.state`, claimLimit, reportLimit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[EndedDoor])
}

const selectDoorRequest = `
	select d.id, d.branch_id, b.code, d.reservation_id, d.requested_by, d.kind, d.device, d.devices, d.state,
	       d.created_at, coalesce(d.detail, '')
	from door_request d join branch b on b.id = d.branch_id `

func oneDoorRequest(ctx context.Context, q Querier, where string, args ...any) (DoorRequest, error) {
	rows, err := q.Query(ctx, selectDoorRequest+where, args...)
	if err != nil {
		return DoorRequest{}, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[DoorRequest])
	if errors.Is(err, pgx.ErrNoRows) {
		return r, ErrNoDoorRequest
	}
	return r, err
}

// OpenDoors returns requests that have neither ended nor are younger or older than the limits given.
func OpenDoors(ctx context.Context, q Querier, older, younger time.Duration) ([]DoorRequest, error) {
	rows, err := q.Query(ctx, selectDoorRequest+`
		where d.finished_at is null
		  and d.created_at between clock_timestamp() - $2::interval and clock_timestamp() - $1::interval
		order by d.created_at limit 500`, older, younger)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[DoorRequest])
}

// DoorRequestByID returns a request, or ErrNoDoorRequest.
func DoorRequestByID(ctx context.Context, q Querier, id uuid.UUID) (DoorRequest, error) {
	return oneDoorRequest(ctx, q, `where d.id = $1`, id)
}

// DoorRequestByKey returns a request that was made with the key of that hash, or ErrNoDoorRequest.
func DoorRequestByKey(ctx context.Context, q Querier, id uuid.UUID, keyHash []byte) (DoorRequest, error) {
	return oneDoorRequest(ctx, q, `where d.id = $1 and d.key_hash = $2`, id, keyHash)
}

// RevealDoorPIN returns the sealed PIN of a request's door and notes that it was seen. It is nil when there is none, or
// when the customer has no right to it any more: the reservation was cancelled or moved, or is over.
func RevealDoorPIN(ctx context.Context, q Querier, id uuid.UUID, now time.Time) (pin []byte, err error) {
	err = q.QueryRow(ctx, `
		update door_pin p set revealed_at = $2
		from door_request d
		where d.id = $1 and p.branch_id = d.branch_id and p.device = d.device
		  and (d.reservation_id is null or exists (
			select from reservation r join room m on m.id = r.room_id
			where r.id = d.reservation_id and `+holdsNow+` and r.start_at <= $3 and $2 < r.end_at))
		returning p.pin`, id, now, now.Add(booking.UnlockLead)).Scan(&pin)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return pin, err
}

// doorChannel carries the ids of ended requests between replicas.
const doorChannel = "door_ended"

// maxNotified keeps a notification below PostgreSQL's 8000 bytes.
const maxNotified = 200

// NotifyDoors tells every replica that requests have ended. It is a statement of its own: inside the transaction that
// ends a request, NOTIFY's lock would serialise all commits of the database.
func NotifyDoors(ctx context.Context, q Querier, ids []uuid.UUID) error {
	for len(ids) > 0 {
		n := min(len(ids), maxNotified)
		texts := make([]string, n)
		for i, id := range ids[:n] {
			texts[i] = id.String()
		}
		_, err := q.Exec(ctx, `with `+relaxed+` select pg_notify($1, $2) from relaxed`, doorChannel, strings.Join(texts, ","))
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// ListenDoors calls listening once it hears notifications, and ended for each id, until the connection fails or ctx ends.
func ListenDoors(ctx context.Context, db *DB, listening func(), ended func(uuid.UUID)) error {
	pooled, err := db.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	conn := pooled.Hijack() // a connection that listens must not serve anybody else
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `listen `+doorChannel); err != nil {
		return err
	}
	listening()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		for text := range strings.SplitSeq(n.Payload, ",") {
			if id, err := uuid.Parse(text); err == nil {
				ended(id)
			}
		}
	}
}
