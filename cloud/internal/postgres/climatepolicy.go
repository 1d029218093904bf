package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// climateLock is the advisory lock of the replica that compares rooms with their stays.
const climateLock = 0x79656f6c_0109

// stayHorizon is how far ahead intents are planned.
const stayHorizon = 24 * time.Hour

// ClimatePolicy is how the air of a room follows its stays.
type ClimatePolicy struct {
	RoomNo       int
	Unit         string
	Sensor       *string `json:"-"` // location, by the agent's report; nil: the room has none
	ArriveOption string  // airconditioner_id
	LeaveOption  string
	Lead, Lag    int // minutes before the start and after the end
	Low, High    float64
	GuestOptions []string
	HourlyCost   *int // won for an hour of the unit, the share of this room; nil: not known
}

// ClimatePolicies returns the policies of a branch by room number.
func ClimatePolicies(ctx context.Context, q Querier, branch booking.BranchID) ([]ClimatePolicy, error) {
	rows, err := q.Query(ctx, `
		select m.no, p.unit, p.sensor, p.arrive_option, p.leave_option, p.lead_minutes, p.lag_minutes, p.low, p.high, p.guest_options, p.hourly_cost
		from climate_policy p join room m on m.id = p.room_id where p.branch_id = $1 order by m.no`, branch)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[ClimatePolicy])
}

// sensorOfRoom is the location of the sensor of room m: the first that the active agent has reported and that contains the number of
// the room and no other, such as "3번 룸" or "room 3" for room 3.
const sensorOfRoom = `(
	select s.location #>> '{}' from agent_inventory i cross join jsonb_path_query(i.inventory, '$.sensors[*]') with ordinality s (location, place)
	where i.branch_id = m.branch_id and btrim(regexp_replace(s.location #>> '{}', '[^0-9]+', ' ', 'g')) = m.no::text
	order by s.place limit 1)`

// PutClimatePolicies replaces the policies of a branch. A room that keeps its unit keeps its state. If a unit is on for a stay in a room that
// loses its policy or gets another unit, it is switched off, unless it is on for another room; the new unit is then switched on. The
// other planned intents of a room without a policy are cancelled. It returns the number of rooms found.
func PutClimatePolicies(ctx context.Context, tx pgx.Tx, branch booking.BranchID, policies []ClimatePolicy, now time.Time) (found int64, err error) {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(climateLock)); err != nil {
		return 0, err
	}
	type use struct {
		Room   int32
		Owner  int64
		Unit   string
		Option string // that switches the unit off
	}
	rows, err := tx.Query(ctx, `select room_id, owner, unit, leave_option from climate_policy where branch_id = $1 and owner is not null`, branch)
	if err != nil {
		return 0, err
	}
	on, err := pgx.CollectRows(rows, pgx.RowToStructByPos[use])
	if err != nil {
		return 0, err
	}
	numbers := make([]int, len(policies))
	for i, p := range policies {
		numbers[i] = p.RoomNo
		tag, err := tx.Exec(ctx, `
			insert into climate_policy as old (room_id, branch_id, unit, sensor, arrive_option, leave_option, lead_minutes, lag_minutes, low, high, guest_options, hourly_cost)
			select m.id, m.branch_id, $3, `+sensorOfRoom+`, $4, $5, $6, $7, $8, $9, $10, $11 from room m where m.branch_id = $1 and m.no = $2
			on conflict (room_id) do update set unit = $3, sensor = excluded.sensor, arrive_option = $4, leave_option = $5, lead_minutes = $6, lag_minutes = $7,
				low = $8, high = $9, guest_options = $10, hourly_cost = $11,
				owner = case when old.unit = $3 then old.owner end, owner_since = case when old.unit = $3 then old.owner_since end`,
			branch, p.RoomNo, p.Unit, p.ArriveOption, p.LeaveOption, p.Lead, p.Lag, p.Low, p.High, p.GuestOptions, p.HourlyCost)
		if err != nil {
			return found, err
		}
		found += tag.RowsAffected()
	}
	if _, err := tx.Exec(ctx, `delete from climate_policy p using room m where m.id = p.room_id and p.branch_id = $1 and m.no <> all($2)`, branch, numbers); err != nil {
		return found, err
	}
	// An intent that is due already switches off a unit that the room had before.
	if _, err := tx.Exec(ctx, `
		insert into climate_intent (branch_id, room_id, reservation_id, edge, at, option_id, state, due, next_at)
		select $1, u.room, u.owner, 'leave', $2, u.option, 'planned', true, $2
		from unnest($3::integer[], $4::bigint[], $5::text[], $6::text[]) u (room, owner, unit, option)
		where not exists (select from climate_policy p where p.branch_id = $1 and p.unit = u.unit and (p.room_id = u.room or p.owner is not null))
		on conflict (reservation_id, room_id, edge) where state = 'planned'
			do update set at = $2, option_id = excluded.option_id, due = true, next_at = $2, attempts = 0, baseline = null where not climate_intent.due`,
		branch, now, array(on, func(u use) int32 { return u.Room }), array(on, func(u use) int64 { return u.Owner }),
		array(on, func(u use) string { return u.Unit }), array(on, func(u use) string { return u.Option })); err != nil {
		return found, err
	}
	_, err = tx.Exec(ctx, `
		update climate_intent i set state = 'canceled', due = false
		where i.branch_id = $1 and i.state = 'planned' and not (i.due and i.edge = 'leave')
		  and not exists (select from climate_policy p where p.room_id = i.room_id and (not i.due or p.unit = `+intentUnit+`))`, branch)
	return found, err
}

