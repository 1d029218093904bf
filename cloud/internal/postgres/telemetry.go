package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/protocol"
)

// The kinds of door events that the cloud derives, in addition to those that agents report.
const (
	DoorForced = "forced" // the leaf opened without an unlock from outside or a press of the exit button
	DoorHeld   = "held"   // the leaf has been open for too long
)

// passWindow is the time after an unlock or a press of the exit button within which the door may open.
const passWindow = 10 * time.Second

// Telemetry is a telemetry message of an agent.
type Telemetry struct {
	Agent protocol.Agent
	protocol.Telemetry
}

// InsertTelemetry stores readings and door events of several branches. now is the time of arrival. An agent's clock may be wrong:
// the time of an event is that of its arrival without the time for which it waited in the agent. The commit does not wait for
// the disk, because agents keep this data in memory only, too.
func InsertTelemetry(ctx context.Context, q Querier, messages []Telemetry, now time.Time) error {
	batch := new(pgx.Batch)
	var (
		readings []reading
		events   []event
	)
	for _, t := range messages {
		for _, r := range t.Readings {
			readings = append(readings, reading{t.Agent.Branch, r})
		}
		for _, e := range t.Events {
			events = append(events, event{t.Agent.Branch, t.At, now.Add(-t.Age()), e})
		}
	}
	if len(readings) > 0 {
		queueReadings(batch, readings, now)
	}
	// An opening is explained by the events before it. Agents of earlier versions may send them after it.
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	for len(events) > 0 {
		n := len(events)
		if i := slices.IndexFunc(events, func(e event) bool { return e.Kind == protocol.EventDoorOpened }); i >= 0 {
			n = i + 1
		}
		queueEvents(batch, events[:n])
		if e := events[n-1]; e.Kind == protocol.EventDoorOpened {
			queueForced(batch, e)
		}
		events = events[n:]
	}
	if batch.Len() == 0 {
		return nil
	}
	queueClockOffsets(batch, messages, now)
	return q.SendBatch(ctx, batch).Close()
}

type reading struct {
	branch string
	protocol.Reading
}

type event struct {
	branch string
	told   time.Time // by the agent's clock
	at     time.Time
	protocol.Event
}

// eventDetail is the detail of a row of door_event.
type eventDetail struct {
	AgentTime   time.Time `json:"agentTime"`
	EnergizedMs uint32    `json:"energizedMs,omitempty"`
	Detail      string    `json:"detail,omitempty"`
}

// queueReadings writes readings. If several messages of a batch have a reading of the same location, the last one wins.
func queueReadings(batch *pgx.Batch, readings []reading, now time.Time) {
	batch.Queue(`
		with `+relaxed+`
		insert into sensor_reading (branch_id, location, at, celsius, humidity)
		select b.id, r.location, $1, r.celsius, r.humidity
		from unnest($2::text[], $3::text[], $4::float8[], $5::float8[])
		     with ordinality as r (code, location, celsius, humidity, place)
		join branch b on b.code = r.code, relaxed
		order by r.place desc
		on conflict do nothing`,
		now,
		array(readings, func(r reading) string { return r.branch }),
		array(readings, func(r reading) string { return r.Location }),
		array(readings, func(r reading) float64 { return r.Celsius }),
		array(readings, func(r reading) float64 { return r.RelativeHumidity }))
}

// queueEvents writes events in the order of the list.
func queueEvents(batch *pgx.Batch, events []event) {
	batch.Queue(`
		with `+relaxed+`
		insert into door_event (branch_id, device, kind, at, request_id, detail)
		select b.id, e.device, e.kind, e.at, nullif(e.request, '')::uuid, e.detail
		from unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[])
		     with ordinality as e (at, code, device, kind, request, detail, place)
		join branch b on b.code = e.code, relaxed
		order by e.place`,
		array(events, func(e event) time.Time { return e.at }),
		array(events, func(e event) string { return e.branch }),
		array(events, func(e event) string { return e.Device }),
		array(events, func(e event) string { return string(e.Kind) }),
		array(events, func(e event) string { return e.RequestID }),
		array(events, func(e event) eventDetail { return eventDetail{e.told, e.EnergizedMs, e.Detail} }))
}

// pinWindow is the time after a disclosure within which a guest may use the PIN: the longest stay, apart from bookings of partners.
const pinWindow = booking.MaxLength

// knownToLongStay is the condition that PIN p may be known to the guest of a partner's booking of days that is in progress in branch b at
// $4: a press of this guest failed before the last disclosure.
var knownToLongStay = `exists (
	select from reservation x join reservation r on r.id = x.extends join door_request d on d.reservation_id = r.id
	where x.branch_id = b.id and x.state = 'DONE' and x.start_at <= $4 and x.end_at > $4 and x.start_at > $4::timestamptz - ` + maxLength + `
	  and d.device = p.device and d.state in ('FAILED', 'UNKNOWN') and d.created_at <= p.revealed_at)`

