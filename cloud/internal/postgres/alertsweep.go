package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// AlertLimits are the thresholds of alerts that the sweep finds.
type AlertLimits struct {
	Offline      time.Duration // a branch without its agent, apart from short presences
	Away         time.Duration // that a branch must have been without it at a stretch: a connection that is lost for moments still opens doors
	Mass         int           // branches lost within MassWindow are one alert of all branches
	MassWindow   time.Duration
	MassCover    time.Duration // after the beginning of such an alert, branches that are lost belong to it
	MassEnd      int           // with fewer branches offline it is over
	Stale        time.Duration // an agent without reports for this long is lost, whatever the last one was
	Undelivered  time.Duration // of a message with a key
	Unclear      time.Duration // of a payment
	Silent       time.Duration // of a sensor
	FirstReading time.Duration // since the agent has connected: its own clock may not show that it has just started
	Frozen       time.Duration // of a sensor that only repeats a reading: a real one varies in its last digits
	Settle       time.Duration // after which the room of a stay is in the band of its climate policy
	NoArrival    time.Duration // since the start of a stay
	Quiet        time.Duration // after which an event that has no end, such as a forced door, counts as over
	Journal      time.Duration // likewise a break in the journal of an agent
	Clock        time.Duration // difference of an agent's clock; half of it ends the alert
	ClockSettle  time.Duration // since the agent has connected: a Pi without a clock battery gets the time from the same network
	Beacon       time.Duration // since an agent has connected, in which its keypads have received the time
	Passes       time.Duration // since an agent has acknowledged a list of passes, which it receives every 15 minutes; one may be lost
	MinCelsius   float64
	MaxCelsius   float64
	Reconcile    time.Duration // since the last complete comparison with the provider's books
	Certificate  time.Duration // before its end
	FailedWindow time.Duration // within which failed presses of a stay count
}

// AlertSweep is the situation in which alerts are found.
type AlertSweep struct {
	AlertLimits
	Now time.Time
	// Up is since when this service has worked without interruption: what was missing before counts from here.
	Up time.Time
	// Heard is since when the broker has been connected; zero: it is not.
	Heard          time.Time
	CertificateEnd time.Time // of the MQTT listener; zero: none
	KeyTemplates   []string  // of messages that carry a key
}

// condition finds the alerts of a kind: rows (branch, subject, since, due). One that is due is opened; one that is open ends
// when it is no longer found.
type condition struct {
	kind string
	sql  string
	args []any
}

