package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Statements of the last release, which knows one key per reservation, in plain text.
const (
	oldLookup  = `select count(*) from reservation where doorlock_key = $1 and state = 'DONE'`
	oldConfirm = `update reservation set state = 'DONE', doorlock_key = $1, blocked_key = null where doorlock_key is distinct from $1`
	oldBlock   = `update reservation set blocked_key = doorlock_key, doorlock_key = null where doorlock_key = $1`
	oldUnblock = `update reservation set doorlock_key = blocked_key, blocked_key = null where blocked_key = $1`
	oldCancel  = `update reservation set state = 'CANCELING', doorlock_key = null, blocked_key = null where doorlock_key = $1`
)

// TestKeysOfTheLastRelease runs the statements of the last release and of this one against each other, as during a rolling
// upgrade: both agree on the key that opens doors.
func TestKeysOfTheLastRelease(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, `update key_text set until = now() + interval '1 hour'`) // an upgraded database
	old, _ := oneRoom(t, db, time.Now().Truncate(10*time.Minute))
	r, k, err := postgres.ReservationByKey(t.Context(), db.Pool, old)
	if err != nil || k.Kind != booking.OwnerKey || r.DoorlockKey != old.String() || !r.HasKey() {
		t.Fatalf("a key of the last release: %+v, %+v, %v", r, k, err)
	}
	known := func(step string, key uuid.UUID, want bool) {
		t.Helper()
		var n int
		if err := db.Pool.QueryRow(t.Context(), oldLookup, key).Scan(&n); err != nil || (n == 1) != want {
			t.Errorf("%s: the last release finds %d (%v), want %t", step, n, err, want)
		}
		_, _, err := postgres.ReservationByKey(t.Context(), db.Pool, key)
		if (err == nil) != want || err != nil && !errors.Is(err, postgres.ErrNoReservation) {
			t.Errorf("%s: this release answers %v, want %t", step, err, want)
		}
	}
	change := func(do func(tx pgx.Tx) error) {
		t.Helper()
		if err := pgx.BeginFunc(t.Context(), db.Pool, do); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, db.Pool, oldBlock, old)
	known("blocked by the last release", old, false)
	exec(t, db.Pool, oldUnblock, old)
	known("unblocked by the last release", old, true)
	change(func(tx pgx.Tx) error { return postgres.BlockKeys(t.Context(), tx, r.ID, time.Now()) })
	known("blocked", old, false)
	exec(t, db.Pool, oldUnblock, old)
	known("blocked, and unblocked by the last release", old, true)
	exec(t, db.Pool, oldBlock, old)
	change(func(tx pgx.Tx) error { return postgres.UnblockKeys(t.Context(), tx, r.ID) })
	known("blocked by the last release, and unblocked", old, true)

	fresh := postgres.NewKey{Key: uuid.New(), Sealed: []byte("sealed")}
	change(func(tx pgx.Tx) error {
		return postgres.PutOwnerKey(t.Context(), tx, r.ID, fresh, postgres.KeyRotated, "admin:hq")
	})
	known("rotated", old, false)
	known("rotated", fresh.Key, true)
	exec(t, db.Pool, oldCancel, fresh.Key)
	known("cancelled by the last release", fresh.Key, false)
	again := uuid.New()
	exec(t, db.Pool, oldConfirm, again)
	known("confirmed by the last release", fresh.Key, false)
	known("confirmed by the last release", again, true)
}

// TestKeyTextsAreForgotten: the plain text of keys is deleted once they are sealed and no program of the last release can
// need it; the keys keep opening.
func TestKeyTextsAreForgotten(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	key, _ := oneRoom(t, db, time.Now().Truncate(10*time.Minute))
	exec(t, db.Pool, `update key_text set until = now() + interval '1 hour'`)
	forget := func() int64 {
		t.Helper()
		n, err := postgres.ForgetKeyTexts(t.Context(), db.Pool, 10)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	unsealed, err := postgres.UnsealedKeys(t.Context(), db.Pool, 10)
	if err != nil || len(unsealed) != 1 || unsealed[0].Text != key.String() {
		t.Fatalf("unsealed %v, %v", unsealed, err)
	}
	exec(t, db.Pool, `update key_text set until = now()`)
	if n := forget(); n != 0 {
		t.Errorf("forgot %d keys that are not sealed", n)
	}
	if err := postgres.SealKey(t.Context(), db.Pool, unsealed[0].ID, []byte("sealed")); err != nil {
		t.Fatal(err)
	}
	exec(t, db.Pool, `update key_text set until = now() + interval '1 hour'`)
	if n := forget(); n != 0 {
		t.Errorf("forgot %d keys that the last release needs", n)
	}
	exec(t, db.Pool, `update key_text set until = now()`)
	if n := forget(); n != 1 {
		t.Errorf("forgot %d keys, want 1", n)
	}
	r, _, err := postgres.ReservationByKey(t.Context(), db.Pool, key)
	if err != nil || r.DoorlockKey != "" || r.SealedKey != "sealed" {
		t.Errorf("%+v, %v", r, err)
	}
}
