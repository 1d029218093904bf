package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestExpiredRowsAreDeleted deletes door requests and commands to air conditioners that have expired, and only those.
func TestExpiredRowsAreDeleted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	limit := time.Now().UTC().Truncate(time.Second)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	ages := []time.Duration{-time.Second, 0, time.Second}
	for _, age := range ages {
		exec(t, db.Pool, `insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, finished_at)
			select gen_random_uuid(), id, 'customer', 'front', 'front', '{front_1}', 'SUCCESS', $1, $1 from branch`, limit.Add(age))
		exec(t, db.Pool, `insert into airconditioner_command (branch_id, option_id, unit, path, requested_by, at, outcome)
			select id, 'cool', 'lobby', '{}', 'manager', $1, 'sent' from branch`, limit.Add(age))
	}
	for name, expire := range map[string]func() (int64, error){
		"door requests": func() (int64, error) { return postgres.DeleteDoorRequests(t.Context(), db.Pool, limit) },
		"commands":      func() (int64, error) { return postgres.DeleteCommands(t.Context(), db.Pool, limit) },
	} {
		if n, err := expire(); err != nil || n != 1 {
			t.Errorf("%s: deleted %d, %v, want 1", name, n, err)
		}
	}
	want := []time.Time{limit, limit.Add(time.Second)}
	for table, column := range map[string]string{"door_request": "created_at", "airconditioner_command": "at"} {
		got := one[[]time.Time](t, db, `select array_agg(`+column+` at time zone 'UTC' order by `+column+`) from `+table)
		if !cmp.Equal(got, want) {
			t.Errorf("%s: left %v, want %v", table, got, want)
		}
	}
}
