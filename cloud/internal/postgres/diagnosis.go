package postgres

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ServerDiagnosis holds the facts about the database server that doctor examines.
type ServerDiagnosis struct {
	Version        string // as reported by the server
	VersionNumber  int    // 150010 is 15.10
	Clock          time.Time
	Standby        bool     // a replica that takes no writes
	ReadOnly       bool     // transactions are read-only by default
	Risky          []string // settings that are off although a crash may then lose committed data
	MaxConnections int
}

// DiagnoseServer reads the facts about the server.
func DiagnoseServer(ctx context.Context, q Querier) (d ServerDiagnosis, err error) {
	err = q.QueryRow(ctx, `
		select current_setting('server_version'), current_setting('server_version_num')::int, clock_timestamp(),
		       pg_is_in_recovery(), current_setting('transaction_read_only')::bool, current_setting('max_connections')::int,
		       array(select name from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name)`,
	).Scan(&d.Version, &d.VersionNumber, &d.Clock, &d.Standby, &d.ReadOnly, &d.MaxConnections, &d.Risky)
	return d, err
}

// SchemaVersions returns the number of the last applied migration (0: none) and of the last existing one.
func SchemaVersions(ctx context.Context, q Querier) (have, want int64, err error) {
	files, err := migrations.ReadDir("migration")
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		number, _, _ := strings.Cut(path.Base(file.Name()), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("migration %s has no number", file.Name())
		}
		want = max(want, n)
	}
	var exists bool
	if err := q.QueryRow(ctx, `select to_regclass($1) is not null`, "goose_db_version").Scan(&exists); err != nil || !exists {
		return 0, want, err
	}
	err = q.QueryRow(ctx, `select coalesce(max(version_id), 0) from goose_db_version where is_applied`).Scan(&have)
	return have, want, err
}

// WorkDiagnosis counts items that should not wait for long.
type WorkDiagnosis struct {
	Unsettled      int // reservations whose confirmation or cancellation has been in progress for 15 minutes
	RefundsFailed  int
	Differences    int // between the provider's books and ours, unresolved
	MessagesFailed int // of the last 24 hours
	Administrators int // that are not disabled
}

// DiagnoseWork counts stuck work.
func DiagnoseWork(ctx context.Context, q Querier, now time.Time) (d WorkDiagnosis, err error) {
	err = q.QueryRow(ctx, `
		select (select count(*) from reservation where state in ('CONFIRMING', 'CANCELING') and updated_at < $1),
		       (select count(*) from refund where state = 'FAILED'),
		       (select count(*) from reconciliation_difference where resolved_at is null),
		       (select count(*) from message where state = 'FAILED' and created_at > $2),
		       (select count(*) from administrator where disabled_at is null)`,
		now.Add(-15*time.Minute), now.Add(-24*time.Hour),
	).Scan(&d.Unsettled, &d.RefundsFailed, &d.Differences, &d.MessagesFailed, &d.Administrators)
	return d, err
}

// DiagnoseDeposits counts deposits to virtual accounts since a time, and those of them without a callback of the provider.
func DiagnoseDeposits(ctx context.Context, q Querier, since time.Time) (deposits, untold int, err error) {
	err = q.QueryRow(ctx, `
		select count(*), count(*) filter (where not exists (select from webhook_event w where w.order_id = r.order_id))
		from payment p join reservation r on r.id = p.reservation_id where p.deposited_at > $1`, since,
	).Scan(&deposits, &untold)
	return deposits, untold, err
}

// BranchDiagnosis holds the facts about a branch that doctor examines.
type BranchDiagnosis struct {
	Code     string
	Zone     string
	Agents   int  // credentials that may connect
	Online   bool // an agent is connected
	Ahead    bool // the active agent uses later grant keys than the database has: it accepts nothing
	SeenAt   time.Time
	PINs     map[string][]byte // sealed, by device
	Rooms    []int             // numbers of the enabled ones
	Unpriced []int             // numbers of enabled rooms without a price: customers cannot reserve them
}

// DiagnoseBranches returns all branches in the order of their creation.
func DiagnoseBranches(ctx context.Context, q Querier) ([]BranchDiagnosis, error) {
	rows, err := q.Query(ctx, `
		select b.code, b.time_zone, (select count(*) from agent_credential a where a.branch_id = b.id and a.revoked_at is null),
		       coalesce(i.online, false), i.seen_at,
		       exists (select from agent_credential a where a.branch_id = b.id and a.active and a.revoked_at is null
		         and (a.report ->> 'keyEpoch')::numeric > (select coalesce(max(epoch), 0) from grant_key_list)),
		       array(select device from door_pin p where p.branch_id = b.id order by device),
		       array(select pin from door_pin p where p.branch_id = b.id order by device),
		       array(select no from room r where r.branch_id = b.id and r.enabled order by no),
		       array(select no from room r where r.branch_id = b.id and r.enabled and coalesce(min10, min30, min60) is null order by no)
		from branch b left join agent_inventory i on i.branch_id = b.id order by b.id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d BranchDiagnosis, err error) {
		var (
			seen    *time.Time
			devices []string
			pins    [][]byte
		)
		err = row.Scan(&d.Code, &d.Zone, &d.Agents, &d.Online, &seen, &d.Ahead, &devices, &pins, &d.Rooms, &d.Unpriced)
		d.SeenAt, d.PINs = value(seen), map[string][]byte{}
		for i, device := range devices {
			d.PINs[device] = pins[i]
		}
		return d, err
	})
}

// Misplaced returns the ids of at most limit reservations that are not over and whose branch is not that of their room. Partners' bookings
// that moved to another branch became such under earlier releases.
func Misplaced(ctx context.Context, q Querier, limit int) ([]int64, error) {
	rows, err := q.Query(ctx, `
		select r.id from reservation r join room m on m.id = r.room_id 
		where m.branch_id <> r.branch_id and r.end_at > clock_timestamp() and r.`+liveStates+` order by r.id limit $1`, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
