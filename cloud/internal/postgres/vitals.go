package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Vitals is what the whole service's rows say about its health; every replica reads the same.
type Vitals struct {
	Reservations map[string]int // live ones by state; DONE only while they are ahead or running
	Payments     map[string]int // those of the last day by the state of their reservation
	Refunds      map[string]int // not completed, by state; REFUSED of the last day
	Messages     map[string]int // not sent, by state; FAILED of the last day
	Jobs         map[string]int // of the queue by state, finished ones left out

	OldestJob, OldestMessage, OldestPayment, OldestCallback time.Duration // 0: nothing waits

	Differences            int // from the provider's books, unresolved
	Branches, AgentsOnline int
}

// ReadVitals takes the figures. All of it is found by partial indexes, or in tables as small as the number of branches.
func ReadVitals(ctx context.Context, q Querier, now time.Time) (v Vitals, err error) {
	day := now.Add(-24 * time.Hour)
	for _, count := range []struct {
		into *map[string]int
		sql  string
		args []any
	}{
		{&v.Reservations, `select state, count(*) from reservation
			where state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING') and upper(occupied) > $1
			  and (state <> 'HOLD' or expires_at > $1) group by 1`, []any{now}},
		{&v.Payments, `select r.state, count(*) from payment p join reservation r on r.id = p.reservation_id
			where p.attempted_at > $1 group by 1`, []any{day}},
		{&v.Refunds, `select state, count(*) from refund where state <> 'COMPLETED' and (state <> 'REFUSED' or updated_at > $1) group by 1`, []any{day}},
		{&v.Messages, `select state, count(*) from message
			where state in ('QUEUED', 'SENDING') or state = 'FAILED' and created_at > $1 group by 1`, []any{day}},
		{&v.Jobs, `select state::text, count(*) from river_job where state in ('available', 'pending', 'retryable', 'running', 'scheduled') and $1 group by 1`, []any{true}},
	} {
		if *count.into, err = counts(ctx, q, count.sql, count.args...); err != nil {
			return v, err
		}
	}
	var job, message, payment, callback float64
	err = q.QueryRow(ctx, `
		select coalesce((select extract(epoch from $1 - min(scheduled_at)) from river_job where state in ('available', 'retryable') and scheduled_at < $1), 0)::float8,
		       coalesce((select extract(epoch from $1 - min(next_at)) from message where state in ('QUEUED', 'SENDING') and next_at < $1), 0)::float8,
		       coalesce((select extract(epoch from $1 - min(updated_at)) from reservation where state in ('CONFIRMING', 'CANCELING')), 0)::float8,
		       coalesce((select extract(epoch from $1 - min(received_at)) from webhook_event where applied_at is null), 0)::float8,
		       (select count(*) from reconciliation_difference where resolved_at is null),
		       (select count(*) from branch),
		       (select count(*) from agent_inventory where online)`, now,
	).Scan(&job, &message, &payment, &callback, &v.Differences, &v.Branches, &v.AgentsOnline)
	v.OldestJob, v.OldestMessage, v.OldestPayment, v.OldestCallback = age(job), age(message), age(payment), age(callback)
	return v, err
}

// age is never negative: clocks of machines differ a little.
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
