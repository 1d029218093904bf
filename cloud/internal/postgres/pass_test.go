package postgres_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// TestTrivialPIN checks which PINs are never given to a stay.
func TestTrivialPIN(t *testing.T) {
	t.Parallel()
	for pin, trivial := range map[string]bool{
		"000000": true, "111111": true, "123456": true, "654321": true, "345678": true, "121212": true, "123123": true, "112211": true, "770077": true,
		"901234": true, "482913": false, "193847": false, "123465": false, "135790": false,
	} {
		if got := postgres.TrivialPIN(pin); got != trivial {
			t.Errorf("%s: trivial %t, want %t", pin, got, trivial)
		}
	}
}

// partnerStay adds a partner's booking to a room, in pieces of five hours, and returns the first one.
func partnerStay(t *testing.T, db *postgres.DB, room int, start, end time.Time) (root booking.ReservationID) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		r := postgres.PartnerReservation{Partner: "calendar", State: booking.Done, Key: postgres.NewKey{Key: uuid.New()}}
		if err := tx.QueryRow(t.Context(), `select branch_id, id from room where no = $1`, room).Scan(&r.Branch, &r.Room); err != nil {
			return err
		}
		for r.Start = start; r.Start.Before(end); r.Start = r.End {
			r.End = r.Start.Add(booking.MaxLength)
			if r.End.After(end) {
				r.End = end
			}
			r.Extends = root
			id, err := postgres.InsertPartnerReservation(t.Context(), tx, r, start)
			if err != nil {
				return err
			}
			if root == 0 {
				root = id
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// passFixture returns a database with a branch of two rooms, and the keyring that seals its PINs.
func passFixture(t *testing.T) (*postgres.DB, *seal.Keyring) {
	t.Helper()
	db := pgtest.New(t)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `insert into room (branch_id, no) select id, generate_series(1, 2) from branch`)
	keys, err := seal.ParseKeys(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	return db, keys
}

// TestLongStayGetsAnotherPass revokes the pass of a partner's stay that began more than five hours ago: it gets another one, as a
// short stay does. A stay that is over gets none.
func TestLongStayGetsAnotherPass(t *testing.T) {
	t.Parallel()
	db, keys := passFixture(t)
	now := time.Now().Truncate(10 * time.Minute)
	start, end := now.Add(-30*time.Hour), now.Add(42*time.Hour)
	long, over := partnerStay(t, db, 1, start, end), partnerStay(t, db, 2, now.Add(-30*time.Hour), now.Add(-time.Hour))
	missing := func(want bool) {
		t.Helper()
		branches, err := postgres.BranchesWithoutPass(t.Context(), db.Pool, now.Add(postgres.ListDepth), now)
		if err != nil || slices.Equal(branches, []booking.BranchID{1}) != want || len(branches) > 1 {
			t.Errorf("branches with a stay without a pass: %v (%v), want gangnam: %v", branches, err, want)
		}
	}
	for _, step := range []string{"first pass", "pass after a revocation"} {
		missing(true)
		err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			return postgres.IssueMissing(t.Context(), tx, keys, 1, now.Add(postgres.ListDepth), now)
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := postgres.PassOf(t.Context(), db.Pool, long)
		if err != nil || !p.NotBefore.Equal(start.Add(-booking.UnlockLead)) || !p.NotAfter.Equal(end.Add(-booking.UnlockLead)) {
			t.Errorf("%s: from %s to %s (%v), want the whole stay, %s to %s", step, p.NotBefore, p.NotAfter, err, start, end)
		}
		missing(false)
		exec(t, db.Pool, `update pass set ended_at = clock_timestamp()`)
	}
	if _, err := postgres.PassOf(t.Context(), db.Pool, over); !errors.Is(err, postgres.ErrNoPass) {
		t.Errorf("pass of a stay that is over: %v, want none", err)
	}
}

// TestPINDiffersFromThatOfALongStay extends a stay into the time of a pass of twenty days with the same PIN: it gets another one.
func TestPINDiffersFromThatOfALongStay(t *testing.T) {
	t.Parallel()
	db, keys := passFixture(t)
	now := time.Now().Truncate(10 * time.Minute)
	long, short := partnerStay(t, db, 1, now, now.Add(20*24*time.Hour)), partnerStay(t, db, 2, now.Add(time.Hour), now.Add(2*time.Hour))
	for _, id := range []booking.ReservationID{long, short} {
		_, err := db.Pool.Exec(t.Context(), `
			insert into pass (id, reservation_id, branch_id, room_id, pin, not_before, not_after)
			select gen_random_uuid(), id, branch_id, room_id, $2, start_at, coalesce(stay_end, end_at) from reservation where id = $1`,
			id, keys.Seal(postgres.PassPINPurpose, []byte("482913")))
		if err != nil {
			t.Fatal(err)
		}
	}
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		return postgres.ExtendPass(t.Context(), tx, keys, short, now.Add(3*time.Hour))
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := postgres.PassOf(t.Context(), db.Pool, short)
	if err != nil {
		t.Fatal(err)
	}
	if pin, err := keys.Open(postgres.PassPINPurpose, p.PIN); err != nil || string(pin) == "482913" {
		t.Errorf("PIN of the short stay: %q (%v), want not that of the long stay", pin, err)
	}
}