// BranchOptions returns the air conditioner options of a branch by id.
func BranchOptions(ctx context.Context, q Querier, branch booking.BranchID) (map[string]Option, error) {
	rows, err := q.Query(ctx, `
		select o.id, b.code, o.unit, o.path from airconditioner_option o join branch b on b.id = o.branch_id where o.branch_id = $1`, branch)
	if err != nil {
		return nil, err
	}
	options := map[string]Option{}
	var o Option
	_, err = pgx.ForEachRow(rows, []any{&o.ID, &o.Branch, &o.Unit, &o.Path}, func() error {
		options[o.ID] = o
		return nil
	})
	return options, err
}

// ClimateRoom is a room with a policy and its state.
type ClimateRoom struct {
	Room         int32
	Branch       int32
	Unit         string
	ArriveOption string
	LeaveOption  string
	Lead, Lag    int
	Low, High    float64
	GuestOptions []string
	Owner        *int64
	Ambient      *float64
	Celsius      *float64 // latest reading
	ReadAt       *time.Time
	StaffSince   bool // staff sent a command to the unit since it was switched on for the owner
}

// ClimateStay is a confirmed stay in a room with a policy, with its extensions.
type ClimateStay struct {
	ID         int64
	Room       int32
	Start, End time.Time
	Choice     *string // the guest's option
}

// ClimateIntent is the switching of a unit for a stay.
type ClimateIntent struct {
	ID          int64
	Branch      int32
	Room        int32
	Reservation int64
	Edge        string
	At          time.Time
	Option      string
	State       string
	Due         bool
	Attempts    int
	NextAt      time.Time
	SentAt      *time.Time
	Baseline    *float64
	Unit        string // of the option
	StaffSince  bool   // staff sent a command to the unit since this one, to leave, was due or sent
}

// intentUnit is the unit that intent i switches. If the agent does not offer the option any more, it is the one of the room.
const intentUnit = `coalesce(
	(select o.unit from airconditioner_option o where o.id = i.option_id), (select p.unit from climate_policy p where p.room_id = i.room_id), '')`

const intentColumns = `i.id, i.branch_id, i.room_id, i.reservation_id, i.edge, i.at, i.option_id, i.state, i.due, i.attempts, i.next_at, i.sent_at, i.baseline, ` + intentUnit + `,
	i.edge = 'leave' and (i.due or i.state = 'sent') and exists (
		select from airconditioner_command c where c.branch_id = i.branch_id and c.unit = ` + intentUnit + ` and c.at > coalesce(i.sent_at, i.at)
		and c.outcome = 'sent' and c.requested_by <> '` + ClimateActor + `')`

