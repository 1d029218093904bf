package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/protocol"
)

// ErrNoDoorRequest is returned when no request has that id, or when it was made with another key.
var ErrNoDoorRequest = errors.New("postgres: no such door request")

// relaxed makes a statement return before its commit is on disk. The statement must join it; otherwise it is not executed.
//
// Only the grant must survive a crash of the database: if it were lost, the row would be PENDING again and could become
// FAILED with a PIN, or be granted a second time, although a lock was driven. The claim of a lost request is denied. A lost
// result leaves the row GRANTED, which ends as UNKNOWN without driving a lock. The grant's own commit also flushes
// everything written before it.
const relaxed = `relaxed as (select set_config('synchronous_commit', 'off', true))`

// keyed joins the key k of door request d, its reservation r and room m.
const keyed = `access_key k join reservation r on r.id = k.reservation_id join room m on m.id = r.room_id`

// opens is the condition that key k opens doors with its reservation r in the unlock window: neither is revoked. The state
// is written as an expression, because PostgreSQL may otherwise take a partial index of live reservations for short and use
// it instead of the primary key.
const opens = `k.revoked_at is null and r.state || '' = 'DONE' and not r.keys_blocked`

// holdsNow is the condition that the key of door request d still opens the same door; see keyed. The caller adds the
// condition on the time.
const holdsNow = `k.hash = d.key_hash and r.id = d.reservation_id and ` + opens + ` and r.branch_id + 0 = d.branch_id
	and (d.kind = 'front' or d.device = 'room_' || m.no)`

// stayEnd is the end of reservation r with its confirmed extensions. A transaction that confirms or ends an extension
// updates r, so a lock of r alone decides.
const stayEnd = `coalesce(r.stay_end, r.end_at)`

// ofBranch is the code of the branch of door request d. It is a subquery rather than a join, and branch_id is written as
// branch_id + 0 elsewhere, because the planner may estimate few rows for a branch and then not use the index on the key.
const ofBranch = `(select code from branch where id = d.branch_id)`

// activeAgent is the condition that the agent with user name username is the active one of a branch: the only one whose
// claims and reports count. An empty user name is an agent that uses the topics of the branch at an external broker
// (protocol.Agent); it is known to be the active one only if the branch has no other credential.
func activeAgent(branchID, username string) string {
	return `exists (
		select from agent_credential active
		where active.branch_id = ` + branchID + ` and active.active and active.revoked_at is null
		  and (active.username = ` + username + ` or ` + username + ` = '' and not exists (
			select from agent_credential other
			where other.branch_id = active.branch_id and other.revoked_at is null and other.username <> active.username)))`
}

// connectedAgent is the user name of the active agent of branch b if it is in the array online, otherwise null.
const connectedAgent = `(
	select o.username from unnest(online) o (username) join agent_credential a
	  on a.branch_id = b.id and a.active and a.revoked_at is null
	 and (a.username = o.username or o.username = '' and not exists (
		select from agent_credential other
		where other.branch_id = a.branch_id and other.revoked_at is null and other.username <> a.username))
	order by o.username desc limit 1)`

// Offline is the detail of a request that failed because the branch had no active agent connected.
const Offline = "branch offline"

// KeyedAsk is a customer's request for doors.
type KeyedAsk struct {
	ID      uuid.UUID
	Branch  string // code
	Kind    string // front, room
	Key     uuid.UUID
	KeyHash []byte   // HashKey of Key
	Room    int      // the reservation must be for this room; 0: any
	Online  []string // user names of the branch's connected agents
	Now     time.Time
	Until   time.Time // a request is not written from then on, by the database's clock; zero: no limit

	// A claim that an agent has made ahead of the press; see AnnouncedDoors.
	Nonce    string // empty: none
	Claimant string // user name
}

// KeyedDoor is the answer to a customer's request.
type KeyedDoor struct {
	door.Request                     // BranchID 0: unknown branch
	Holder       booking.Reservation // ID, State, RoomNo and Interval; ID 0: the key is invalid in this branch
	Agent        string              // user name of the agent to ask, if the request is pending
	Made         bool                // the request was written
	Joined       bool                // a request with this key for this door is in progress; ID is its id
	Grant        GrantedDoors        // of the request, if it was granted when it was written
}

