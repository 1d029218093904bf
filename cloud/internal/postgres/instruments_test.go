package postgres_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// history adds n past reservations and the rows that depend on them, and refreshes the planner's statistics.
func history(t testing.TB, db *postgres.DB, n int) {
	t.Helper()
	for _, sql := range []string{
		`insert into branch (code) values ('gangnam')`,
		`insert into room (branch_id, no) select id, 1 from branch`,
		`alter table reservation drop constraint reservation_no_overlap`, // building its index takes most of the time
	} {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, order_id, updated_at)
			select b.id, r.id, case when n % 5 = 0 then 'CANCELED' else 'DONE' end, 'CUSTOMER', s, s + interval '1 hour', tstzrange(s, s + interval '70 minutes'), 'order-' || n, s
			from generate_series(1, ` + strconv.Itoa(n) + `) n, branch b, room r, lateral (select now() - n * interval '10 minutes' as s) t`,
		`insert into payment (reservation_id, key_set, confirm_key, attempted_at, deposited_at)
			select id, 'widget', order_id, start_at, case when id % 10 = 0 then start_at end from reservation`,
		`insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key, updated_at)
			select id, 'COMPLETED', 'x', 1000, 'customer', order_id, start_at from reservation where state = 'CANCELED'`,
		`insert into webhook_event (transmission_id, order_id, status, received_at, applied_at)
			select order_id, order_id, 'DONE', start_at, start_at from reservation`,
		`insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, finished_at)
			select gen_random_uuid(), branch_id, 'customer', 'front', 'front', '{front_1}', 'SUCCESS', start_at, start_at from reservation order by start_at`,
		`insert into pass (id, reservation_id, branch_id, room_id, pin, not_before, not_after, created_at, changed_at, ended_at)
			select gen_random_uuid(), id, branch_id, room_id, '', start_at, end_at, start_at, start_at, end_at from reservation`,
		`insert into message (reservation_id, branch_id, template, to_mobile, variables, state, created_at, next_at, sent_at)
			select id, branch_id, 'reservation-confirmed', '01000000000', '', 'SENT', start_at, start_at, start_at from reservation`,
	} {
		err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			// A loaded machine may need more than 30 s. Checks of foreign keys and other triggers take half of it.
			if _, err := tx.Exec(t.Context(), `set local statement_timeout = 0; set local session_replication_role = replica`); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), sql)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if _, err := db.Pool.Exec(t.Context(), `analyze`); err != nil {
		t.Fatal(err)
	}
}

// TestReadsUseIndexes reads every figure of metrics and doctor, what is due for the sweeps, and the screens of the console with a long history
// in the database, and expects that no large table is scanned, in its own order or in that of an index.
func TestReadsUseIndexes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	history(t, db, 200_000) // with fewer a scan costs too little to be a mistake
	now := time.Now()
	err := db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		// Those of earlier transactions of the connection, which PostgreSQL has not yet counted elsewhere.
		before, err := rowsRead(ctx, tx)
		if err != nil {
			return err
		}
		scansBefore, err := tableScans(ctx, tx)
		if err != nil {
			return err
		}
		for name, read := range reads(ctx, tx, now) {
			if err := read(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			after, err := rowsRead(ctx, tx)
			if err != nil {
				return err
			}
			for table, rows := range after {
				if n := rows - before[table]; n > 10_000 {
					t.Errorf("%s: %d rows of %s were read", name, n, table)
				}
			}
			scans, err := tableScans(ctx, tx)
			if err != nil {
				return err
			}
			for table, n := range scans {
				if n != scansBefore[table] {
					t.Errorf("%s: %d sequential scans of %s", name, n-scansBefore[table], table)
				}
			}
			before, scansBefore = after, scans
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// reads returns the reads of instruments, sweeps and console by name. A search reads the reservations of its branches: any part of a name
// or number counts. Rooms to clean need the index of a constraint that history drops.
func reads(ctx context.Context, tx pgx.Tx, now time.Time) map[string]func() error {
	branches := []string{"gangnam"}
	month := booking.Interval{Start: now.AddDate(0, -1, 0), End: now}
	day := booking.Interval{Start: now.AddDate(0, 0, -1), End: now}
	return map[string]func() error{
		"vitals":   func() error { _, err := postgres.ReadVitals(ctx, tx, now, time.Minute); return err },
		"work":     func() error { _, err := postgres.DiagnoseWork(ctx, tx, now); return err },
		"deposits": func() error { _, _, err := postgres.DiagnoseDeposits(ctx, tx, now.Add(-24*time.Hour)); return err },

		"sweep: payments":       func() error { _, err := postgres.Unsettled(ctx, tx, now, 100); return err },
		"sweep: stuck payments": func() error { _, err := postgres.Stuck(ctx, tx, 0, now.Add(-time.Hour)); return err },
		"sweep: cash receipts":  func() error { _, err := postgres.DueReceipts(ctx, tx, now, 100); return err },
		"sweep: callbacks":      func() error { _, err := postgres.UnappliedOrders(ctx, tx, 100); return err },
		"sweep: old callbacks":  func() error { return postgres.PurgeCallbacks(ctx, tx, now.AddDate(-100, 0, 0)) },
		"sweep: messages":       func() error { _, err := postgres.DueMessages(ctx, tx, now, 100); return err },
		"sweep: holds":          func() error { return postgres.ExpireHoldsEverywhere(ctx, tx, now.Add(-time.Minute)) },
		"sweep: fast clock":     func() error { return postgres.ForgetFuture(ctx, tx, now) },
		"sweep: passes":         func() error { _, err := postgres.PassChanges(ctx, tx, time.Minute); return err },
		"sweep: stay messages": func() error {
			for _, m := range postgres.StayMessages {
				if _, err := postgres.ClaimStayMessages(ctx, tx, m, now, 100); err != nil {
					return err
				}
			}
			return nil
		},
		"sweep: blocks": func() error { _, err := postgres.DueBlocks(ctx, tx, now, 100); return err },

		"console: day":       func() error { _, err := postgres.ReservationsDuring(ctx, tx, 1, day); return err },
		"console: cancelled": func() error { _, err := postgres.CanceledDuring(ctx, tx, 1, day); return err },
		"console: upcoming":  func() error { _, err := postgres.Upcoming(ctx, tx, now, 1); return err },
		"console: overview": func() error {
			_, err := postgres.Overview(ctx, tx, postgres.OverviewQuery{Branches: branches, Limit: 50}, now)
			return err
		},
		"console: live":         func() error { _, err := postgres.LiveOverview(ctx, tx, branches); return err },
		"console: sold times":   func() error { _, err := postgres.SoldTimes(ctx, tx, 1, day.Start, day.End); return err },
		"console: money desk":   func() error { _, err := postgres.DeskQueue(ctx, tx, branches, now.Add(-time.Hour), 50); return err },
		"console: payments":     func() error { _, err := postgres.PaidPage(ctx, tx, 1, month, postgres.PaidPlace{}, 50); return err },
		"console: sums":         func() error { _, err := postgres.PaidSums(ctx, tx, 1, month, "Asia/Seoul"); return err },
		"console: refunds":      func() error { _, err := postgres.RefundsDuring(ctx, tx, 1, month, 50); return err },
		"console: open refunds": func() error { _, err := postgres.OpenRefunds(ctx, tx, 1); return err },
		"console: differences":  func() error { _, err := postgres.DiscrepanciesOf(ctx, tx, 1, true); return err },
		"console: messages":     func() error { _, err := postgres.MessagesInState(ctx, tx, 1, "FAILED", 0, 50); return err },
		"console: doors":        func() error { _, err := postgres.DoorHistory(ctx, tx, 1, 50); return err },
		"console: reservation":  func() error { _, err := postgres.HistoryOf(ctx, tx, 1); return err },
		"console: guest":        func() error { _, err := postgres.StaysOfGuest(ctx, tx, branches, "01000000000", 50); return err },
		"console: visit":        func() error { _, err := postgres.VisitOf(ctx, tx, 1, now); return err },
		"console: quarantines":  func() error { _, err := postgres.Quarantines(ctx, tx, 1, now); return err },
	}
}

// tableScans returns how often large tables were scanned on the connection of tx.
func tableScans(ctx context.Context, tx pgx.Tx) (map[string]int, error) {
	rows, err := tx.Query(ctx, `select s.relname, s.seq_scan from pg_stat_xact_user_tables s join pg_class c on c.oid = s.relid
		where s.seq_scan > 0 and c.reltuples > 1000 and s.relname in ('reservation', 'payment', 'refund', 'webhook_event', 'message', 'ledger', 'audit', 'door_request', 'pass')`)
	if err != nil {
		return nil, err
	}
	scans := map[string]int{}
	var table string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&table, &n}, func() error { scans[table] = n; return nil })
	return scans, err
}

// TestForgettingReadsOnlyWhatIsDue removes personal data with a long history of which most is removed already and the rest is paid and not due,
// and counts the rows that are read.
func TestForgettingReadsOnlyWhatIsDue(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	history(t, db, 100_000) // two years
	keep := postgres.Retention{Paid: 5 * 366 * 24 * time.Hour, Other: 180 * 24 * time.Hour}
	now := time.Now()
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`set local statement_timeout = 0; set local session_replication_role = replica`,
			`update message set to_mobile = '' where created_at < now() - interval '179 days'`,
			`update reservation set paid_at = case when id % 3 = 0 then start_at end, amount = 10000,
				anonymised_at = case when id % 3 <> 0 and end_at < now() - interval '179 days' then now() end`,
		} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db.Pool, `vacuum analyze reservation, message`)
	err = db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		before, err := rowsRead(ctx, tx)
		if err != nil {
			return err
		}
		for range 10 { // also with a generic plan
			if n, err := postgres.Anonymise(ctx, tx, keep, nil, now, 1000); err != nil || n != 0 {
				t.Errorf("nothing is due: %d, %v", n, err)
			}
		}
		after, err := rowsRead(ctx, tx)
		for table, n := range after {
			if n -= before[table]; n > 1000 {
				t.Errorf("%d rows of %s were read, want few", n, table)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rowsRead returns how many rows of tables were read on the connection of tx.
func rowsRead(ctx context.Context, tx pgx.Tx) (map[string]int, error) {
	rows, err := tx.Query(ctx, `select relname, seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables
		where relname in ('reservation', 'payment', 'refund', 'webhook_event', 'message', 'ledger', 'audit', 'door_request', 'pass')`)
	if err != nil {
		return nil, err
	}
	read := map[string]int{}
	var table string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&table, &n}, func() error { read[table] = n; return nil })
	return read, err
}

// slowFigure is a database on which one statement never finishes.
type slowFigure struct {
	postgres.Querier
	slow string
}

func (q slowFigure) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if len(sql) > len(q.slow) && sql[:len(q.slow)] == q.slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return q.Querier.Query(ctx, sql, args...)
}

func TestSlowFigureDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.Pool.Exec(t.Context(), `insert into branch (code) values ($1)`, "gangnam"); err != nil {
		t.Fatal(err)
	}
	v, err := postgres.ReadVitals(t.Context(), slowFigure{db.Pool, "select state, count(*) from reservation"}, time.Now(), 2*time.Second)
	if !errors.Is(err, context.DeadlineExceeded) || len(v.Failed) != 1 || v.Failed["reservations"] == nil || v.Branches != 1 {
		t.Errorf("with one statement that does not end: got %+v, %v, want all figures but reservations", v, err)
	}
}