// ClimateWorld is everything that decides about the rooms with a policy.
type ClimateWorld struct {
	Rooms []ClimateRoom
	Stays []ClimateStay   // by start
	Open  []ClimateIntent // planned, or sent and not judged finally
}

// ReadClimate returns the rooms with a policy, their stays and their open intents, under a lock that other replicas do not get. If
// another one has it, ok is false.
func ReadClimate(ctx context.Context, tx pgx.Tx, now time.Time) (w ClimateWorld, ok bool, err error) {
	if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, int64(climateLock)).Scan(&ok); err != nil || !ok {
		return w, ok, err
	}
	rows, err := tx.Query(ctx, `
		select p.room_id, p.branch_id, p.unit, p.arrive_option, p.leave_option, p.lead_minutes, p.lag_minutes, p.low, p.high, p.guest_options,
		       p.owner, p.ambient, s.celsius, s.at,
		       exists (select from airconditioner_command c where c.branch_id = p.branch_id and c.unit = p.unit and c.at >= p.owner_since
		               and c.outcome = 'sent' and c.requested_by <> $1)
		from climate_policy p
		left join lateral (select celsius, at from sensor_reading r where r.branch_id = p.branch_id and r.location = p.sensor
		                   and r.at > $2 and r.at < $3 order by r.at desc limit 1) s on true
		order by p.room_id`, ClimateActor, now.Add(-day), now.Add(day))
	if err != nil {
		return w, ok, err
	}
	if w.Rooms, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ClimateRoom]); err != nil || len(w.Rooms) == 0 {
		return w, ok, err
	}
	// A stay of a partner may have begun a month before its piece near now: its times are those of all its pieces. While the refund of a
	// stay is in progress its extensions are confirmed, but its key opens nothing.
	rows, err = tx.Query(ctx, `
		with near as materialized (
			select distinct coalesce(r.extends, r.id) as id, r.room_id
			from climate_policy p join reservation r on r.branch_id = p.branch_id and r.room_id = p.room_id
			where r.state = 'DONE' and r.start_at > $1 and r.start_at < $2 and r.end_at > $3
		)
		select n.id, n.room_id, min(s.start_at), max(s.end_at), c.option_id
		from near n join reservation root on root.id = n.id and root.state || '' = 'DONE' cross join lateral (
			select start_at, end_at, room_id, state from reservation where id = n.id
			union all
			select start_at, end_at, room_id, state from reservation where extends = n.id
		) s
		left join climate_choice c on c.reservation_id = n.id
		where s.room_id = n.room_id and s.state = 'DONE'
		group by 1, 2, 5 order by 3`,
		now.Add(-booking.MaxLength-2*time.Hour), now.Add(stayHorizon), now.Add(-2*time.Hour))
	if err != nil {
		return w, ok, err
	}
	if w.Stays, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ClimateStay]); err != nil {
		return w, ok, err
	}
	rows, err = tx.Query(ctx, `select `+intentColumns+` from climate_intent i where i.state in ('planned', 'sent') and i.judged_at is null order by i.id`)
	if err != nil {
		return w, ok, err
	}
	w.Open, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ClimateIntent])
	return w, ok, err
}

// ClimateActor sends the commands that follow from stays.
const ClimateActor = "system:climate"

// ClimateOwner is the stay for which the unit of a room is on; Owner nil: it is off.
type ClimateOwner struct {
	Room    int32
	Owner   *int64
	Since   *time.Time
	Ambient *float64
}

// ClimateVerdict is what was seen of a command.
type ClimateVerdict struct {
	ID    int64
	State string
	Seen  *float64 // temperature of the room; nil: it decided nothing
}

// ClimateBaseline is the first reading after a command, if there was none before it.
type ClimateBaseline struct {
	ID      int64
	Celsius float64
}

