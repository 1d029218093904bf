package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Vitals are figures about the whole service, read from the database, so every replica returns the same ones.
type Vitals struct {
	Reservations map[string]int // upcoming and running ones by state
	Payments     map[string]int // those of the last day by the state of their reservation
	Refunds      map[string]int // not completed, by state; REFUSED of the last day
	Messages     map[string]int // not sent, by state; FAILED of the last day
	Jobs         map[string]int // of the queue by state, without finished ones

	Oldest map[string]time.Duration // age of the oldest waiting job, message, payment and callback; 0: none waits

	Differences  int // between the provider's books and ours, unresolved
	Branches     int
	AgentsOnline int

	LastSuccess map[string]time.Time // of recurring work, by name

	OnlineBranches map[string]bool // branches that have ever had an agent
	DoorRequests   []BranchDoors   // of branches with a request in the last six hours
	Doors          []DoorPresses   // of the last six hours, at most MaxDoorFigures

	DoctorChecks []DoctorCheck  // last results
	Settings     map[string]int // active agents by the state of their last settings; stuck: a connected agent has not answered for ten minutes

	Failed map[string]error // figures that were not read, by name
}

// figures are the names of the figures that ReadVitals reads.
var figures = []string{"reservations", "payments", "refunds", "messages", "jobs", "oldest", "totals", "work", "doctor", "branches", "doors", "settings"}

// Figures returns the names of the figures, the keys of Vitals.Failed.
func Figures() []string { return figures }