// conditions that are looked up at every sweep. Those of rows with a trigger (migration 00100) are missing.
func (s AlertSweep) conditions() []condition {
	after := func(d time.Duration) time.Time { return s.Now.Add(-d) }
	list := []condition{
		// Presses that failed without a later success at that door. Failures because the branch was offline or the
		// stay had changed are no evidence about the door.
		{"door-failing", `
			select code, device, min(since), bool_or(due) from (
				select b.code, d.device, min(d.created_at) as since, count(*) >= 2 as due
				from door_request d join branch b on b.id = d.branch_id
				where d.state in ('FAILED', 'UNKNOWN') and d.created_at > $3 and d.reservation_id is not null
				  and coalesce(d.detail, '') not in ('` + Offline + `', 'claim denied')
				  and not exists (select from door_request s where s.branch_id = d.branch_id and s.created_at > d.created_at
				                  and s.device = d.device and s.state = 'SUCCESS')
				group by b.code, d.device, d.reservation_id
			) stay group by code, device`, []any{after(s.FailedWindow)}},
		{"door-forced", `
			select a.branch, a.subject, a.since, false from alert a join branch b on b.code = a.branch
			where a.kind = 'door-forced' and a.ended_at is null
			  and exists (select from door_event e where e.branch_id = b.id and e.at > $3 and e.device = a.subject and e.kind = 'forced')`,
			[]any{after(s.Quiet)}},
		// A trigger begins and ends it. Without its contact, no closing of the door is reported.
		{"door-held", `
			select a.branch, a.subject, a.since, false from alert a join branch b on b.code = a.branch join agent_inventory i on i.branch_id = b.id
			where a.kind = 'door-held' and a.ended_at is null and ` + hasContact("a.subject"), nil},
		// A disclosure begins it, another PIN ends it. At a door with another keypad, or one that was deleted, there is no PIN to change.
		{"pin-exposed", `
			select a.branch, a.subject, a.since, false from alert a join branch b on b.code = a.branch
			join door_pin p on p.branch_id = b.id and p.device = a.subject
			where a.kind = 'pin-exposed' and a.ended_at is null and ` + staticKeypad("a.subject"), nil},
		{"reader-lockout", `
			select a.branch, a.subject, a.since, false from alert a join branch b on b.code = a.branch, lateral ` + lockOut("$2::timestamptz") + ` l
			where a.kind = 'reader-lockout' and a.ended_at is null and l.until > $2`, nil},
		{"key-undelivered", `
			select b.code, 'reservation:' || m.reservation_id, min(m.created_at),
			       bool_or(m.state = 'FAILED' or greatest(m.created_at, $4) <= $5)
			from message m join reservation r on r.id = m.reservation_id join branch b on b.id = r.branch_id
			where (m.state in ('QUEUED', 'SENDING') or m.state = 'FAILED' and m.created_at > $6) and m.template = any($3)
			  and r.state = 'DONE' and ` + stayEnd + ` > $7
			  and not exists (select from message o where o.reservation_id = m.reservation_id and o.id > m.id
			                  and o.template = any($3) and o.state = 'SENT')
			group by b.code, m.reservation_id`,
			[]any{s.KeyTemplates, s.Up, after(s.Undelivered), after(366 * 24 * time.Hour), s.Now}},
		{"payment-unclear", `
			select b.code, 'reservation:' || r.id, r.updated_at, greatest(r.updated_at, $3) <= $4
			from reservation r join branch b on b.id = r.branch_id
			where r.state in ('CONFIRMING', 'CANCELING') and r.updated_at <= $4
			  and not exists (select from refund f where f.reservation_id = r.id and f.state in ('PENDING', 'FAILED'))`,
			[]any{s.Up, after(s.Unclear)}},
		// An agent that has connected as soon as it had started, by its own clock, had the right time already.
		{"clock", `
			select b.code, 'agent', i.seen_at, abs(i.clock_offset_ms) >= $3::bigint
			       and coalesce(i.presence_since <= $4 or i.presence_since - i.started_at <= $5::interval, true)
			from agent_inventory i join branch b on b.id = i.branch_id
			where i.online and abs(i.clock_offset_ms) >= $3::bigint / 2`, []any{s.Clock.Milliseconds(), after(s.ClockSettle), s.Clock}},
		{"keypad-outdated", `
			with reading as materialized (
				select b.code, coalesce(greatest(i.presence_since, c.activated_at), $3) as since, c.report ->> 'passClock' as clock, p.applied_at
				from agent_inventory i join branch b on b.id = i.branch_id
				join agent_credential c on c.branch_id = i.branch_id and c.active and c.revoked_at is null left join pass_agent p on p.username = c.username
				where i.online and jsonb_array_length(coalesce(nullif(i.inventory -> 'keypads', 'null'), '[]')) > 0
			)
			select code, 'clock', since, greatest(since, $3) <= $4 from reading where clock = 'untrusted'
			union all
			select code, 'passes', coalesce(applied_at, since), $3 <= $5 from reading where greatest(applied_at, since) <= $5`,
			[]any{s.Up, after(s.Beacon), after(s.Passes)}},
		{"certificate", `select '', 'mqtt', $4::timestamptz, true where $3`,
			[]any{!s.CertificateEnd.IsZero() && s.CertificateEnd.Before(s.Now.Add(s.Certificate)), s.Now}},
		{"service-check", `select '', name, since, true from doctor_check where state = 'fail' and $3`, []any{true}},
		{"reconciliation-late", `
			select '', '', at, $4::timestamptz <= $5 from work_success where work = '` + WorkReconciliation + `' and at <= $3`,
			[]any{after(s.Reconcile), s.Up, after(time.Hour)}},
	}
	if !s.Heard.IsZero() {
		list = append(list, s.offline())
	}
	return list
}