// keyedDoors looks up the doorlockKey of each ask in its branch. The arguments are those of keyedArgs.
const keyedDoors = `asked as (
			select code, kind, request, key_hash, nullif(room, 0) as room, string_to_array(online, ',') as online, at, nonce, claimant, until, place
			from unnest($1::text[], $2::text[], $3::uuid[], $4::bytea[], $5::bigint[], $6::text[], $7::timestamptz[], $8::text[], $9::text[], $10::timestamptz[])
				with ordinality as a (code, kind, request, key_hash, room, online, at, nonce, claimant, until, place)
		), found as (
			select a.*, b.id as branch_id, r.id as reservation_id, r.start_at, r.end_at, r.no, ` + connectedAgent + ` as agent,
			       case a.kind when 'front' then 'front' else 'room_' || r.no end as device,
			       case a.kind when 'front' then b.front_doors else array['room_' || r.no] end as devices
			from asked a join branch b on b.code = a.code left join lateral (
				select r.id, r.start_at, ` + stayEnd + ` as end_at, m.no from ` + keyed + `
				where r.branch_id + 0 = b.id and k.hash = a.key_hash and ` + opens + ` offset 0) r on true
		)`

// mayPress is the condition that the key of row found of keyedDoors opens the door now.
const mayPress = `start_at <= at and at < end_at and no = coalesce(room, no)`

func keyedArgs(asks []KeyedAsk) []any {
	return []any{
		array(asks, func(a KeyedAsk) string { return a.Branch }),
		array(asks, func(a KeyedAsk) string { return a.Kind }),
		array(asks, func(a KeyedAsk) pgtype.UUID { return native(a.ID) }),
		array(asks, func(a KeyedAsk) []byte { return a.KeyHash }),
		array(asks, func(a KeyedAsk) int { return a.Room }),
		array(asks, func(a KeyedAsk) *string { return commaList(a.Online) }),
		array(asks, func(a KeyedAsk) time.Time { return a.Now.Add(booking.UnlockLead) }),
		array(asks, func(a KeyedAsk) string { return a.Nonce }),
		array(asks, func(a KeyedAsk) string { return a.Claimant }),
		array(asks, func(a KeyedAsk) *time.Time { return null(a.Until) }),
	}
}