// ReadVitals reads each figure with a time-out of its own, so that a slow one does not hide the others. The error joins
// those of the failed figures. TestReadsUseIndexes checks that no statement scans the history.
func ReadVitals(ctx context.Context, q Querier, now time.Time, timeout time.Duration) (Vitals, error) {
	day := now.Add(-24 * time.Hour)
	v := Vitals{Failed: map[string]error{}}
	var failed []error
	figure := func(name string, read func(context.Context) error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := read(ctx); err != nil {
			v.Failed[name] = err
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	count := func(name string, into *map[string]int, sql string, args ...any) {
		figure(name, func(ctx context.Context) (err error) {
			*into, err = counts(ctx, q, sql, args...)
			return err
		})
	}
	// A room stays empty for an hour at most after a reservation. The planner has statistics for end_at only.
	count("reservations", &v.Reservations, `select state, count(*) from reservation
		where state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')
		  and end_at > $1::timestamptz - interval '1 hour' and upper(occupied) > $1
		  and (state <> 'HOLD' or expires_at > $1) group by 1`, now)
	count("payments", &v.Payments, `select r.state, count(*) from payment p join reservation r on r.id = p.reservation_id
		where p.attempted_at > $1 group by 1`, day)
	count("refunds", &v.Refunds, `select state, count(*) from refund
		where state <> 'COMPLETED' and (state <> 'REFUSED' or updated_at > $1) group by 1`, day)
	count("messages", &v.Messages, `select state, count(*) from message
		where state in ('QUEUED', 'SENDING', 'FAILED') and (state <> 'FAILED' or created_at > $1) group by 1`, day)
	count("jobs", &v.Jobs, `select state::text, count(*) from river_job
		where state in ('available', 'pending', 'retryable', 'running', 'scheduled') group by 1`)
	figure("oldest", func(ctx context.Context) error {
		var job, message, payment, callback float64
		err := q.QueryRow(ctx, `
			select coalesce((select extract(epoch from $1 - min(scheduled_at)) from river_job where state in ('available', 'retryable') and scheduled_at < $1), 0)::float8,
			       coalesce((select extract(epoch from $1 - min(next_at)) from message where state in ('QUEUED', 'SENDING') and next_at < $1), 0)::float8,
			       coalesce((select extract(epoch from $1 - min(updated_at)) from reservation where state in ('CONFIRMING', 'CANCELING')), 0)::float8,
			       coalesce((select extract(epoch from $1 - min(received_at)) from webhook_event where applied_at is null), 0)::float8`, now,
		).Scan(&job, &message, &payment, &callback)
		v.Oldest = map[string]time.Duration{"job": age(job), "message": age(message), "payment": age(payment), "callback": age(callback)}
		return err
	})
	figure("totals", func(ctx context.Context) error {
		return q.QueryRow(ctx, `
			select (select count(*) from reconciliation_difference where resolved_at is null),
			       (select count(*) from branch),
			       (select count(*) from agent_inventory where online)`,
		).Scan(&v.Differences, &v.Branches, &v.AgentsOnline)
	})
	figure("work", func(ctx context.Context) (err error) {
		v.LastSuccess, err = LastSuccesses(ctx, q)
		return err
	})
	figure("doctor", func(ctx context.Context) (err error) {
		v.DoctorChecks, err = DoctorChecks(ctx, q)
		return err
	})
	count("settings", &v.Settings, `
		select case when s.state = 'asked' and a.online and s.state_at < $1::timestamptz - interval '10 minutes' then 'stuck' else s.state end, count(*)
		from agent_credential a cross join lateral (
			select state, state_at from agent_settings l where l.username = a.username order by version desc limit 1) s
		where a.active and a.revoked_at is null group by 1`, now)
	figure("branches", func(ctx context.Context) error {
		return readBranches(ctx, q, &v, now)
	})
	figure("doors", func(ctx context.Context) (err error) {
		v.Doors, err = readDoors(ctx, q, now)
		return err
	})
	return v, errors.Join(failed...)
}

// BranchDoors counts the ended door requests of a branch by state.
type BranchDoors struct {
	Branch, State string
	Last15m       int
	Last6h        int
}

func readBranches(ctx context.Context, q Querier, v *Vitals, now time.Time) error {
	rows, err := q.Query(ctx, `select b.code, i.online from agent_inventory i join branch b on b.id = i.branch_id`)
	if err != nil {
		return err
	}
	v.OnlineBranches = map[string]bool{}
	var code string
	var online bool
	if _, err := pgx.ForEachRow(rows, []any{&code, &online}, func() error {
		v.OnlineBranches[code] = online
		return nil
	}); err != nil {
		return err
	}
	if rows, err = q.Query(ctx, `
		select b.code, d.state, count(*) filter (where d.created_at > $1), count(*)
		from door_request d join branch b on b.id = d.branch_id
		where d.created_at > $2 and d.state in ('SUCCESS', 'FAILED', 'UNKNOWN') group by b.code, d.state`,
		now.Add(-15*time.Minute), now.Add(-6*time.Hour)); err != nil {
		return err
	}
	v.DoorRequests, err = pgx.CollectRows(rows, pgx.RowToStructByPos[BranchDoors])
	return err
}

// MaxDoorFigures bounds the doors in the figures: each of them is a time series of its own.
const MaxDoorFigures = 200

// DoorPresses counts the presses at a door that opened it and those that failed. Failures because the branch was offline or the
// stay had changed are no evidence about the door.
type DoorPresses struct {
	Branch, Device string
	Opened, Failed int
}

// readDoors returns the doors with presses in the last six hours, those with the most failures first.
func readDoors(ctx context.Context, q Querier, now time.Time) ([]DoorPresses, error) {
	rows, err := q.Query(ctx, `
		select b.code, d.device, count(*) filter (where d.state = 'SUCCESS'), count(*) filter (where d.state <> 'SUCCESS')
		from door_request d join branch b on b.id = d.branch_id
		where d.created_at > $1 and d.state in ('SUCCESS', 'FAILED', 'UNKNOWN') and coalesce(d.detail, '') not in ('`+Offline+`', 'claim denied')
		group by b.code, d.device order by 4 desc, 3 desc, 1, 2 limit $2`, now.Add(-6*time.Hour), MaxDoorFigures)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[DoorPresses])
}

// age is never negative, although the clocks of machines differ slightly.
func age(seconds float64) time.Duration { return time.Duration(max(seconds, 0) * float64(time.Second)) }

func counts(ctx context.Context, q Querier, sql string, args ...any) (map[string]int, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	all := map[string]int{}
	var state string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		all[state] = n
		return nil
	})
	return all, err
}
