package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const day = 24 * time.Hour

// growing returns a database with a branch, whose tables have no partition but the rest.
func growing(t *testing.T) *postgres.DB {
	t.Helper()
	db := pgtest.New(t)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `drop table sensor_reading_first, door_event_first`)
	return db
}

// put inserts a reading and an event of a time.
func put(t *testing.T, db *postgres.DB, at time.Time) {
	t.Helper()
	exec(t, db.Pool, `insert into sensor_reading select id, '로비', $1, 20, 50 from branch`, at)
	exec(t, db.Pool, `insert into door_event (branch_id, device, kind, at) select id, 'front_1', 'forced', $1 from branch`, at)
}

// keep keeps the partitions. A call fails while a vacuum, for instance, holds a table; it is repeated.
func keep(t *testing.T, db *postgres.DB, now time.Time) (dropped []string) {
	t.Helper()
	for {
		_, gone, err := db.KeepPartitions(t.Context(), now)
		dropped = append(dropped, gone...)
		if err == nil {
			return dropped
		}
		if !strings.Contains(err.Error(), "55P03") {
			t.Fatal(err)
		}
	}
}

// one returns the only value of a query.
func one[T any](t *testing.T, db *postgres.DB, sql string, args ...any) (value T) {
	t.Helper()
	if err := db.Pool.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// TestPartitionsFollowTheClock stores a row every three days of 430 and keeps the partitions each time: none is lost before it expires, and
// none remains for longer than the span of its partition.
func TestPartitionsFollowTheClock(t *testing.T) {
	t.Parallel()
	db := growing(t)
	today := time.Now().UTC().Truncate(time.Microsecond)
	var put3 []time.Time
	dropped := 0
	for now := today.Add(-430 * day); !now.After(today); now = now.Add(3 * day) {
		dropped += len(keep(t, db, now))
		put(t, db, now)
		put3 = append(put3, now)
		for table, kept := range map[string]struct{ atLeast, atMost time.Duration }{
			"sensor_reading": {90 * day, 97 * day}, "door_event": {365 * day, 393 * day},
		} {
			young, old := 0, 0 // that must be there, that may be there
			for _, at := range put3 {
				if at.After(now.Add(-kept.atLeast)) {
					young++
				}
				if at.After(now.Add(-kept.atMost)) {
					old++
				}
			}
			if n := one[int](t, db, `select count(*) from `+table+` where at > $1`, now.Add(-kept.atLeast)); n != young {
				t.Fatalf("%s on %s: %d rows that have not expired, want %d", table, now.Format(time.DateOnly), n, young)
			}
			if n := one[int](t, db, `select count(*) from `+table+``); n > old {
				t.Fatalf("%s on %s: %d rows, want at most %d", table, now.Format(time.DateOnly), n, old)
			}
			if n := one[int](t, db, `select count(*) from `+table+`_rest`); n != 0 {
				t.Fatalf("%s on %s: %d rows have no partition of their time", table, now.Format(time.DateOnly), n)
			}
		}
	}
	if problems, err := postgres.DiagnosePartitions(t.Context(), db.Pool, today); err != nil || len(problems) > 0 {
		t.Errorf("partitions at the end: %v %v", problems, err)
	}
	if dropped < 40 {
		t.Errorf("%d partitions were dropped, want 48 weeks of readings and 2 months of events", dropped)
	}
}

// A row that has not expired is neither dropped with its partition nor deleted, whatever time a caller names.
func TestPartitionsKeepYoungRows(t *testing.T) {
	t.Parallel()
	db := growing(t)
	now := time.Now()
	keep(t, db, now.Add(-80*day))
	for i := range 5 { // at the places of the expired rows
		put(t, db, now.Add(-80*day+time.Duration(i)*time.Second))
	}
	put(t, db, now.Add(-10*366*day)) // in the rest
	for range 2 {
		if gone := keep(t, db, now.Add(300*day)); len(gone) != 0 {
			t.Fatalf("with a clock that is wrong by 300 days: dropped %v", gone)
		}
	}
	// The statement of an earlier release deletes by ctid, which rows of all partitions share.
	tag, err := db.Pool.Exec(t.Context(), `delete from sensor_reading where ctid = any(array(
		select ctid from sensor_reading where at < $1 limit $2 for update skip locked))`, now.Add(-90*day), 20_000)
	if err != nil || tag.RowsAffected() != 0 {
		t.Errorf("the old statement: %v %v, want none, because the expired row is deleted already", tag, err)
	}
	put(t, db, now.Add(-9*366*day))
	tag, err = db.Pool.Exec(t.Context(), `delete from sensor_reading where ctid = any(array(
		select ctid from sensor_reading where at < $1 limit $2 for update skip locked))`, now.Add(-90*day), 20_000)
	if err != nil || tag.RowsAffected() != 1 {
		t.Errorf("the old statement: %v %v, want the expired row deleted", tag, err)
	}
	for _, table := range []string{"sensor_reading", "door_event"} {
		if n := one[int](t, db, `select count(*) from `+table+` where at > $1`, now.Add(-81*day)); n != 5 {
			t.Errorf("%s: %d rows of 80 days ago, want 5", table, n)
		}
	}
}

// Rows without a partition of their time are stored. A new partition takes a few over, and does not raise their alerts again; if there
// are many, they stay where they are.
func TestRowsOutsideOfPartitions(t *testing.T) {
	t.Parallel()
	db := growing(t)
	now := time.Now()
	put(t, db, now)
	exec(t, db.Pool, `update alert set ended_at = since, closed_at = since`)
	put(t, db, now.Add(1000*day))
	exec(t, db.Pool, `update alert set ended_at = since, closed_at = since`)
	full := now.Add(14 * day)
	exec(t, db.Pool, `insert into sensor_reading select b.id, '로비', $1::timestamptz + n * interval '1 ms', 20, 50 from branch b, generate_series(1, 10001) n`, full)
	keep(t, db, now)
	for sql, want := range map[string]int{
		`select count(*) from sensor_reading`:                                              10_003,
		`select count(*) from sensor_reading_rest`:                                         10_002, // of a full week, and of a far time
		`select count(*) from door_event`:                                                  2,
		`select count(*) from door_event_rest`:                                             1,
		`select count(*) from alert where ended_at is null`:                                0,
		`select count(*) from partition_list where parent = 'sensor_reading' and not rest`: 4, // of five weeks
	} {
		if got := one[int](t, db, sql); got != want {
			t.Errorf("%s: got %d, want %d", sql, got, want)
		}
	}
	problems, err := postgres.DiagnosePartitions(t.Context(), db.Pool, now.Add(day))
	if err != nil || len(problems) != 1 || problems[0].Table != "sensor_reading" || !strings.HasPrefix(problems[0].Text, "has no partition from") {
		t.Errorf("with a week that stays in the rest: %v %v", problems, err)
	}
	// A later clock: everything expires, also what has no partition.
	exec(t, db.Pool, `update sensor_reading_rest set at = at - interval '2000 days'`)
	keep(t, db, now)
	if n := one[int](t, db, `select count(*) from sensor_reading`); n != 1 {
		t.Errorf("%d readings, want the one of today", n)
	}
}

func TestReplicasKeepPartitionsAtOnce(t *testing.T) {
	t.Parallel()
	db := growing(t)
	now := time.Now()
	keep(t, db, now.Add(-400*day))
	put(t, db, now)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, _, err := db.KeepPartitions(t.Context(), now); err != nil && !strings.Contains(err.Error(), "55P03") { // a lock is tried later
				t.Error(err)
			}
		})
	}
	group.Wait()
	keep(t, db, now)
	if problems, err := postgres.DiagnosePartitions(t.Context(), db.Pool, now); err != nil || len(problems) > 0 {
		t.Errorf("partitions: %v %v", problems, err)
	}
	if n := one[int](t, db, `select count(*) from sensor_reading`); n != 1 {
		t.Errorf("%d readings, want 1", n)
	}
}

