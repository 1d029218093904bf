package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// eventSubjects adds two branches with n rooms and a reservation of each room.
func eventSubjects(t *testing.T, db *postgres.DB, n int) {
	t.Helper()
	exec(t, db.Pool, `insert into branch (code) values ('gangnam'), ('hongdae')`)
	exec(t, db.Pool, `insert into room (branch_id, no) select 1 + i % 2, i from generate_series(1, $1) i`, n)
	exec(t, db.Pool, `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at)
		select branch_id, id, 'HOLD', 'CUSTOMER', '2026-12-01', '2026-12-01 01:00', tstzrange('2026-12-01', '2026-12-01 01:10'), '2026-12-01' from room`)
}

var eventStates = []string{"CONFIRMING", "WAITING_FOR_DEPOSIT", "DONE", "CANCELING", "CANCELED"}

// mutate makes random changes, some rolled back, some slow to commit, several subjects in one transaction.
func mutate(ctx context.Context, db *postgres.DB, n, subjects int, random *rand.Rand) error {
	for range n {
		err := db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			first := random.IntN(subjects) // in order, so that transactions do not deadlock
			for id := first; id < min(first+1+random.IntN(3), subjects); id++ {
				_, err := tx.Exec(ctx, `update reservation set state = $2 where id = (select min(id) from reservation) + $1`, id, eventStates[random.IntN(len(eventStates))])
				if err != nil {
					return err
				}
			}
			if random.IntN(10) == 0 {
				return errRollback
			}
			if random.IntN(4) == 0 {
				_, err := tx.Exec(ctx, `select pg_sleep($1)`, random.Float64()*0.01)
				return err
			}
			return nil
		})
		if err != nil && !errors.Is(err, errRollback) {
			return err
		}
	}
	return nil
}

var errRollback = errors.New("roll back")