// offline finds lost branches. If many are lost at about the same time, they are one alert of all branches, which covers until its end was
// announced those that are lost with them or within MassCover. Branches with an alert of their own, such as closed ones, do not count for its
// beginning and end.
func (s AlertSweep) offline() condition {
	return condition{"branch-offline", `
		with gone as materialized (
			select b.code, case when i.online then i.seen_at else greatest(i.presence_since, i.seen_at) end as away,
			       case when i.online then i.seen_at else least(i.lost_since, greatest(i.presence_since, i.seen_at)) end as since,
			       exists (select from alert o where o.kind = 'branch-offline' and o.branch = b.code and o.ended_at is null) as known
			from agent_inventory i join branch b on b.id = i.branch_id where not i.online or i.seen_at <= $4
		), covered as materialized (
			select coalesce(max(since) + $9::interval, '-infinity') as until from alert where kind = 'branch-offline' and branch = '' and closed_at is null
		), mass as materialized (
			select min(since) as since, coalesce(bool_or(last - since <= $6 and since <= $5), false) as due
			from (select since, lead(since, $7::integer - 1) over (order by since) as last
			      from (select greatest(since, $3) as since from gone, covered where not known and since > until) fresh) ordered
		)
		select code, '', since, greatest(since, $3) <= $5 and away <= $10 and since > (select until from covered) and not (select due from mass) from gone
		union all
		select '', '', since, due from mass where due or (select count(*) from gone where not known) >= $8`,
		[]any{s.Heard, s.Now.Add(-s.Stale), s.Now.Add(-s.Offline), s.MassWindow, s.Mass, s.MassEnd, s.MassCover, s.Now.Add(-s.Away)}}
}

// outOfBand is how far a sensor is outside the band of the climate policy of a room with a stay that began before $6; null if it
// has none, or if the guest or staff have chosen another temperature.
const outOfBand = `(
	select max(greatest(p.low - last.celsius, last.celsius - p.high)) from climate_policy p join reservation r on r.id = p.owner
	where p.branch_id = i.branch_id and p.sensor = location.value and p.owner_since <= $6 and r.start_at <= $6
	  and exists (select from reservation e where (e.id = r.id or e.extends = r.id) and e.state = 'DONE' and e.end_at > $2)
	  and not exists (select from climate_choice c where c.reservation_id = r.id)
	  and not exists (select from airconditioner_command c where c.branch_id = p.branch_id and c.unit = p.unit and c.at >= p.owner_since
	                  and c.outcome = 'sent' and c.requested_by <> $7))`

// slowConditions are looked up less often, because they read a row of every sensor and of every present stay.
func (s AlertSweep) slowConditions() []condition {
	const sensors = `
		from agent_inventory i join branch b on b.id = i.branch_id,
		     jsonb_array_elements_text(coalesce(nullif(i.inventory -> 'sensors', 'null'), '[]')) location
		left join lateral (select at, celsius, humidity from sensor_reading s where s.branch_id = i.branch_id and s.location = location.value
		                   and s.at > $2::timestamptz - interval '7 days' order by at desc limit 1) last on true
		where i.online `
	return []condition{
		// As with messages, a guest to whom none was sent may be one whom staff expect in person.
		{"no-arrival", `
			select b.code, 'reservation:' || r.id, r.start_at, r.start_at <= $3
			from reservation r join branch b on b.id = r.branch_id
			where ` + announcedStay + ` and r.start_at <= $2 and ` + stayEnd + ` - ` + unlockLead + ` > $2
			  and exists (select from message g where g.reservation_id = r.id) and ` + notArrived, []any{s.Now.Add(-s.NoArrival)}},
		{"sensor-silent", `
			select b.code, location.value, coalesce(last.at, i.started_at), last.at > $3 or greatest(last.at, i.started_at, $4) <= $3 and coalesce(i.presence_since <= $7, true)` + sensors +
			`and (last.at is null or last.at <= $3 or exists (
				select from sensor_reading s where s.branch_id = i.branch_id and s.location = location.value and s.at > $5 and s.at <= $6
			) and not exists (
				select from sensor_reading s where s.branch_id = i.branch_id and s.location = location.value and s.at > $5
				   and (s.celsius, s.humidity) <> (last.celsius, last.humidity)))`,
			[]any{s.Now.Add(-s.Silent), s.Up, s.Now.Add(-s.Frozen - time.Hour), s.Now.Add(-s.Frozen), s.Now.Add(-s.FirstReading)}},
		{"sensor-threshold", `
			select b.code, location.value, last.at, last.celsius not between $4 and $5 or ` + outOfBand + ` >= 1` + sensors +
			`and last.at > $3 and (last.celsius not between $4::float8 + 1 and $5::float8 - 1 or ` + outOfBand + ` > 0)`,
			[]any{s.Now.Add(-s.Silent), s.MinCelsius, s.MaxCelsius, s.Now.Add(-s.Settle), ClimateActor}},
	}
}