// RequestDoorsByKey looks up the doorlockKey of each ask in its branch and, if the unlock window contains now, writes the
// request, all in one round trip. A request is pending if the active agent of the branch is connected, else failed. If a
// request with the key for the door is in progress and younger than joinLimit, no further one is written. A request that is later than now
// is older than the database's clock can show: see GrantDoors.
//
// An ask with the nonce of a claim is granted when it is written, under the conditions of GrantDoors: the claimant is the
// active agent, and the reservation, locked, is valid. It never waits for a transaction that has locked the reservation: the
// request is then pending, and GrantDoors waits. Only a batch with a grant waits for the disk.
//
// A statement that a stalled connection delivers after Until writes no request: its caller has returned an error.
//
// The window from start-lead to end-lead contains now if and only if [start, end) contains now+lead.
func RequestDoorsByKey(ctx context.Context, q Querier, asks []KeyedAsk, joinLimit time.Duration) ([]KeyedDoor, error) {
	// Asks with the same key are executed one after another, so that the second one joins the first.
	byKey := func(a KeyedAsk) uuid.UUID {
		if a.Key == uuid.Nil {
			return a.ID
		}
		return a.Key
	}
	// One value for all asks: a batch may be several statements of one transaction, and the last setting applies to its commit.
	durable := slices.ContainsFunc(asks, func(a KeyedAsk) bool { return a.Nonce != "" })
	all, err := queryBatch(ctx, q, asks, byKey, `
		with relaxed as (
			select set_config('synchronous_commit', case when $13 then current_setting('synchronous_commit') else 'off' end, true)
		), `+keyedDoors+`, joined as (
			select f.place, d.id from found f, lateral (
				select d.id from door_request d
				where d.reservation_id = f.reservation_id
				  and d.created_at between (select clock_timestamp() - $11::interval) and (select clock_timestamp()) -- once, for the index
				  and d.device = f.device and d.key_hash = f.key_hash
				  and coalesce(d.finished_at, 'infinity') = 'infinity' -- is null, but not by the index of all such requests
				order by d.created_at limit 1) d
		), granted as (
			select d.place, (
			    select a.key_epoch from agent_credential a where a.branch_id = d.branch_id and a.active and a.revoked_at is null) as key_epoch
			from found d
			where d.nonce <> '' and d.agent is not null and `+activeAgent("d.branch_id", "d.claimant")+`
			  and exists (
			    select from `+keyed+`
			    where `+holdsNow+` and r.start_at <= d.at and d.at < `+stayEnd+`
			    for share of r, k skip locked)
		), made as (
			insert into door_request (id, branch_id, reservation_id, key_hash, requested_by, kind, device, devices,
			                          created_at, state, nonce, granted_at, finished_at, detail)
			select request, branch_id, reservation_id, key_hash, '`+door.Customer+`', kind, device, devices, clock_timestamp(),
			       case when agent is null then 'FAILED' when granted.place is not null then 'GRANTED' else 'PENDING' end,
			       case when granted.place is not null then nonce end, case when granted.place is not null then clock_timestamp() end,
			       case when agent is null then clock_timestamp() end, case when agent is null then '`+Offline+`' end
			from found left join granted using (place), relaxed
			where `+mayPress+` and place not in (select place from joined) and (until is null or clock_timestamp() < until)
			returning id, state, give_pass_code(door_request, $12)
		)
		select f.place, branch_id, f.reservation_id, start_at, end_at, no, device, case when made.id is not null then devices end, agent,
		       joined.id, coalesce(made.state = 'GRANTED', false), coalesce(key_epoch, 0)
		from found f left join made on made.id = f.request left join joined on joined.place = f.place
		  left join granted on granted.place = f.place`,
		func(turn []KeyedAsk) []any {
			return append(keyedArgs(turn), joinLimit, turn[0].Now, durable)
		},
		func(rows pgx.Rows, place *int) (found KeyedDoor, err error) {
			var (
				holder        *booking.ReservationID
				start, end    *time.Time
				room          *int
				device, agent *string
				joined        *uuid.UUID
				granted       bool
				keyEpoch      uint64
			)
			err = rows.Scan(place, &found.BranchID, &holder, &start, &end, &room, &device, &found.Devices, &agent, &joined, &granted, &keyEpoch)
			if err != nil || holder == nil {
				return found, err
			}
			found.Reservation, found.Device, found.Made = holder, value(device), found.Devices != nil
			found.Holder = booking.Reservation{ID: *holder, State: booking.Done, RoomNo: value(room),
				Interval: booking.Interval{Start: value(start), End: value(end)}}
			if joined != nil {
				found.ID, found.Joined = *joined, true
			}
			found.State = door.Failed
			if agent != nil {
				found.State, found.Agent = door.Pending, *agent
			}
			if granted {
				found.State, found.Grant = door.Granted, GrantedDoors{Doors: found.Devices, KeyEpoch: keyEpoch}
			}
			return found, nil
		})
	if err != nil {
		return nil, err
	}
	for i, a := range asks {
		r := &all[i].Request
		r.Branch, r.RequestedBy, r.Kind = a.Branch, door.Customer, a.Kind
		if !all[i].Joined {
			r.ID = a.ID
		}
	}
	return all, nil
}

// AnnouncedDoor is what a press would ask for: the doors and the agent. It has no doors if the press would be rejected, or
// would fail because the agent is offline.
type AnnouncedDoor struct {
	Agent   string // user name
	Devices []string
}

// AnnouncedDoors judges asks as RequestDoorsByKey does, and writes nothing.
func AnnouncedDoors(ctx context.Context, q Querier, asks []KeyedAsk) ([]AnnouncedDoor, error) {
	return queryBatch(ctx, q, asks, func(a KeyedAsk) uuid.UUID { return a.ID }, `
		with `+keyedDoors+` select place, agent, devices from found where agent is not null and `+mayPress,
		keyedArgs,
		func(rows pgx.Rows, place *int) (found AnnouncedDoor, err error) {
			return found, rows.Scan(place, &found.Agent, &found.Devices)
		})
}