// A transaction that has read a table, as a backup does, delays neither writers nor partitions that exist.
func TestPartitionsDoNotWaitForABackup(t *testing.T) {
	t.Parallel()
	db := growing(t)
	now := time.Now()
	keep(t, db, now.Add(-400*day))
	err := db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		exec(t, tx, `lock table sensor_reading in access share mode`)
		if _, _, err := db.KeepPartitions(ctx, now); err == nil || !strings.Contains(err.Error(), "55P03") {
			t.Errorf("while a table is read: got %v, want a lock time-out", err)
		}
		put(t, db, now)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := postgres.DiagnosePartitions(t.Context(), db.Pool, now)
	if err != nil || len(problems) != 2 || problems[0].Table != "sensor_reading" || problems[1].Table != "sensor_reading" {
		t.Errorf("before the next call: %v %v, want missing and expired partitions of readings only", problems, err)
	}
	keep(t, db, now)
	if n := one[int](t, db, `select count(*) from sensor_reading_rest`); n != 0 {
		t.Errorf("%d readings have no partition after the backup", n)
	}
}

// TestUpgradePartitionsTables partitions tables with rows while programs of the last release write and delete with their statements.
// YEOLDA_BENCH_READINGS adds that many readings; the log has the longest time that a write took. deploy/README.md, Operations, has the figures.
func TestUpgradePartitionsTables(t *testing.T) {
	t.Parallel()
	db := empty(t, 1)[0]
	if err := postgres.MigrateTo(t.Context(), db.Pool, 211); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	exec(t, db.Pool, `create role yeolda_last_release`)
	t.Cleanup(func() {
		for _, sql := range []string{`drop owned by yeolda_last_release`, `drop role yeolda_last_release`} {
			if _, err := db.Pool.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Error(err)
			}
		}
	})
	exec(t, db.Pool, `grant select, insert, update, delete on all tables in schema public to yeolda_last_release`)
	config := db.Pool.Config()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `set role yeolda_last_release`)
		return err
	}
	old, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(old.Close)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `insert into sensor_reading select b.id, '로비', $1::timestamptz - n * interval '1 hour', 20, 50 from branch b, generate_series(1, 2150) n`, now)
	exec(t, db.Pool, `insert into door_event (branch_id, device, kind, at) select b.id, 'front_1', 'exit-pressed', $1::timestamptz - n * interval '1 hour' from branch b, generate_series(1, 8750) n`, now)
	if text := os.Getenv("YEOLDA_BENCH_READINGS"); text != "" {
		err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			exec(t, tx, `set local statement_timeout = 0`)
			exec(t, tx, `insert into sensor_reading select b.id, '현관', $1::timestamptz - n * interval '100 ms', 20, 50 from branch b, generate_series(1, $2::bigint) n`, now, text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Rows that a wrong clock wrote.
	exec(t, db.Pool, `insert into sensor_reading select b.id, '로비', $1, 20, 50 from branch b`, now.Add(900*day))
	exec(t, db.Pool, `insert into door_event (branch_id, device, kind, at) select b.id, 'front_1', 'exit-pressed', $1 from branch b`, now.Add(900*day))

	const stay = 10 * time.Minute // the previous release runs beside this one until the test ends
	ctx, cancel := context.WithTimeout(t.Context(), stay)
	defer cancel()
	var writers sync.WaitGroup
	written, longest := make([]int, 2), make([]time.Duration, 2)
	for i, sql := range []string{
		`with relaxed as materialized (select set_config('synchronous_commit', 'off', true))
			insert into sensor_reading (branch_id, location, at, celsius, humidity)
			select b.id, r.location, $1, r.celsius, r.humidity from unnest($2::text[], $3::text[], $4::float8[], $5::float8[])
			     with ordinality as r (code, location, celsius, humidity, place)
			join branch b on b.code = r.code, relaxed order by r.place desc on conflict do nothing`,
		`insert into door_event (branch_id, device, kind, at, request_id, detail)
			select b.id, e.device, 'exit-pressed', $1, null, '{}' from unnest($2::text[], $3::text[]) as e (code, device) join branch b on b.code = e.code`,
	} {
		writers.Go(func() {
			for ctx.Err() == nil {
				args := []any{time.Now(), []string{"gangnam"}, []string{fmt.Sprint("new-", written[i])}}
				if i == 0 {
					args = append(args, []float64{20}, []float64{50})
				}
				began := time.Now()
				_, err := old.Exec(context.WithoutCancel(ctx), sql, args...)
				longest[i] = max(longest[i], time.Since(began))
				if err != nil {
					t.Errorf("write %d to table %d: %v", written[i], i, err)
					return
				}
				written[i]++
			}
		})
	}
	deleted := int64(0)
	writers.Go(func() {
		for ctx.Err() == nil {
			for table, ttl := range map[string]time.Duration{"sensor_reading": 90 * day, "door_event": 365 * day} {
				tag, err := old.Exec(context.WithoutCancel(ctx), `delete from `+table+` where ctid = any(array(
					select ctid from `+table+` where at < $1 limit $2 for update skip locked))`, time.Now().Add(-ttl), 20_000)
				if err != nil {
					t.Errorf("delete from %s: %v", table, err)
					return
				}
				deleted += tag.RowsAffected()
			}
		}
	})
	began := time.Now()
	if err := postgres.Migrate(t.Context(), db.Pool, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Logf("migrated within %s", time.Since(began))
	keep(t, db, now)
	reached := func() int { return one[int](t, db, `select count(*) from door_event where device like $1`, "new-%") }
	for after := reached() + 20; reached() < after && ctx.Err() == nil; { // rows of another session: there is no event to wait for
	}
	cancel()
	writers.Wait()
	t.Logf("%d and %d writes, the longest took %s and %s", written[0], written[1], longest[0], longest[1])

	if deleted > 3 { // those that expired during the test
		t.Errorf("programs of the last release deleted %d rows", deleted)
	}
	for sql, want := range map[string]int{
		`select count(*) from sensor_reading where location = '로비'`:                       2151,
		`select count(*) from sensor_reading where location like 'new-%'`:                 written[0],
		`select count(*) from door_event where device = 'front_1'`:                        8751,
		`select count(distinct id) from door_event where device like 'new-%'`:             written[1],
		`select count(*) from sensor_reading_rest`:                                        1,
		`select count(*) from door_event_rest`:                                            1,
		`select count(*) - count(distinct id) from door_event`:                            0,
		`select count(*) from pg_constraint where conname ~ '_bound$'`:                    0,
		`select count(*) from partition_list where starts = '-infinity' and ends > now()`: 2,
	} {
		if got := one[int](t, db, sql); got != want {
			t.Errorf("%s: got %d, want %d", sql, got, want)
		}
	}
	exec(t, db.Pool, `insert into door_event (branch_id, device, kind, at) select id, 'front_1', 'forced', $1 from branch`, time.Now())
	if n := one[int](t, db, `select count(*) from alert where kind = $1`, "door-forced"); n != 1 {
		t.Errorf("a forced door after the upgrade: %d alerts, want 1", n)
	}
}

// The role of the service creates and drops no table, but its partitions.
func TestServiceKeepsPartitionsOfTheOwner(t *testing.T) {
	t.Parallel()
	owner := pgtest.URL(t)
	quiet := slog.New(slog.DiscardHandler)
	if err := postgres.MigrateFor(t.Context(), owner, asRole(t, owner, "yeolda_partitions"), quiet); err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), owner, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	exec(t, db.Pool, `drop table sensor_reading_first, door_event_first`)
	config := db.Pool.Config()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `set session authorization yeolda_partitions`)
		return err
	}
	service, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	now := time.Now()
	for _, at := range []time.Time{now.Add(-200 * day), now} {
		keep(t, &postgres.DB{Pool: service}, at)
	}
	exec(t, service, `insert into branch (code) values ('gangnam')`)
	put(t, &postgres.DB{Pool: service}, now)
	var left int
	if err := service.QueryRow(t.Context(), `select count(*) from partition_list where starts < $1`, now.Add(-100*day)).Scan(&left); err != nil || left == 0 {
		t.Fatalf("partitions of 100 days ago: %d, %v, want those of events", left, err)
	}
	// A backup with the role of the service reads each partition.
	list, err := postgres.Partitions(t.Context(), service)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if _, err := service.Exec(t.Context(), `select from `+p.Name+``); err != nil {
			t.Errorf("read %s: %v", p.Name, err)
		}
	}
	for _, forbidden := range []string{`drop table sensor_reading_rest`, `create table x (y int)`, `select partition_add('branch', now())`} {
		if _, err := service.Exec(t.Context(), forbidden); err == nil {
			t.Errorf("%s: the service may", forbidden)
		}
	}
}
