package service_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// Names and contacts are erased at the end of their retention: half a year for unpaid reservations, five years for paid
// ones. Amounts remain, and the audit log contains the number of erased reservations.
func TestNamesAreForgottenInTime(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) {
		set.Times.KeepPaid, set.Times.KeepOther = 5*365*24*time.Hour, 180*24*time.Hour
		db, err := postgres.Open(t.Context(), set.Database.URL, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, r := range []struct {
			name   string
			amount int
			age    string
		}{{"paid six years ago", 30000, "6 years"}, {"paid a year ago", 30000, "370 days"}, {"unpaid a year ago", 0, "366 days"}, {"unpaid a month ago", 0, "30 days"}} {
			_, err := db.Pool.Exec(t.Context(), `
				with b as (insert into branch (code) values ('old') on conflict (code) do update set code = excluded.code returning id),
				     m as (insert into room (branch_id, no) select id, 1 from b on conflict (branch_id, no) do update set no = excluded.no returning id, branch_id)
				insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key, amount, method, paid_at)
				select branch_id, id, 'DONE', 'CUSTOMER', at, at + interval '1 hour', tstzrange(at, at + interval '70 minutes'), $1, '010-1111-2222', '01011112222', $2, '카드', at
				from m, (select date_trunc('hour', now()) - $3::interval as at) t`, r.name, r.amount, r.age)
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	var named []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		rows, err := s.DB.Pool.Query(t.Context(), `select name from reservation r join branch b on b.id = r.branch_id where b.code = $1 and name is not null order by name`, "old")
		if err != nil {
			t.Fatal(err)
		}
		if named, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
		if len(named) == 2 || time.Now().After(deadline) {
			break
		}
	}
	if want := []string{"paid a year ago", "unpaid a month ago"}; !slices.Equal(named, want) {
		t.Errorf("still named: %q, want %q", named, want)
	}
	var won, contacts, entries int
	err := s.DB.Pool.QueryRow(t.Context(), `
		select sum(amount), count(mobile) + count(mobile_key),
		       (select count(*) from audit where action = 'personal.anonymise' and actor = 'system' and detail = '{"reservations": 2}')
		from reservation r join branch b on b.id = r.branch_id where b.code = $1`, "old").Scan(&won, &contacts, &entries)
	if err != nil || won != 60000 || contacts != 4 || entries != 1 {
		t.Errorf("%d won, %d contacts, %d entries in the audit log: %v", won, contacts, entries, err)
	}
}

// The running service drops expired partitions, creates those of the next weeks, and deletes expired door requests.
// A query that reads the table makes the first attempt fail, and the service tries again.
func TestGrowingTablesAreKept(t *testing.T) {
	t.Parallel()
	var reading pgx.Tx
	s := servicetest.Start(t, func(set *config.Settings) {
		db, err := postgres.Open(t.Context(), set.Database.URL, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, sql := range []string{
			`drop table sensor_reading_first`,
			`select partition_add('sensor_reading', now() - interval '120 days'), partition_add('sensor_reading', now() - interval '80 days')`,
			`insert into branch (code) values ('old')`,
			`insert into sensor_reading select id, age || ' days', now() - age * interval '1 day', 20, 50 from branch, unnest('{80,120}'::int[]) age where code = 'old'`,
			`insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, finished_at)
				select gen_random_uuid(), id, 'admin:hq', 'front', age || ' days', '{front_1}', 'SUCCESS', at, at
				from branch, unnest('{360,370}'::int[]) age, lateral (select now() - age * interval '1 day' as at) t where code = 'old'`,
		} {
			if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		conn, err := pgx.Connect(t.Context(), set.Database.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		if reading, err = conn.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := reading.Exec(t.Context(), `lock table sensor_reading in access share mode`); err != nil {
			t.Fatal(err)
		}
	})
	for _, want := range []bool{true, false} { // the attempt waits for the query, and ends
		for waits := !want; waits != want; time.Sleep(10 * time.Millisecond) {
			err := s.DB.Pool.QueryRow(t.Context(), `select exists (select from pg_locks where not granted and mode = $1)`, "AccessExclusiveLock").Scan(&waits)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := reading.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"360 days", "80 days", "true"}
	var got []string
	for deadline := time.Now().Add(time.Minute); !slices.Equal(got, want) && time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) { // each look is a query that can make an attempt fail
		err := s.DB.Pool.QueryRow(t.Context(), `
			select array(select r.device from door_request r join branch b on b.id = r.branch_id where b.code = $1)
			    || array(select r.location from sensor_reading r join branch b on b.id = r.branch_id where b.code = $1)
			    || array[(max(ends) > now() + interval '28 days')::text] from partition_list where parent = 'sensor_reading'`, "old").Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("kept requests and readings, and partitions ahead: %q, want %q", got, want)
	}
}

// TestNothingIsForgottenAfterAStepOfTheClock starts the service while the database's clock is six years ahead of the time that the service saw
// last. Names and readings of that time seem to have expired, and must be kept. Once the clock has been steady for three days, they are not.
func TestNothingIsForgottenAfterAStepOfTheClock(t *testing.T) {
	t.Parallel()
	prepare := func(url string, statements ...string) {
		t.Helper()
		db, err := postgres.Open(t.Context(), url, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, sql := range statements {
			if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	join := func(set *config.Settings) { set.MQTT.BrokerPeerURL = "mqtt://" + set.MQTT.Addr }
	ahead := servicetest.Start(t, join, func(set *config.Settings) {
		prepare(set.Database.URL,
			`insert into clock_watch (seen_at) values (now() - interval '6 years')`,
			`insert into branch (code) values ('old')`, `insert into room (branch_id, no) select id, 1 from branch where code = 'old'`,
			`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, amount, method, paid_at)
				select branch_id, room.id, 'DONE', 'CUSTOMER', at, at + interval '1 hour', tstzrange(at, at + interval '70 minutes'), '김서연', 30000, '카드', at
				from room join branch b on b.id = room.branch_id, (select date_trunc('hour', now()) - interval '6 years' as at) t where b.code = 'old'`,
			`drop table sensor_reading_first`, `select partition_add('sensor_reading', now() - interval '6 years')`,
			`insert into sensor_reading select id, 'lobby', now() - interval '6 years', 20, 50 from branch where code = 'old'`,
			`insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, finished_at)
				select gen_random_uuid(), id, 'admin:hq', 'front', 'front', '{front_1}', 'SUCCESS', now() - interval '6 years', now() - interval '6 years' from branch where code = 'old'`)
	})
	left := func(s *servicetest.Stack) (named, readings, requests int) {
		t.Helper()
		// The pass that deletes has begun when the keys of order ids exist, and has ended when its lock is free.
		for began := false; !began; time.Sleep(20 * time.Millisecond) {
			if err := s.DB.Pool.QueryRow(t.Context(), `select count(*) > 8 from order_key`).Scan(&began); err != nil {
				t.Fatal(err)
			}
		}
		err := pgx.BeginFunc(t.Context(), s.DB.Pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock($1)`, int64(0x79656f6c_0004)); err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), `select (select count(name) from reservation r where r.branch_id = b.id), (select count(*) from sensor_reading s where s.branch_id = b.id),
				(select count(*) from door_request d where d.branch_id = b.id) from branch b where code = $1`, "old").Scan(&named, &readings, &requests)
		})
		if err != nil {
			t.Fatal(err)
		}
		return named, readings, requests
	}
	if named, readings, requests := left(ahead); named != 1 || readings != 1 || requests != 1 {
		t.Errorf("after the step %d names, %d readings and %d requests are left, want 1 of each", named, readings, requests)
	}
	later := servicetest.Start(t, join, func(set *config.Settings) {
		set.Database.URL, set.Toss = ahead.Settings.Database.URL, ahead.Settings.Toss
		prepare(set.Database.URL, `delete from order_key`, `update clock_watch set stepped_to = now() - interval '3 days 1 minute'`)
	})
	if named, readings, requests := left(later); named+readings+requests != 0 {
		t.Errorf("three days later %d names, %d readings and %d requests are left, want none", named, readings, requests)
	}
}
