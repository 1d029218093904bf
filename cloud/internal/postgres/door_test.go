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
			found, err := postgres.RequestDoorByKey(t.Context(), db.Pool, uuid.New(), "gangnam", "room", key, hash, postgres.DoorPending, "", now)
			if err != nil {
				t.Fatal(err)
			}
			if found.Made != allowed {
				t.Errorf("request at %v: written %t, rule %t", now, found.Made, allowed)
			}
			if !found.Holder.Start.Equal(r.Start) || !found.Holder.End.Equal(r.End) || found.Device != "room_1" {
				t.Errorf("found %+v", found)
			}
			pending := uuid.New()
			if _, err := postgres.RequestDoorByKey(t.Context(), db.Pool, pending, "gangnam", "room", key, hash, postgres.DoorPending, "", r.Start); err != nil {
				t.Fatal(err)
			}
			doors, err := postgres.GrantDoor(t.Context(), db.Pool, pending, "gangnam", "nonce", time.Minute, time.Minute, now)
			if err != nil {
				t.Fatal(err)
			}
			if granted := doors != nil; granted != allowed {
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
		if _, err := postgres.RequestDoorByKey(t.Context(), db.Pool, id, "gangnam", "room", key, hash, postgres.DoorPending, "", start); err != nil {
			t.Fatal(err)
		}
		if _, err := postgres.GrantDoor(t.Context(), db.Pool, id, "gangnam", "nonce", time.Minute, time.Minute, start); err != nil {
			t.Fatal(err)
		}
		end := func() (postgres.DoorState, error) { return postgres.AbandonDoor(t.Context(), db.Pool, id) }
		if report {
			end = func() (postgres.DoorState, error) {
				return postgres.ReportDoor(t.Context(), db.Pool, id, "gangnam", "room_1", postgres.DoorOutcome{Outcome: "opened"})
			}
		}
		state, err := end()
		if err != nil {
			t.Fatal(err)
		}
		return state
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

// oneRoom is a branch with a room that is reserved for an hour.
func oneRoom(t *testing.T, db *postgres.DB, start time.Time) (key uuid.UUID, hash []byte) {
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
