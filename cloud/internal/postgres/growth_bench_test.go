package postgres_test

import (
	"context"
	"maps"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const growthSensors = 3 // per branch

// grown fills ninety days and one week, which has expired, with n readings of branches with three sensors each that report every five
// minutes, and returns the number of branches.
func grown(t testing.TB, db *postgres.DB, n int, now time.Time) int {
	t.Helper()
	const step = 5 * time.Minute
	perSensor := int(98 * day / step)
	branches := max(n/perSensor/growthSensors, 1)
	for _, sql := range []string{
		`insert into branch (code) select 'branch-' || n from generate_series(1, $1::integer) n`,
		`insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory)
		 select id, '1', now(), now(), true, '{"sensors": ["sensor-1", "sensor-2", "sensor-3"]}' from branch where id <= $1`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql, branches); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Pool.Exec(t.Context(), `drop table sensor_reading_first`); err != nil {
		t.Fatal(err)
	}
	for at := now.Add(-98 * day); ; at = at.Add(7 * day) {
		if at.After(now) {
			at = now
		}
		if _, err := db.Pool.Exec(t.Context(), `select partition_add('sensor_reading', $1)`, at); err != nil {
			t.Fatal(err)
		}
		if at.Equal(now) {
			break
		}
	}
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `set local statement_timeout = 0`); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `
			insert into sensor_reading (branch_id, location, at, celsius, humidity)
			select b.id, 'sensor-' || s, $1::timestamptz - n * $3::interval, 20 + n % 10, 50
			from generate_series(1, $2::integer) n, branch b, generate_series(1, $4::integer) s order by n desc`, now, perSensor, step, growthSensors)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.Analyze(t.Context(), db.Pool); err != nil {
		t.Fatal(err)
	}
	return branches
}