// queueForced writes that a door was forced, unless an unlock, the exit button or the keypad explains the opening. A sense
// line reports a release by the keypad; without a sense line, a recently disclosed PIN explains it. Doors without a
// monitored exit button are skipped, because every guest who leaves would look like a break-in.
func queueForced(batch *pgx.Batch, e event) {
	batch.Queue(`
		insert into door_event (branch_id, device, kind, at)
		select b.id, $2, $3, $4
		from branch b join agent_inventory i on i.branch_id = b.id
		where b.code = $1
		  and exists (select from jsonb_array_elements(i.inventory -> 'doors') door
		              where door ->> 'device' = $2 and (door ->> 'exit')::boolean)
		  and not exists (select from door_event e
		                  where e.branch_id = b.id and e.device = $2 and e.at > $5 and e.at <= $4
		                    and e.kind in ('energized', 'released', 'exit-pressed', 'lock-released'))
		  and not exists (select from door_pin p
		                  where p.branch_id = b.id and p.device = case when $2 like 'front%' then 'front' else $2 end and (p.revealed_at > $6 or `+knownToLongStay+`)
		                    and not exists (select from jsonb_array_elements(i.inventory -> 'doors') door
		                                    where door ->> 'device' = $2 and (door ->> 'sense')::boolean))`,
		e.branch, e.Device, DoorForced, e.at, e.at.Add(-passWindow), e.at.Add(-pinWindow))
}

// Contact is the level of a door contact in an agent's status message.
type Contact struct {
	Branch string // code
	protocol.Contact
}

// settledLevel is the minimum age of a level. The event of a more recent change may still arrive.
const settledLevel = 5 * time.Second

// PutContacts writes the missing event if a contact's level differs from its last event of the day. The event happened
// before the agent started, or its message was lost.
func PutContacts(ctx context.Context, q Querier, contacts []Contact, now time.Time) error {
	_, err := q.Exec(ctx, `
		insert into door_event (branch_id, device, kind, at, detail)
		select b.id, c.device, c.kind, greatest(c.since, $6, last.at + interval '1 ms'), '{"detail": "level"}'
		from (select *, case when open then 'door-opened' else 'door-closed' end as kind
		      from unnest($1::text[], $2::text[], $3::boolean[], $4::timestamptz[]) u (code, device, open, since)) c
		join branch b on b.code = c.code
		left join lateral (
			select e.kind, e.at from door_event e
			where e.branch_id = b.id and e.at > $5 and e.device = c.device and e.kind in ('door-opened', 'door-closed')
			order by e.at desc, e.id desc limit 1) last on true
		where last.kind is distinct from c.kind`,
		array(contacts, func(c Contact) string { return c.Branch }),
		array(contacts, func(c Contact) string { return c.Device }),
		array(contacts, func(c Contact) bool { return c.Open }),
		array(contacts, func(c Contact) time.Time {
			return now.Add(-time.Duration(min(c.ForMs, uint64(24*time.Hour/time.Millisecond))) * time.Millisecond)
		}),
		now.Add(-24*time.Hour), now.Add(-time.Hour))
	return err
}

// Settled reports whether the level has lasted long enough.
func (c Contact) Settled() bool { return c.ForMs >= uint64(settledLevel.Milliseconds()) }

// hasContact is the condition that the agent with inventory i has a contact of a door.
func hasContact(device string) string {
	return `exists (
		select from jsonb_array_elements(coalesce(nullif(i.inventory -> 'doors', 'null'), '[]')) door
		where door ->> 'device' = ` + device + ` and (door ->> 'contact')::boolean)`
}

// HeldDoor is a door that has been open for too long.
type HeldDoor struct {
	Branch string
	Device string
}

// MarkHeldDoors writes one event for each door that opened more than after ago and has not closed since. Doors that opened
// more than a day ago are ignored. While the agent is offline, and until it has had a minute to report its events, it is not known.
func MarkHeldDoors(ctx context.Context, tx pgx.Tx, after time.Duration, now time.Time) ([]HeldDoor, error) {
	// The lock serializes replicas: the second one finds the event of the first.
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext($1))`, "door-held"); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
		with last as (
			select distinct on (branch_id, device) branch_id, device, kind, at
			from door_event
			where at > $3 and kind in ('door-opened', 'door-closed', 'held')
			order by branch_id, device, at desc, id desc
		), marked as (
			insert into door_event (branch_id, device, kind, at)
			select branch_id, device, $4, $1 from last where kind = 'door-opened' and at < $2
			  and exists (select from agent_inventory i where i.branch_id = last.branch_id and `+reported("$1")+` and `+hasContact("last.device")+`)
			returning branch_id, device
		)
		select b.code, m.device from marked m join branch b on b.id = m.branch_id order by 1, 2`,
		now, now.Add(-after), now.Add(-24*time.Hour), DoorHeld)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[HeldDoor])
}
