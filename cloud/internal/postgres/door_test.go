package postgres_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// The unlock window stands twice: as a rule in booking and as a condition in two statements. They must agree on every edge.
func TestDoorWindowIsTheRuleOfBooking(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 23, 30, 0, 0, time.UTC)
	r := booking.Reservation{State: booking.Done, Interval: booking.Interval{Start: start, End: start.Add(time.Hour)}}
	key, hash := oneRoom(t, db, start)
	from, to := r.UnlockWindow()
	for _, edge := range []time.Time{from, to, r.Start, r.End} {
		for _, offset := range []time.Duration{-time.Second, -time.Microsecond, 0, time.Microsecond, time.Second} {
			now := edge.Add(offset)
			allowed := r.CanUnlock(now) == nil
			found := ask(t, db, uuid.New(), key, hash, now)
			if found.Made != allowed {
				t.Errorf("request at %v: written %t, rule %t", now, found.Made, allowed)
			}
			if !found.Holder.Start.Equal(r.Start) || !found.Holder.End.Equal(r.End) || found.Device != "room_1" {
				t.Errorf("found %+v", found)
			}
			pending := uuid.New()
			ask(t, db, pending, key, hash, r.Start)
			if granted := claim(t, db, pending, now) != nil; granted != allowed {
				t.Errorf("grant at %v: %t, rule %t", now, granted, allowed)
			}
		}
	}
}

func TestNobodyStandsOutsideForEver(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	key, hash := oneRoom(t, db, start)
	press := func(report bool) postgres.DoorState {
		t.Helper()
		id := uuid.New()
		ask(t, db, id, key, hash, start)
		claim(t, db, id, start)
		if !report {
			state, err := postgres.AbandonDoor(t.Context(), db.Pool, id)
			if err != nil {
				t.Fatal(err)
			}
			return state
		}
		// The same report twice in one batch: the first decides.
		opened := postgres.DoorReport{ID: id, Branch: "gangnam", Device: "room_1", Outcome: postgres.DoorOutcome{Outcome: "opened"}}
		reported, err := postgres.ReportDoors(t.Context(), db.Doors, []postgres.DoorReport{opened, opened})
		if err != nil {
			t.Fatal(err)
		}
		if reported[1].Known {
			t.Error("a repeated report is taken for a new one")
		}
		return reported[0].Decided
	}
	var got []postgres.DoorState
	for _, report := range []bool{false, false, false, true, false, true} {
		got = append(got, press(report))
	}
	want := []postgres.DoorState{"UNKNOWN", "FAILED", "FAILED", "SUCCESS", "UNKNOWN", "SUCCESS"}
	if !slices.Equal(got, want) {
		t.Errorf("ended as %v, want %v", got, want)
	}
}

func ask(t *testing.T, db *postgres.DB, id, key uuid.UUID, hash []byte, now time.Time) postgres.KeyedDoor {
	t.Helper()
	found, err := postgres.RequestDoorsByKey(t.Context(), db.Doors, []postgres.KeyedAsk{
		{ID: id, Branch: "gangnam", Kind: "room", Key: key, KeyHash: hash, State: postgres.DoorPending, Now: now},
	})
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

func claim(t *testing.T, db *postgres.DB, id uuid.UUID, now time.Time) []string {
	t.Helper()
	doors, err := postgres.GrantDoors(t.Context(), db.Doors,
		[]postgres.DoorClaim{{ID: id, Branch: "gangnam", Nonce: "nonce", Now: now}}, time.Minute, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return doors[0]
}

// oneRoom is a branch with a room that is reserved for an hour.
func oneRoom(t testing.TB, db *postgres.DB, start time.Time) (key uuid.UUID, hash []byte) {
	t.Helper()
	key = uuid.New()
	sum := sha256.Sum256([]byte(key.String()))
	for _, sql := range []string{
		`insert into branch (code) values ($1)`,
		`insert into room (branch_id, no) select id, 1 from branch where code = $1`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql, "gangnam"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, doorlock_key)
		select branch_id, id, 'DONE', 'CUSTOMER', $1, $2, tstzrange($1, $2::timestamptz + interval '10 minutes'), $3 from room`,
		start, start.Add(time.Hour), key)
	if err != nil {
		t.Fatal(err)
	}
	return key, sum[:]
}

// A statement that says so returns before its commit is on disk; the next one waits for the disk again.
func TestRelaxedCommitIsForOneStatement(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `select set_config('synchronous_commit', $1, false)`, "on"); err != nil { // test servers are lax
		t.Fatal(err)
	}
	if err := postgres.NotifyDoors(t.Context(), conn, []uuid.UUID{uuid.New()}); err != nil {
		t.Fatal(err)
	}
	var after string
	if err := conn.QueryRow(t.Context(), `select current_setting($1)`, "synchronous_commit").Scan(&after); err != nil {
		t.Fatal(err)
	}
	if after != "on" {
		t.Errorf("synchronous_commit is %s after a relaxed statement", after)
	}
}

func TestListenDoors(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var ids []uuid.UUID
	for range 450 { // more than one notification holds
		ids = append(ids, uuid.New())
	}
	heard := make(chan uuid.UUID, len(ids))
	ready, done := make(chan struct{}), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		done <- postgres.ListenDoors(ctx, db, func() { close(ready) }, func(id uuid.UUID) { heard <- id })
	}()
	<-ready
	if err := postgres.NotifyDoors(t.Context(), db.Pool, ids); err != nil {
		t.Fatal(err)
	}
	for _, want := range ids {
		select {
		case got := <-heard:
			if got != want {
				t.Fatalf("heard %v, want %v", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nothing heard")
		}
	}
	stop()
	if err := <-done; err == nil {
		t.Error("ListenDoors ended without an error")
	}
}