// ClimateChanges are the results of a comparison of a room with its stays.
type ClimateChanges struct {
	Owners    []ClimateOwner
	Put       []ClimateIntent // to plan, or to replace the planned ones
	Cancel    []int64
	Again     []int64 // to send once more
	Verdicts  []ClimateVerdict
	Baselines []ClimateBaseline
}

// ChangeClimate applies the changes of rooms.
func ChangeClimate(ctx context.Context, tx pgx.Tx, now time.Time, rooms ...ClimateChanges) error {
	batch := new(pgx.Batch)
	for _, c := range rooms {
		c.queue(batch, now)
	}
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, batch).Close()
}

func (c ClimateChanges) queue(batch *pgx.Batch, now time.Time) {
	for _, o := range c.Owners {
		batch.Queue(`update climate_policy set owner = $2, owner_since = $3, ambient = coalesce($4, ambient) where room_id = $1`, o.Room, o.Owner, o.Since, o.Ambient)
	}
	for _, i := range c.Put {
		batch.Queue(`
			insert into climate_intent (branch_id, room_id, reservation_id, edge, at, option_id, state, due, next_at) values ($1, $2, $3, $4, $5, $6, 'planned', $7, $8)
			on conflict (reservation_id, room_id, edge) where state = 'planned' do update set at = $5, option_id = $6, due = climate_intent.due or $7, next_at = $8`,
			i.Branch, i.Room, i.Reservation, i.Edge, i.At, i.Option, i.Due, i.NextAt)
	}
	if len(c.Cancel) > 0 {
		batch.Queue(`update climate_intent set state = 'canceled', due = false where id = any($1) and state = 'planned'`, c.Cancel)
	}
	if len(c.Again) > 0 {
		// A stay that was moved has a planned intent for its new time. The repetition comes before it, and then it is planned again.
		batch.Queue(`
			delete from climate_intent later using climate_intent i
			where i.id = any($1) and later.state = 'planned' and (later.reservation_id, later.room_id, later.edge) = (i.reservation_id, i.room_id, i.edge)`, c.Again)
		batch.Queue(`update climate_intent set state = 'planned', due = true, next_at = $2 where id = any($1) and state = 'sent'`, c.Again, now)
	}
	for _, v := range c.Verdicts {
		batch.Queue(`update climate_intent set state = $2, judged_at = $3, seen = $4 where id = $1 and state = 'sent'`, v.ID, v.State, now, v.Seen)
	}
	for _, b := range c.Baselines {
		batch.Queue(`update climate_intent set baseline = $2 where id = $1 and baseline is null`, b.ID, b.Celsius)
	}
}

// DueIntents returns the intents to send now, with the code of their branch.
func DueIntents(ctx context.Context, q Querier, now time.Time) (map[int64]string, error) {
	rows, err := q.Query(ctx, `
		select i.id, b.code from climate_intent i join branch b on b.id = i.branch_id where i.state = 'planned' and i.due and i.next_at <= $1 order by i.id`, now)
	if err != nil {
		return nil, err
	}
	due := map[int64]string{}
	var id int64
	var code string
	_, err = pgx.ForEachRow(rows, []any{&id, &code}, func() error { due[id] = code; return nil })
	return due, err
}

// ClaimIntent claims an attempt to send an intent until next, with the temperature of the room at that moment. It reports false if another
// replica has claimed it, or if it is not due any more.
func ClaimIntent(ctx context.Context, q Querier, id int64, now, next time.Time, maxAge time.Duration) (i ClimateIntent, ok bool, err error) {
	rows, err := q.Query(ctx, `
		update climate_intent i set attempts = i.attempts + 1, next_at = $3, baseline = coalesce(i.baseline, (
			select s.celsius from climate_policy p join sensor_reading s on s.branch_id = p.branch_id and s.location = p.sensor
			where p.room_id = i.room_id and s.at > $4 order by s.at desc limit 1))
		where i.id = $1 and i.state = 'planned' and i.due and i.next_at <= $2 returning `+intentColumns, id, now, next, now.Add(-maxAge))
	if err != nil {
		return i, false, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ClimateIntent])
	if err != nil || len(found) == 0 {
		return i, false, err
	}
	return found[0], true, nil
}