// commaList encodes user names as an argument for string_to_array, which turns null into null and "" into an empty array;
// so a list with one empty name is written as "," with two.
func commaList(names []string) *string {
	if len(names) == 0 {
		return nil
	}
	text := strings.Join(names, ",")
	if text == "" {
		text = ","
	}
	return &text
}

// InsertDoorRequest writes a request without a key, and returns it with its state and the user name of the agent to ask.
// online are the user names of the branch's connected agents.
//
// vacant is a room that must be between stays when the request is granted; 0 is no condition.
func InsertDoorRequest(ctx context.Context, q Querier, r door.Request, vacant booking.RoomID, online []string, now time.Time) (written door.Request, agent string, err error) {
	var connected *string
	err = q.QueryRow(ctx, `
		with connected as (
			select b.id, `+connectedAgent+` as agent from branch b, (select $7::text[] as online) o where b.id = $2
		)
		insert into door_request (id, branch_id, requested_by, kind, device, devices, vacant_room, created_at, state, finished_at, detail)
		select $1, id, $3, $4, $5, $6, $9, clock_timestamp(), case when agent is null then 'FAILED' else 'PENDING' end,
		       case when agent is null then clock_timestamp() end, case when agent is null then '`+Offline+`' end
		from connected
		returning (select agent from connected), give_pass_code(door_request, $8)`,
		r.ID, r.BranchID, r.RequestedBy, r.Kind, r.Device, r.Devices, online, now, null(vacant)).Scan(&connected, nil)
	if err != nil {
		return r, "", err
	}
	if connected == nil {
		r.State = door.Failed
		return r, "", nil
	}
	r.State = door.Pending
	return r, *connected, nil
}

// DoorClaim is an agent's request to drive the doors of a door request.
type DoorClaim struct {
	ID    uuid.UUID
	Agent protocol.Agent
	Nonce string
	Now   time.Time
}

// GrantDoors answers claims: each with the doors that may be driven, or none. A request is granted to one nonce of the
// active agent while it is pending and younger than claimLimit; that nonce gets the same answer again as long as the
// request is younger than driveLimit and has not failed. The reservation must be valid each time: after a cancellation or
// a move it has another state, room or time, and a rotated or revoked key opens nothing. The room of a request for cleaning
// must be between stays.
//
// Ages are measured by the database's clock alone, so that the clocks of replicas do not matter. If that clock is set back, or a database
// with a clock that is behind takes over, requests from before are later than now. Their age is unknown, so they are not granted. FOR SHARE waits for a
// cancellation or a revocation in progress and then sees it; if that exceeds the lock timeout, the claim fails and the
// agent repeats it.
func GrantDoors(ctx context.Context, q Querier, claims []DoorClaim, claimLimit, driveLimit time.Duration) ([]GrantedDoors, error) {
	return queryBatch(ctx, q, claims, func(c DoorClaim) uuid.UUID { return c.ID }, `
		update door_request d
		set state = case d.state when 'PENDING' then 'GRANTED' else d.state end,
		    nonce = c.nonce, granted_at = coalesce(d.granted_at, clock_timestamp())
		from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[])
			with ordinality as c (id, branch, username, nonce, at, place)
		where d.id = c.id and `+ofBranch+` = c.branch and `+activeAgent("d.branch_id", "c.username")+`
		  and d.created_at <= clock_timestamp()
		  and (d.state = 'PENDING' and d.created_at > clock_timestamp() - $6::interval
		    or d.state in ('GRANTED', 'SUCCESS') and d.nonce = c.nonce and d.created_at > clock_timestamp() - $7::interval)
		  and (d.reservation_id is null or exists (
		    select from `+keyed+`
		    where `+holdsNow+` and r.start_at <= c.at and c.at < `+stayEnd+`
		    for share of r, k))
		  and (d.vacant_room is null or not room_has_stay(d.vacant_room, c.at - `+unlockLead+`))
		returning c.place, d.devices, (
		    select a.key_epoch from agent_credential a where a.branch_id = d.branch_id and a.active and a.revoked_at is null)`,
		func(turn []DoorClaim) []any {
			return []any{
				array(turn, func(c DoorClaim) pgtype.UUID { return native(c.ID) }),
				array(turn, func(c DoorClaim) string { return c.Agent.Branch }),
				array(turn, func(c DoorClaim) string { return c.Agent.Username }),
				array(turn, func(c DoorClaim) string { return c.Nonce }),
				array(turn, func(c DoorClaim) time.Time { return c.Now.Add(booking.UnlockLead) }),
				claimLimit, driveLimit,
			}
		},
		func(rows pgx.Rows, place *int) (g GrantedDoors, err error) {
			return g, rows.Scan(place, &g.Doors, &g.KeyEpoch)
		})
}

