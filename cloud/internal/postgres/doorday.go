package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/door"
)

// doorDays computes the rows of door_day for branches $1 (null: all) from requests since $2. Failures because the branch was
// offline or the stay had changed are no evidence about the door.
const doorDays = `
	select d.branch_id, d.device, (d.created_at at time zone b.time_zone)::date as day,
	       count(*)::integer as presses, count(*) filter (where d.state = 'SUCCESS')::integer as success,
	       (percentile_disc(0.5) within group (order by d.took) filter (where d.state = 'SUCCESS'))::integer as p50,
	       (percentile_disc(0.95) within group (order by d.took) filter (where d.state = 'SUCCESS'))::integer as p95,
	       count(*) filter (where d.before > d.created_at - interval '1 minute')::integer as retries,
	       coalesce((select count(*) from audit a where a.branch_id = d.branch_id and a.action = 'pin.reveal' and a.target = d.device
	                 and (a.at at time zone b.time_zone)::date = (min(d.created_at) at time zone b.time_zone)::date and a.at > $2), 0)::integer as pins
	from (
		select branch_id, device, state, created_at, extract(epoch from finished_at - created_at) * 1000 as took,
		       lag(created_at) over (partition by branch_id, device, reservation_id order by created_at) as before
		from door_request
		where created_at > $2 and state in ('SUCCESS', 'FAILED', 'UNKNOWN') and coalesce(detail, '') not in ('` + Offline + `', 'claim denied')
		  and ($1::integer[] is null or branch_id = any($1))
	) d join branch b on b.id = d.branch_id
	group by d.branch_id, b.time_zone, d.device, (d.created_at at time zone b.time_zone)::date`

// doorBackfill is how far back days are computed at most.
const doorBackfill = 35 * 24 * time.Hour

// PutDoorDays stores the days that are over and not stored yet.
func PutDoorDays(ctx context.Context, q Querier, now time.Time) error {
	// Days are stored for all branches at once, and the job may have stood still for days. Zones differ by more than a day.
	var since time.Time
	if err := q.QueryRow(ctx, `select greatest(coalesce(max(day) - 1, '-infinity'), $1) from door_day`, now.Add(-doorBackfill)).Scan(&since); err != nil {
		return fmt.Errorf("door days: %w", err)
	}
	// The first day of the window is incomplete, and the present day is not over.
	_, err := q.Exec(ctx, `
		insert into door_day (branch_id, device, day, presses, success, p50_ms, p95_ms, retries, pins)
		select t.branch_id, t.device, t.day, t.presses, t.success, t.p50, t.p95, t.retries, t.pins from (`+doorDays+`) t join branch b on b.id = t.branch_id
		where t.day < ($3 at time zone b.time_zone)::date and t.day > ($2 at time zone b.time_zone)::date
		on conflict do nothing`, nil, since, now)
	if err != nil {
		return fmt.Errorf("door days: %w", err)
	}
	return nil
}

// DoorLevels returns the last days of the doors of branches (codes; nil: all), today included. Each branch has its own today.
func DoorLevels(ctx context.Context, q Querier, branches []string, days int, now time.Time) ([]door.Level, error) {
	rows, err := q.Query(ctx, `
		with chosen as (select id, code, time_zone from branch where $3::text[] is null or code = any($3))
		select c.code, t.device, t.day, t.presses, t.success, coalesce(t.p50, 0), coalesce(t.p95, 0), t.retries, t.pins from (
			select branch_id, device, day, presses, success, p50_ms as p50, p95_ms as p95, retries, pins from door_day
			where branch_id = any(array(select id from chosen)) and day >= ($5 at time zone 'UTC')::date - $4::integer
			union all
			select branch_id, device, day, presses, success, p50, p95, retries, pins from (`+doorDays+`) t
			where not exists (select from door_day o where o.branch_id = t.branch_id and o.device = t.device and o.day = t.day)
		) t join chosen c on c.id = t.branch_id
		where t.day > ($5 at time zone c.time_zone)::date - $4::integer
		order by c.id, t.device, t.day`, nil, now.Add(-26*time.Hour), branches, days, now)
	if err != nil {
		return nil, fmt.Errorf("door levels: %w", err)
	}
	var levels []door.Level
	var (
		branch, device string
		day            door.Day
	)
	_, err = pgx.ForEachRow(rows, []any{&branch, &device, &day.Date, &day.Presses, &day.Success, &day.P50, &day.P95, &day.Retries, &day.PINs}, func() error {
		if n := len(levels); n == 0 || levels[n-1].Branch != branch || levels[n-1].Device != device {
			levels = append(levels, door.Level{Branch: branch, Device: device})
		}
		last := &levels[len(levels)-1]
		last.Days = append(last.Days, day)
		return nil
	})
	return levels, err
}