// NoteIntentSent records that the agent has sent the command. A room without a sensor cannot be judged.
func NoteIntentSent(ctx context.Context, q Querier, id int64, now time.Time) error {
	_, err := q.Exec(ctx, `
		update climate_intent i set state = 'sent', due = false, sent_at = $2::timestamptz,
			judged_at = case when exists (select from climate_policy p where p.room_id = i.room_id and p.sensor is not null) then null else $2::timestamptz end
		where i.id = $1 and i.state = 'planned'`, id, now)
	return err
}

// NoteIntentFailed records that an intent could not be sent, finally.
func NoteIntentFailed(ctx context.Context, q Querier, id int64, now time.Time) error {
	_, err := q.Exec(ctx, `update climate_intent set state = 'no-effect', due = false, judged_at = $2 where id = $1 and state = 'planned'`, id, now)
	return err
}

// ShownIntent is an intent as administrators see it.
type ShownIntent struct {
	RoomNo      int
	Reservation int64
	Edge        string
	At          time.Time
	State       string
	Path        []string // of the option; empty: the agent does not offer it any more
	Attempts    int
	SentAt      *time.Time
	Before      *float64 // temperature of the room before the command
	Seen        *float64 // and when the result was judged
}

// ClimateIntents returns the intents of a branch from a day ago on, by time.
func ClimateIntents(ctx context.Context, q Querier, branch booking.BranchID, now time.Time) ([]ShownIntent, error) {
	rows, err := q.Query(ctx, `
		select m.no, i.reservation_id, i.edge, i.at, i.state, coalesce(o.path, '{}'), i.attempts, i.sent_at, i.baseline, i.seen
		from climate_intent i join room m on m.id = i.room_id left join airconditioner_option o on o.id = i.option_id
		where i.branch_id = $1 and i.at > $2 order by i.at, i.id`, branch, now.Add(-24*time.Hour))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[ShownIntent])
}

// PutChoice stores a guest's option for a stay with its extensions and, if the unit is on for it, makes the command due. It reports false if staff
// have sent a command for the stay.
func PutChoice(ctx context.Context, tx pgx.Tx, reservation int64, option string, now time.Time) (ok bool, err error) {
	err = tx.QueryRow(ctx, `
		select not exists (
			select from climate_policy p join airconditioner_command c on c.branch_id = p.branch_id and c.unit = p.unit and c.at >= p.owner_since
			where p.owner in (select id from reservation where id = $1 or extends = $1) and c.outcome = 'sent' and c.requested_by <> $2)`, reservation, ClimateActor).Scan(&ok)
	if err != nil || !ok {
		return ok, err
	}
	if _, err := tx.Exec(ctx, `
		insert into climate_choice (reservation_id, option_id, at) values ($1, $2, $3)
		on conflict (reservation_id) do update set option_id = $2, at = $3`, reservation, option, now); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `
		insert into climate_intent (branch_id, room_id, reservation_id, edge, at, option_id, state, due, next_at)
		select branch_id, room_id, owner, 'arrive', $3, $2, 'planned', true, $3 from climate_policy where owner in (select id from reservation where id = $1 or extends = $1)
		on conflict (reservation_id, room_id, edge) where state = 'planned' do update set at = $3, option_id = $2, due = true, next_at = $3, attempts = 0, baseline = null`,
		reservation, option, now)
	return true, err
}

// Choice returns the guest's option for a stay; empty: none.
func Choice(ctx context.Context, q Querier, reservation int64) (option string, err error) {
	err = q.QueryRow(ctx, `select coalesce((select option_id from climate_choice where reservation_id = $1), '')`, reservation).Scan(&option)
	return option, err
}

// PurgeIntents deletes intents before a time.
func PurgeIntents(ctx context.Context, q Querier, before time.Time) error {
	_, err := q.Exec(ctx, `delete from climate_intent where at < $1 and state <> 'planned'`, before)
	return err
}