// GrantedDoors are the doors of a granted request; none: the claim was not granted.
type GrantedDoors struct {
	Doors    []string
	KeyEpoch uint64 // of the keys that the agent trusts
}

// DoorReport is the outcome of one door of a request.
type DoorReport struct {
	ID      uuid.UUID
	Agent   protocol.Agent
	Nonce   string // empty: from an agent of the previous release
	Device  string
	Outcome door.Outcome
	Now     time.Time
}

// DoorReported is the effect of a report.
type DoorReported struct {
	Known   bool       // false: the report does not count, or the door has a report already
	Decided door.State // empty: the report did not decide the request
}

// ReportDoors writes the first report of each door. The report of the last door of a granted request decides it: SUCCESS if
// all doors opened, else FAILED. Later reports are stored and change nothing.
//
// A report counts only if it comes from the active agent of the request's branch, with the nonce that was granted, for a
// door of the request. A missing nonce is that of an agent of the previous release: its dropped does not count, because
// it also reports a grant as dropped that it acted on before a restart.
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
		from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::timestamptz[])
			with ordinality as r (id, branch, username, nonce, device, outcome, at, place), relaxed
		where d.id = r.id and `+ofBranch+` = r.branch and `+activeAgent("d.branch_id", "r.username")+`
		  and (d.nonce = r.nonce or d.nonce is not null and r.nonce = '' and r.outcome -> r.device ->> 'outcome' <> 'dropped')
		  and r.outcome -> r.device ->> 'outcome' <> 'unknown'
		  and r.device = any (d.devices) and not d.outcomes ? r.device
		returning r.place, case when d.finished_at >= statement_timestamp() then d.state end,
		          case when d.finished_at >= statement_timestamp() then give_pass_code(d, r.at) end`,
		func(turn []DoorReport) []any {
			return []any{
				array(turn, func(r DoorReport) pgtype.UUID { return native(r.ID) }),
				array(turn, func(r DoorReport) string { return r.Agent.Branch }),
				array(turn, func(r DoorReport) string { return r.Agent.Username }),
				array(turn, func(r DoorReport) string { return r.Nonce }),
				array(turn, func(r DoorReport) string { return r.Device }),
				array(turn, func(r DoorReport) map[string]door.Outcome { return map[string]door.Outcome{r.Device: r.Outcome} }),
				array(turn, func(r DoorReport) time.Time { return r.Now }),
			}
		},
		func(rows pgx.Rows, place *int) (DoorReported, error) {
			var decided *door.State
			err := rows.Scan(place, &decided, nil)
			return DoorReported{Known: true, Decided: value(decided)}, err
		})
}

// DenyDoor ends a pending request whose claim was denied. A claim of an agent that is not active changes nothing. known is false
// if there is no such request.
func DenyDoor(ctx context.Context, q Querier, id uuid.UUID, agent protocol.Agent, now time.Time) (known, ended bool, err error) {
	err = q.QueryRow(ctx, `
		with ended as (
			update door_request d set state = 'FAILED', finished_at = clock_timestamp(), detail = 'claim denied'
			where d.id = $1 and `+ofBranch+` = $2 and d.state = 'PENDING' and `+activeAgent("d.branch_id", "$3")+`
			returning give_pass_code(d, $4)
		)
		select exists (select from door_request where id = $1), exists (select from ended)`,
		id, agent.Branch, agent.Username, now).Scan(&known, &ended)
	return known, ended, err
}

// FailDoor ends a pending request. It reports false if the request was granted or has ended, so a request is either granted
// or failed, never both.
func FailDoor(ctx context.Context, q Querier, id uuid.UUID, branch, detail string, now time.Time) (bool, error) {
	tag, err := q.Exec(ctx, `
		update door_request d set state = 'FAILED', finished_at = clock_timestamp(), detail = $3
		from branch b
		where d.id = $1 and b.id = d.branch_id and b.code = $2 and d.state = 'PENDING'
		returning give_pass_code(d, $4)`, id, branch, detail, now)
	return tag.RowsAffected() == 1, err
}

// noReport is the detail of a granted request that ended without a report.
const noReport = "no report"

// abandoned is the final state of a granted request d without a report. If the previous request with the same key for the
// same door ended without a report, too, it is FAILED, so that the guest gets the PIN; no lock can be driven for it by then.
const abandoned = `case when d.key_hash is not null and (
		select p.detail from door_request p
		where p.reservation_id = d.reservation_id and p.device = d.device and p.key_hash = d.key_hash and p.created_at < d.created_at
		order by p.created_at desc limit 1) = '` + noReport + `' then 'FAILED' else 'UNKNOWN' end`

// AbandonDoor ends a granted request without a report. state is empty if it has ended already.
func AbandonDoor(ctx context.Context, q Querier, id uuid.UUID, now time.Time) (state door.State, err error) {
	err = q.QueryRow(ctx, `
		update door_request d set state = `+abandoned+`, finished_at = clock_timestamp(), detail = '`+noReport+`'
		where d.id = $1 and d.state = 'GRANTED'
		returning d.state, give_pass_code(d, $2)`, id, now).Scan(&state, nil)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return state, err
}

// EndOverdueDoors ends requests that a crashed replica left open: pending for longer than claimLimit, or granted without a
// report for longer than reportLimit. A pending request that is later than now cannot be granted any more and ends, too; a granted one may
// still open its door, and ends when the clock has passed it by reportLimit.
func EndOverdueDoors(ctx context.Context, q Querier, claimLimit, reportLimit time.Duration, now time.Time) ([]door.Ended, error) {
	rows, err := q.Query(ctx, `
		with overdue as (
			select id from door_request
			where finished_at is null and (created_at < clock_timestamp() - case state when 'PENDING' then $1 else $2 end::interval
			      or state = 'PENDING' and created_at > clock_timestamp())
			order by created_at limit 500
			for update skip locked
		)
		update door_request d
		set state = case d.state when 'PENDING' then 'FAILED' else `+abandoned+` end,
		    detail = case d.state when 'PENDING' then 'no claim' else '`+noReport+`' end,
		    finished_at = clock_timestamp()
		from overdue where d.id = overdue.id
		returning d.id, d.state, give_pass_code(d, $3)`, claimLimit, reportLimit, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e door.Ended, err error) {
		return e, row.Scan(&e.ID, &e.State, nil)
	})
}

const selectDoorRequest = `
	select d.id, d.branch_id, b.code, d.reservation_id, d.requested_by, d.kind, d.device, d.devices, d.state
	from door_request d join branch b on b.id = d.branch_id `

func oneDoorRequest(ctx context.Context, q Querier, where string, args ...any) (door.Request, error) {
	rows, err := q.Query(ctx, selectDoorRequest+where, args...)
	if err != nil {
		return door.Request{}, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[door.Request])
	if errors.Is(err, pgx.ErrNoRows) {
		return r, ErrNoDoorRequest
	}
	return r, err
}

// OpenDoors returns the requests that have not ended and whose age is between the limits.
func OpenDoors(ctx context.Context, q Querier, older, younger time.Duration) ([]door.Request, error) {
	rows, err := q.Query(ctx, selectDoorRequest+`
		where d.finished_at is null
		  and d.created_at between clock_timestamp() - $2::interval and clock_timestamp() - $1::interval
		order by d.created_at limit 500`, older, younger)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[door.Request])
}

// DoorRequestByID returns a request, or ErrNoDoorRequest.
func DoorRequestByID(ctx context.Context, q Querier, id uuid.UUID) (door.Request, error) {
	return oneDoorRequest(ctx, q, `where d.id = $1`, id)
}

// DoorRequestByKey returns a request that was made with the key of that hash, or ErrNoDoorRequest.
func DoorRequestByKey(ctx context.Context, q Querier, id uuid.UUID, keyHash []byte) (door.Request, error) {
	return oneDoorRequest(ctx, q, `where d.id = $1 and d.key_hash = $2`, id, keyHash)
}

// revealLimit is the age of a request after which its PIN is no longer disclosed.
const revealLimit = 10 * time.Minute

// RevealDoorPIN returns the sealed PIN of a request's door and records the disclosure. It is nil if there is none, if
// actor did not make the request, if the request is older than ten minutes, or if the customer has lost the right to it:
// the reservation was cancelled or moved, or is over. A door without a standalone keypad shows no PIN.
func RevealDoorPIN(ctx context.Context, q Querier, id uuid.UUID, actor string, now time.Time) (pin []byte, err error) {
	// The alert stays open until staff have changed the PIN: see PutPIN.
	err = q.QueryRow(ctx, `
		with revealed as (
		update door_pin p set revealed_at = $2
		from door_request d join branch b on b.id = d.branch_id
		where d.id = $1 and p.branch_id = d.branch_id and p.device = d.device and `+staticKeypad("d.device")+`
		  and d.requested_by = $4 and d.created_at > clock_timestamp() - $5::interval
		  and (d.reservation_id is null or exists (
			select from `+keyed+`
			where `+holdsNow+` and r.start_at <= $3 and $2 < `+stayEnd+`))
		returning p.pin, p.branch_id, p.device
		), alerted as (
			select alert_open('pin-exposed', b.code, r.device, clock_timestamp()) from revealed r join branch b on b.id = r.branch_id
		)
		select pin from revealed left join alerted on true`, id, now, now.Add(booking.UnlockLead), actor, revealLimit).Scan(&pin)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return pin, err
}

// doorChannel is the notification channel for the ids of ended requests.
const doorChannel = "door_ended"

// maxNotified keeps a notification below PostgreSQL's 8000 bytes.
const maxNotified = 200

// NotifyDoors notifies all replicas that requests have ended. It is a separate statement: inside the transaction that ends
// a request, the lock of NOTIFY would serialise all commits of the database.
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

// listenCheck is the time without notifications after which a listener looks whether its server still takes writes.
const listenCheck = 5 * time.Second

// errDemoted is returned by ListenDoors if its server takes no writes.
var errDemoted = errors.New("the server takes no writes: connections to it are closed")

// ListenDoors calls listening once it receives notifications, and ended for each id, until the connection fails or ctx
// ends. A server that became a standby sends none and may keep its connections: ListenDoors ends, and all connections that lead there
// are closed, so that reads leave it too.
func ListenDoors(ctx context.Context, db *DB, listening func(), ended func(uuid.UUID)) error {
	pooled, err := db.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	conn := pooled.Hijack() // a listening connection must not return to the pool
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `listen `+doorChannel); err != nil {
		return err
	}
	listening()
	for {
		n, err := notification(ctx, conn)
		if errors.Is(err, errDemoted) {
			db.Pool.Reset()
			db.Doors.Reset()
		}
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

// notification waits for the next notification. It returns errDemoted if none comes and the server takes no writes.
func notification(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	for {
		waiting, stop := context.WithTimeout(ctx, listenCheck)
		n, err := conn.WaitForNotification(waiting)
		stop()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return n, err
		}
		asking, stop := context.WithTimeout(ctx, connectTimeout)
		var demoted bool
		err = conn.QueryRow(asking, `select current_setting($1)::boolean`, "transaction_read_only").Scan(&demoted)
		stop()
		if err != nil {
			return nil, err
		}
		if demoted {
			return nil, errDemoted
		}
	}
}
