package postgres_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestForgetFuture records what recurs or is tried again by a clock that is nine hours ahead, and by the right one. Once the
// clock is right, the former must be due, and the latter unchanged.
func TestForgetFuture(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	right := time.Now().UTC().Truncate(time.Microsecond)
	oneRoom(t, db, right.Add(-24*time.Hour))
	const ahead = 9 * time.Hour
	for i, now := range []time.Time{right, right.Add(ahead)} {
		for sql, args := range map[string][]any{
			`insert into work_success (work, at) values ('work ' || $1::integer, $2)`:                                                         {i, now},
			`insert into reconciliation_run (kind, began_at, completed_at, compared) values ('light', $2, $2, $1)`:                            {i, now},
			`insert into channel_listing (channel, partner, external_id, room_id, fetched_at) select 'ical', 'p', $1::text, id, $2 from room`: {[]string{"0", "1"}[i], now},
			`insert into message (template, variables, attempt, next_at) values ('login-code', '', $1, $2)`:                                   {i, now.Add(5 * time.Minute)},
			`with r as (insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, version)
			            select branch_id, id, 'CONFIRMING', 'CUSTOMER', $2, $3, tstzrange($2, $3), 1 from room returning id)
			 insert into payment (reservation_id, key_set, confirm_key, answers, check_at) select id, 'widget', 'k', $1, $4 from r`: {
				i, right.AddDate(0, 0, 1+i), right.AddDate(0, 0, 1+i).Add(time.Hour), now.Add(15 * time.Second)},
			`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at, quarantine_of, created_by)
			 select branch_id, id, state, source, at, at + interval '1 hour', tstzrange(at, at + interval '70 minutes'), $3, quarantine, $1::integer
			 from room, (values (0, 'HOLD', 'CUSTOMER', null), (1, 'HOLD', 'PARTNER', null), (2, 'HOLD', 'ADMIN', 1), (3, 'WAITING_FOR_DEPOSIT', 'CUSTOMER', null)) kind (n, state, source, quarantine),
			 lateral (select $2::timestamptz + n * interval '2 hours' as at) times`: {i, right.AddDate(0, 0, 10+i), now.Add(10 * time.Minute)},
		} {
			exec(t, db.Pool, sql, args...)
		}
	}
	if err := postgres.ForgetFuture(t.Context(), db.Pool, right); err != nil {
		t.Fatal(err)
	}
	at := func(sql string) (at *time.Time) {
		t.Helper()
		if err := db.Pool.QueryRow(t.Context(), sql).Scan(&at); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return at
	}
	for sql, want := range map[string]time.Time{
		`select at from work_success where work = 'work 0'`:                                                            right,
		`select at from work_success where work = 'work 1'`:                                                            right,
		`select max(began_at) from reconciliation_run`:                                                                 right,
		`select fetched_at from channel_listing where external_id = '0'`:                                               right,
		`select coalesce(fetched_at, 'epoch') from channel_listing where external_id = '1'`:                            time.Unix(0, 0),
		`select next_at from message where attempt = 0`:                                                                right.Add(5 * time.Minute),
		`select next_at from message where attempt = 1`:                                                                right,
		`select check_at from payment where answers = 0`:                                                               right.Add(15 * time.Second),
		`select check_at from payment where answers = 1`:                                                               right,
		`select expires_at from reservation where created_by = '0' and source = 'CUSTOMER' and state = 'HOLD'`:         right.Add(10 * time.Minute),
		`select expires_at from reservation where created_by = '1' and source = 'CUSTOMER' and state = 'HOLD'`:         right.Add(10 * time.Minute),
		`select min(expires_at) from reservation where created_by = '1' and (source <> 'CUSTOMER' or state <> 'HOLD')`: right.Add(ahead + 10*time.Minute),
	} {
		if got := at(sql); got == nil || !got.Equal(want) {
			t.Errorf("%s: got %v, want %v", sql, got, want)
		}
	}
}
