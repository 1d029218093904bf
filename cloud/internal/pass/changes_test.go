package pass

import (
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
)

// TestChangesAreReturnedOnce looks for changes of every age. A change that committed late, up to a minute after its time, is found by the
// next complete look, which follows ten seconds after the previous one or after a pause; the others are found by the next one. Each is
// returned once.
func TestChangesAreReturnedOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Now()
	change := func(branch string, age time.Duration) {
		t.Helper()
		_, err := db.Pool.Exec(t.Context(), `
			with b as (insert into branch (code) values ($1) returning id)
			insert into agent_credential (username, branch_id, secret_hash, active, activated_at)
			select 'agent-' || $1, id, '', true, clock_timestamp() - $2::interval from b`, branch, age)
		if err != nil {
			t.Fatal(err)
		}
	}
	var c changes
	look := func(after time.Duration, want ...string) {
		t.Helper()
		got, err := c.branches(t.Context(), db.Pool, now.Add(after))
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("after %s: got %q, %v, want %q", after, got, err, want)
		}
	}
	change("before", 30*time.Second)
	change("expired", 2*time.Minute)
	look(0, "before")
	change("recent", -time.Minute) // however slow this test is
	change("late", 30*time.Second)
	look(time.Second, "recent")
	for after := 2 * time.Second; after < completeInterval; after += time.Second {
		look(after)
	}
	look(completeInterval, "late")
	look(completeInterval + time.Second)
	change("missed", 30*time.Second)
	look(completeInterval+recentAge, "missed")
	look(completeInterval + recentAge + time.Second)
}
