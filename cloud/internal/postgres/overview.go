package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// BranchOverview is the state of a branch at a glance.
type BranchOverview struct {
	ID             int
	Branch         string // code
	NameKo, NameEn string
	Online         *bool      // nil: it never had an agent
	Since          *time.Time // when Online changed last
	OpenAlerts     int
	WorstAlert     *string // kind of the most severe open alert
	Severity       int
	Rooms          int
	OccupiedRooms  int
	NextArrival    *time.Time
	TodayAmount    int64
	Presses        int // of doors in seven days
	Success        int
}

// OverviewQuery selects a page of the overview.
type OverviewQuery struct {
	Branches []string // codes; nil: all
	Severe   []string // kinds of alerts, the most severe first
	// The page begins behind the branch with this severity and id; zero: the first page.
	AfterSeverity, AfterID int
	Limit                  int
}

// The severities of a branch without alerts.
const (
	neverConnected = 1000 // no agent was ever connected, so no door opens; setting up a branch raises no alert
	healthy        = 1001
)

// severity is that of branch b with its agent i and its open alerts o, the most severe first.
const severity = `case when not i.online then 0 else coalesce(o.severity, case when i.online is null then $8::integer else $3::integer end) end`

// Overview returns branches with what needs attention, the worst first: by their most severe open alert, offline ones among
// them, then those whose agent was never connected, and in the order in which they were added.
func Overview(ctx context.Context, q Querier, o OverviewQuery, now time.Time) ([]BranchOverview, error) {
	rows, err := q.Query(ctx, `
		with open as (
			select branch, count(*) as alerts, min(coalesce(array_position($2::text[], kind), 999)) as severity
			from alert where ended_at is null and branch <> '' group by branch
		), page as (
			select b.id, b.code, b.name_ko, b.name_en, b.time_zone, i.online, greatest(i.presence_since, case when not i.online then i.seen_at end) as since,
			       coalesce(o.alerts, 0) as alerts, o.severity as worst, `+severity+` as severity
			from branch b left join agent_inventory i on i.branch_id = b.id left join open o on o.branch = b.code
			where ($1::text[] is null or b.code = any($1))
			  and (`+severity+`, b.id) > ($4::integer, $5::integer)
			order by severity, b.id limit $6
		), today as (
			select id, date_trunc('day', $7::timestamptz at time zone time_zone) at time zone time_zone as start,
			       (date_trunc('day', $7::timestamptz at time zone time_zone) + interval '1 day') at time zone time_zone as until, time_zone from page
		)
		select p.id, p.code, p.name_ko, p.name_en, p.online, p.since, p.alerts, ($2::text[])[p.worst], p.severity,
		       (select count(*) from room m where m.branch_id = p.id and m.enabled),
		       (select count(distinct r.room_id) from reservation r where r.branch_id = p.id and r.state = 'DONE'
		        and r.start_at > $7::timestamptz - `+maxLength+` and r.start_at <= $7 and r.end_at > $7),
		       (select min(r.start_at) from reservation r where r.branch_id = p.id and r.state = 'DONE' and r.extends is null and r.start_at > $7),
		       (select coalesce(sum(e.won), 0) from money_entry e where e.reservation_id in (
		           select m.reservation_id from money_entry m
		           where m.branch_id = p.id and m.kind = 'paid' and m.at >= t.start and m.at < t.until)),
		       l.presses, l.success
		from page p join today t on t.id = p.id, lateral (
			select coalesce(sum(presses), 0) as presses, coalesce(sum(success), 0) as success from (
				select d.presses, d.success from door_day d where d.branch_id = p.id and d.day > ($7 at time zone t.time_zone)::date - 7
				union all
				select count(*), count(*) filter (where d.state = 'SUCCESS') from door_request d
				where d.branch_id = p.id and d.created_at >= t.start and d.state in ('SUCCESS', 'FAILED', 'UNKNOWN')
				  and coalesce(d.detail, '') not in ('`+Offline+`', 'claim denied')
			) days) l
		order by p.severity, p.id`,
		o.Branches, o.Severe, healthy, o.AfterSeverity, o.AfterID, o.Limit, now, neverConnected)
	if err != nil {
		return nil, fmt.Errorf("overview: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[BranchOverview])
}

// LiveOverview returns a fingerprint of each branch (codes; nil: all) for the overview: its agent and its open alerts. Alerts
// of all branches have the empty code.
func LiveOverview(ctx context.Context, q Querier, branches []string) (map[string]string, error) {
	rows, err := q.Query(ctx, `
		select code, string_agg(state, ' ' order by state) from (
			select b.code, 'agent ' || i.online as state from agent_inventory i join branch b on b.id = i.branch_id
			union all
			select branch, concat('alert ', id, acknowledged_by) from alert where ended_at is null
		) s where $1::text[] is null or code = any($1) group by code`, branches)
	if err != nil {
		return nil, fmt.Errorf("live overview: %w", err)
	}
	found := map[string]string{}
	var code, state string
	_, err = pgx.ForEachRow(rows, []any{&code, &state}, func() error {
		found[code] = state
		return nil
	})
	return found, err
}

// SoldTime is a reservation of a report.
type SoldTime struct {
	Room   int
	Start  time.Time
	End    time.Time // real
	Amount int       // won that were kept
}

// SoldTimes returns the stays of a branch that are confirmed and overlap a window.
func SoldTimes(ctx context.Context, q Querier, branch int, from, until time.Time) ([]SoldTime, error) {
	rows, err := q.Query(ctx, `
		select m.no, r.start_at, r.end_at, coalesce(r.amount, 0) + coalesce(
		       (select sum(e.won) from money_entry e where e.reservation_id = r.id and e.kind in ('refunded', 'outside')), 0)
		from reservation r join room m on m.id = r.room_id
		where r.branch_id = $1 and r.state = 'DONE' and `+overlaps("r", "$2", "$3")+`
		order by r.start_at`, branch, from, until)
	if err != nil {
		return nil, fmt.Errorf("sold times: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[SoldTime])
}
