package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestUnchanged holds that an answer counts as current until something changes that a look-up shows.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Now().Truncate(10 * time.Minute).Add(time.Hour)
	oneRoom(t, db, start)
	exec(t, db.Pool, `insert into branch (code) values ('elsewhere')`)
	exec(t, db.Pool, `insert into room (branch_id, no) select id, 1 from branch where code = 'elsewhere'`)
	branch, err := db.Branch(t.Context(), "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	first := start.In(branch.Zone)
	window := booking.LocalWindow{Date: booking.DateOf(first, branch.Zone), Hour: first.Hour(), Hours: 24}
	hold := func(q postgres.Querier, branch string, at, expires time.Time) {
		t.Helper()
		if _, err := q.Exec(t.Context(), `
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at)
			select r.branch_id, r.id, 'HOLD', 'CUSTOMER', $2::timestamptz, $2::timestamptz + interval '10 minutes', tstzrange($2, $2::timestamptz + interval '20 minutes'), $3
			from room r join branch b on b.id = r.branch_id where b.code = $1`, branch, at, expires); err != nil {
			t.Fatal(err)
		}
	}
	var basis postgres.Basis
	ask := func() {
		t.Helper()
		read, err := db.Occupancies(t.Context(), "gangnam", window, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		basis = read.Basis
	}
	expect := func(what string, now time.Time, want bool) {
		t.Helper()
		if got, err := db.Unchanged(t.Context(), basis, now); err != nil || got != want {
			t.Errorf("%s: unchanged is %t (%v), want %t", what, got, err, want)
		}
	}
	now := time.Now()

	ask()
	expect("at once", now, true)
	hold(db.Pool, "elsewhere", start.Add(10*time.Hour), now.Add(time.Minute))
	expect("after a hold in another branch", now, true)
	exec(t, db.Pool, `update reservation set updated_at = now() where state = 'DONE'`)
	expect("after a change of a reservation", now, false)

	// A transaction that began before the answer and is committed after it.
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	hold(tx, "gangnam", start.Add(2*time.Hour), now.Add(time.Minute))
	ask()
	expect("while another transaction is open", now, true)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("after its commit", now, false)

	ask()
	expect("with a hold", now, true)
	expect("when the hold has expired", now.Add(time.Minute), false)
	exec(t, db.Pool, `update branch set revision = revision + 1 where code = 'gangnam'`)
	expect("after a change of the branch", now, false)

	// A number of a restored dump that this server has not reached.
	ask()
	exec(t, db.Pool, `alter table reservation disable trigger all; update reservation set changed = '9000000000000'; alter table reservation enable trigger all`)
	expect("after a restore", now, true)

	// Calls that share a question get their own answers.
	stale := basis
	exec(t, db.Pool, `update reservation set updated_at = now() where state = 'DONE'`)
	ask()
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			of, want := stale, false
			if i%2 == 0 {
				of, want = basis, true
			}
			if got, err := db.Unchanged(t.Context(), of, now); err != nil || got != want {
				t.Errorf("call %d: unchanged is %t (%v), want %t", i, got, err, want)
			}
		})
	}
	calls.Wait()
	exec(t, db.Pool, `update branch set code = 'renamed' where code = 'gangnam'`)
	expect("after a change of the code", now, false)
}

// TestUnchangedMissesNoCommit holds that a question which callers share begins after each of them: a change that is committed
// before a call is seen by it, while other callers ask about the same answer and about other branches.
func TestUnchangedMissesNoCommit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	day := booking.LocalWindow{Date: booking.DateOf(time.Now(), time.UTC), Hours: 4}
	var calls sync.WaitGroup
	for n := range 4 {
		code := fmt.Sprint("branch-", n)
		exec(t, db.Pool, `insert into branch (code) values ('`+code+`')`)
		var current atomic.Pointer[postgres.Basis]
		written := make(chan struct{})
		calls.Go(func() {
			defer close(written)
			for range 50 {
				read, err := db.Occupancies(t.Context(), code, day, time.Now())
				if err != nil {
					t.Error(err)
					return
				}
				current.Store(&read.Basis)
				for _, want := range []bool{true, false} {
					if got, err := db.Unchanged(t.Context(), read.Basis, time.Now()); err != nil || got != want {
						t.Errorf("%s: unchanged is %t (%v), want %t", code, got, err, want)
					}
					if _, err := db.Pool.Exec(t.Context(), `update branch set revision = revision + 1 where code = $1`, code); err != nil {
						t.Error(err)
					}
				}
			}
		})
		calls.Go(func() { // has the same question in flight most of the time
			for {
				select {
				case <-written:
					return
				default:
				}
				if basis := current.Load(); basis != nil {
					if _, err := db.Unchanged(t.Context(), *basis, time.Now()); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	calls.Wait()
}