// BenchmarkReadings measures what the console and the retention cost with YEOLDA_BENCH_READINGS readings (1,000,000): the last readings of a
// branch, a poll of the console, a chart of a week, and the end of a week's retention by dropping its partition and by deleting the same
// rows in batches. deploy/README.md, Operations, has the figures.
func BenchmarkReadings(b *testing.B) {
	n := 1_000_000
	if text := os.Getenv("YEOLDA_BENCH_READINGS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	db := pgtest.New(b)
	now := time.Now().UTC()
	began := time.Now()
	branches := grown(b, db, n, now)
	b.Logf("readings of %d branches within %s", branches, time.Since(began).Round(time.Second))
	locations := []string{"sensor-1", "sensor-2", "sensor-3"}
	read := func(unit string, do func(branch booking.BranchID) error) {
		const rounds = 50
		var took []float64
		for i := range rounds {
			began := time.Now()
			if err := do(booking.BranchID(1 + i*branches/rounds)); err != nil {
				b.Fatal(err)
			}
			took = append(took, float64(time.Since(began).Microseconds())/1000)
		}
		b.ReportMetric(median(took), unit)
	}
	read("last-p50-ms", func(branch booking.BranchID) error {
		found, err := postgres.LatestReadings(b.Context(), db.Pool, branch, locations, now)
		if err == nil && len(found) != growthSensors {
			b.Fatalf("last readings of %d sensors, want 3", len(found))
		}
		return err
	})
	read("poll-p50-ms", func(branch booking.BranchID) error {
		_, err := postgres.Live(b.Context(), db.Pool, "branch-"+strconv.Itoa(int(branch)), booking.Interval{Start: now, End: now.Add(day)}, now)
		return err
	})
	read("chart-p50-ms", func(branch booking.BranchID) error {
		points, err := postgres.Readings(b.Context(), db.Pool, branch, locations[0], now.Add(-7*day), 30*time.Minute)
		if err == nil && len(points) < 300 {
			b.Fatalf("%d points of a chart", len(points))
		}
		return err
	})

	// The oldest week, as a table of its own, deleted in batches as before; then dropped with its partition.
	var oldest string
	var rows int
	if err := db.Pool.QueryRow(b.Context(), `select name from partition_list where parent = $1 and not rest order by starts limit 1 offset 1`, "sensor_reading").Scan(&oldest); err != nil {
		b.Fatal(err)
	}
	unlimited := func(sql string) {
		err := pgx.BeginFunc(b.Context(), db.Pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(b.Context(), `set local statement_timeout = 0`); err != nil {
				return err
			}
			_, err := tx.Exec(b.Context(), sql)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	unlimited(`create table copied (like ` + oldest + ` including all)`)
	unlimited(`insert into copied select * from ` + oldest)
	if err := db.Pool.QueryRow(b.Context(), `select count(*) from copied`).Scan(&rows); err != nil {
		b.Fatal(err)
	}
	began = time.Now()
	if n, err := postgres.DeleteBefore(b.Context(), db.Pool, "copied", "at", now); err != nil || int(n) != rows {
		b.Fatalf("deleted %d of %d: %v", n, rows, err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "delete-s")
	began = time.Now()
	_, dropped, err := db.KeepPartitions(context.WithoutCancel(b.Context()), now)
	if err != nil || len(dropped) == 0 {
		b.Fatalf("dropped %v, %v", dropped, err)
	}
	b.ReportMetric(time.Since(began).Seconds()*1000, "keep-ms") // all of the hourly work: checks, drops, new partitions
	b.Logf("a week has %d rows; dropped %v", rows, dropped)
	b.ReportMetric(0, "ns/op")
}

// TestLastReadingsAreFoundInFewPartitions counts the partitions that a poll of the console and the last readings of a branch read, with the
// partitions of a year.
func TestLastReadingsAreFoundInFewPartitions(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Now().UTC()
	grown(t, db, 90_000, now)
	exec(t, db.Pool, `drop table door_event_first`)
	for at := now.Add(-400 * day); at.Before(now.Add(60 * day)); at = at.Add(28 * day) {
		exec(t, db.Pool, `select partition_add('door_event', $1)`, at)
		if !at.After(now) {
			exec(t, db.Pool, `insert into door_event (branch_id, device, kind, at) values (1, 'front_1', 'exit-pressed', $1)`, at)
		}
	}
	exec(t, db.Pool, `insert into door_event (branch_id, device, kind, at) values (1, 'front_1', 'exit-pressed', $1)`, now)
	for name, do := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"poll": func(ctx context.Context, tx pgx.Tx) error {
			state, err := postgres.Live(ctx, tx, "branch-1", booking.Interval{Start: now, End: now.Add(day)}, now)
			if state.Sensors.IsZero() || state.Doors.IsZero() {
				t.Errorf("poll: got %+v, want the last event and reading", state)
			}
			return err
		},
		"last readings": func(ctx context.Context, tx pgx.Tx) error {
			found, err := postgres.LatestReadings(ctx, tx, 1, []string{"sensor-1", "sensor-2", "sensor-3"}, now)
			if len(found) != 3 {
				t.Errorf("last readings: got %v, want those of three sensors", found)
			}
			return err
		},
	} {
		err := db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			before, err := partitionScans(ctx, tx)
			if err != nil {
				return err
			}
			for range 10 { // also with a generic plan
				if err := do(ctx, tx); err != nil {
					return err
				}
			}
			after, err := partitionScans(ctx, tx)
			if err != nil {
				return err
			}
			maps.DeleteFunc(after, func(partition string, scans int) bool { return scans == before[partition] })
			if len(after) > 4 { // one of each table, or two if the day is in both
				t.Errorf("%s: scans of %v, want the newest partitions only", name, after)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The last reading of a sensor that has been silent for weeks is still shown.
func TestLastReadingOfASilentSensor(t *testing.T) {
	t.Parallel()
	db := growing(t)
	now := time.Now().Truncate(time.Microsecond)
	for _, age := range []time.Duration{0, 20 * day, 40 * day} {
		keep(t, db, now.Add(-age))
		put(t, db, now.Add(-age))
	}
	exec(t, db.Pool, `update sensor_reading set location = '복도' where at < $1`, now)
	found, err := postgres.LatestReadings(t.Context(), db.Pool, 1, []string{"로비", "복도", "창고"}, now)
	if err != nil || len(found) != 2 || !found["로비"].At.Equal(now) || !found["복도"].At.Equal(now.Add(-20*day)) {
		t.Errorf("last readings: %v %v, want those of now and of 20 days ago", found, err)
	}
}

// partitionScans returns how often partitions were read on the connection of tx.
func partitionScans(ctx context.Context, tx pgx.Tx) (map[string]int, error) {
	rows, err := tx.Query(ctx, `select relname, seq_scan + coalesce(idx_scan, 0) from pg_stat_xact_user_tables where relname ~ $1`, `^(sensor_reading|door_event)_`)
	if err != nil {
		return nil, err
	}
	scans := map[string]int{}
	var partition string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&partition, &n}, func() error { scans[partition] = n; return nil })
	return scans, err
}