// Clients have seen events after the backup that is restored: new ones get other ids.
func TestEventIDsJumpAfterARestore(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	eventSubjects(t, db, 1)
	head := func() (next int64) {
		if err := db.PlaceEvents(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		_, next, err := postgres.Events(t.Context(), db.Pool, postgres.EventFilter{Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	before := head()
	if err := db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return postgres.BeginRebuild(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	if err := mutate(t.Context(), db, 5, 1, rand.New(rand.NewPCG(7, 0))); err != nil {
		t.Fatal(err)
	}
	if after := head(); before == 0 || after < before+1_000_000 {
		t.Errorf("the id of the latest event is %d after the restore, and was %d before", after, before)
	}
}

// Concurrent writers, two placing processes and a reader: the reader misses no event, sees each subject's versions in order
// without a gap, and rebuilds the final state.
func TestEventsMissNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const subjects, writers, each = 20, 10, 120
	eventSubjects(t, db, subjects)
	ctx, stop := context.WithCancel(t.Context())
	var writing, placing sync.WaitGroup
	for range 2 {
		placing.Go(func() {
			for ctx.Err() == nil {
				if err := db.PlaceEvents(ctx, false); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			if err := mutate(ctx, db, each, subjects, rand.New(rand.NewPCG(7, uint64(w)))); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()

	state, versions := map[string]string{}, map[string]int64{}
	var after, count int64
	read := func(wait bool) {
		if err := db.PlaceEvents(t.Context(), wait); err != nil {
			t.Fatal(err)
		}
		for {
			events, next, err := postgres.Events(t.Context(), db.Pool, postgres.EventFilter{After: after, Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				count++
				if e.Version != versions[e.Subject]+1 && strings.HasPrefix(e.Subject, "reservation:") {
					t.Fatalf("event %d of %s has version %d after %d", e.Place, e.Subject, e.Version, versions[e.Subject])
				}
				versions[e.Subject] = e.Version
				if what := strings.TrimPrefix(e.Type, "reservation."); what != e.Type && what != "changed" {
					state[e.Subject] = strings.ToUpper(strings.ReplaceAll(what, "-", "_"))
				}
			}
			if next == after {
				return
			}
			after = next
		}
	}
	for writes := true; writes; {
		select {
		case <-done:
			writes = false
		default:
			read(false)
		}
	}
	stop()
	placing.Wait()
	read(true)

	rows, err := db.Pool.Query(t.Context(), `select 'reservation:' || id, state, version from reservation`)
	if err != nil {
		t.Fatal(err)
	}
	final, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Subject, State string
		Version        int64
	}])
	if err != nil || len(final) != subjects {
		t.Fatalf("%d reservations, %v", len(final), err)
	}
	var mutations int64
	for _, f := range final {
		mutations += f.Version - 1
		if state[f.Subject] != f.State || versions[f.Subject] != f.Version {
			t.Errorf("%s: %s %d from the stream, %s %d in the database", f.Subject, state[f.Subject], versions[f.Subject], f.State, f.Version)
		}
	}
	t.Logf("%d events, %d mutations of %d reservations", count, mutations, subjects)
}

// A transaction that took its id first and committed last is not skipped by a reader that has read past it.
func TestLateCommitIsNotSkipped(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	eventSubjects(t, db, 2)
	late, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	update := `update reservation set state = 'DONE' where id = (select min(id) from reservation) + $1`
	if _, err := late.Exec(t.Context(), update, 0); err != nil {
		t.Fatal(err)
	}
	exec(t, db.Pool, update, 1)
	next := func(after int64) (types []string, place int64) {
		if err := db.PlaceEvents(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		events, place, err := postgres.Events(t.Context(), db.Pool, postgres.EventFilter{After: after, Limit: 100, Types: []string{"reservation.done"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			types = append(types, e.Subject)
		}
		return types, place
	}
	first, place := next(0)
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, _ := next(place)
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("got %v, then %v", first, second)
	}
}

// A statement that moves a stay updates its root twice: itself, and by the trigger of an extension that it meets first.
func TestEventsOfAStayFollowItsVersions(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	eventSubjects(t, db, 1)
	exec(t, db.Pool, `update reservation set state = 'DONE'`)
	exec(t, db.Pool, `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, extends)
		select branch_id, room_id, 'DONE', 'CUSTOMER', '2026-12-01 01:00', '2026-12-01 02:00', tstzrange('2026-12-01 01:10', '2026-12-01 02:10'), id
		from reservation`)
	exec(t, db.Pool, `update reservation set reason = 'x' where extends is null`) // the root comes last in the table
	exec(t, db.Pool, `update reservation set occupied = 'empty'`)
	exec(t, db.Pool, `
		update reservation set start_at = start_at + interval '1 day', end_at = end_at + interval '1 day', stay_end = null,
		       occupied = tstzrange(start_at + interval '1 day', end_at + interval '1 day')`)
	if err := db.PlaceEvents(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	events, _, err := postgres.Events(t.Context(), db.Pool, postgres.EventFilter{Limit: 100, Types: []string{"reservation.*"}})
	if err != nil {
		t.Fatal(err)
	}
	last, moved := map[string]int64{}, 0
	for _, e := range events {
		if e.Version != last[e.Subject]+1 {
			t.Errorf("version %d of %s (%s) follows version %d", e.Version, e.Subject, e.Type, last[e.Subject])
		}
		last[e.Subject] = e.Version
		if e.Type == "reservation.moved" {
			moved++
		}
	}
	if moved != 2 {
		t.Errorf("got %d moved reservations, want 2: %v", moved, events)
	}
}

// Every table of the stream writes events, with the branch that they concern.
func TestEventsOfEveryTable(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	eventSubjects(t, db, 1)
	id := "0d6f7a7e-6c1e-4c6e-9f3b-4e0b8f7f2c11"
	exec(t, db.Pool, `insert into door_request (id, branch_id, requested_by, kind, device, devices, created_at) select $1, id, 'admin:hq', 'front', 'front', '{front_1}', now() from branch where code = 'gangnam'`, id)
	exec(t, db.Pool, `update door_request set state = 'GRANTED', nonce = 'n', granted_at = now() where id = $1`, id)
	exec(t, db.Pool, `update door_request set state = 'SUCCESS', finished_at = now() where id = $1`, id)
	exec(t, db.Pool, `insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key) select id, 'REQUESTED', 'x', 1, 'customer', 'k' from reservation`)
	exec(t, db.Pool, `update refund set state = 'COMPLETED'`)
	exec(t, db.Pool, `insert into alert (kind, branch, subject, since) values ('test', 'gangnam', '', now()), ('test', '', '', now()) on conflict do nothing`)
	exec(t, db.Pool, `update alert set acknowledged_by = 'hq'`)
	exec(t, db.Pool, `update alert set ended_at = now()`)
	exec(t, db.Pool, `update reservation set room_id = room_id, end_at = end_at - interval '10 minutes', occupied = tstzrange(start_at, end_at)`)
	exec(t, db.Pool, `update reservation set reason = 'x'`)
	if err := db.PlaceEvents(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	list := func(f postgres.EventFilter) string {
		t.Helper()
		f.Limit = 100
		events, _, err := postgres.Events(t.Context(), db.Pool, f)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, e := range events {
			branch := "-"
			if e.Branch != nil {
				branch = *e.Branch
			}
			kind, _, _ := strings.Cut(e.Subject, ":")
			lines = append(lines, fmt.Sprint(e.Type, " ", branch, " ", kind, " ", e.Version))
		}
		return strings.Join(lines, "\n")
	}
	all := list(postgres.EventFilter{})
	for _, want := range []string{
		"branch.created gangnam branch 1", "reservation.hold hongdae reservation 1",
		"door-request.pending gangnam door-request 1", "door-request.granted gangnam door-request 2", "door-request.success gangnam door-request 3",
		"refund.requested hongdae refund 1", "refund.completed hongdae refund 2",
		"alert.opened gangnam alert 1", "alert.opened - alert 1", "alert.acknowledged gangnam alert 2", "alert.ended - alert 3",
		"reservation.moved hongdae reservation 2", "reservation.changed hongdae reservation 3", "branch.changed hongdae branch 2",
	} {
		if !strings.Contains("\n"+all+"\n", "\n"+want+"\n") {
			t.Errorf("no event %q in\n%s", want, all)
		}
	}
	if of := list(postgres.EventFilter{Branches: []string{"gangnam"}}); strings.Contains(of, "hongdae") || strings.Contains(of, " - ") || !strings.Contains(of, "gangnam") {
		t.Errorf("events of gangnam:\n%s", of)
	}
	if of := list(postgres.EventFilter{Types: []string{"refund.*", "alert.ended"}}); strings.Count(of, "\n") != 3 {
		t.Errorf("refunds and ended alerts:\n%s", of)
	}

	// Places before the oldest event that is kept, and places that do not exist, are reported.
	exec(t, db.Pool, `delete from event where place < 5`)
	for _, after := range []int64{1, 3, 1 << 40} {
		if _, _, err := postgres.Events(t.Context(), db.Pool, postgres.EventFilter{After: after, Limit: 1}); !errors.Is(err, postgres.ErrEventGone) {
			t.Errorf("after %s: %v", strconv.FormatInt(after, 10), err)
		}
	}
	if _, _, err := postgres.Events(t.Context(), db.Pool, postgres.EventFilter{After: 4, Limit: 1}); err != nil {
		t.Error(err)
	}
	if err := postgres.PurgeEvents(t.Context(), db.Pool, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if rest := list(postgres.EventFilter{}); rest != "" {
		t.Errorf("after the purge:\n%s", rest)
	}
}