// noteLost records as offline the agents that have not reported for Stale: the service may have been away when they disconnected.
func (s AlertSweep) noteLost(ctx context.Context, tx pgx.Tx) error {
	before := s.Now.Add(-s.Stale)
	if s.Heard.IsZero() || s.Heard.After(before) {
		return nil
	}
	batch := new(pgx.Batch)
	batch.Queue(`update agent_inventory set online = false, presence_since = seen_at where branch_id in (
		select branch_id from agent_inventory where online and seen_at <= $1 for no key update skip locked)`, before)
	batch.Queue(`update agent_credential set online = false where username in (
		select username from agent_credential where online and seen_at <= $1 for no key update skip locked)`, before)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("note lost agents: %w", err)
	}
	return nil
}

// SweepAlerts opens the alerts whose condition holds and ends those whose condition does not hold any more, in tx. It records lost agents.
func SweepAlerts(ctx context.Context, tx pgx.Tx, s AlertSweep, slow bool) error {
	if err := s.noteLost(ctx, tx); err != nil {
		return err
	}
	list := s.conditions()
	if slow {
		list = append(list, s.slowConditions()...)
	}
	for _, c := range list {
		_, err := tx.Exec(ctx, `
			with found (branch, subject, since, due) as materialized (`+c.sql+`
			), ended as (
				update alert a set ended_at = greatest($2, a.since) where a.kind = $1 and a.ended_at is null
				  and not exists (select from found f where f.branch = a.branch and f.subject = a.subject)
			)
			select alert_open($1, f.branch, f.subject, f.since) from found f
			where f.due and not exists (
				select from alert o where o.kind = $1 and o.branch = f.branch and o.subject = f.subject and o.ended_at is null)
			order by f.branch, f.subject`, append([]any{c.kind, s.Now}, c.args...)...)
		if err != nil {
			return fmt.Errorf("alerts %s: %w", c.kind, err)
		}
	}
	if !slow {
		return nil
	}
	// A partner's booking in conflict is over (reserve opens the alert, and ends it when the conflict is resolved).
	_, err := tx.Exec(ctx, `
		update alert a set ended_at = greatest($1, a.since) where a.kind = 'discrepancy' and a.subject like 'reservation:%' and a.ended_at is null
		  and not exists (select from reservation r where r.id = substr(a.subject, 13)::bigint and r.state in ('DONE', 'CONFLICT') and `+stayEnd+` > $1)`, s.Now)
	if err != nil {
		return fmt.Errorf("alerts about partners' bookings: %w", err)
	}
	// A break in the journal of an agent (package pass) is an event, too.
	_, err = tx.Exec(ctx, `
		update alert set ended_at = $1 where kind = 'discrepancy' and subject like 'journal %' and ended_at is null and since <= $2`, s.Now, s.Now.Add(-s.Journal))
	if err != nil {
		return fmt.Errorf("alerts about journals: %w", err)
	}
	return nil
}
