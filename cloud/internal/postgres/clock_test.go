package postgres_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestClockFollowsTheDatabase compares machines whose clocks differ from the database's: each shows the database's time, also after
// a step of the machine's clock.
func TestClockFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, ahead := range []time.Duration{0, 3 * time.Second, -3 * time.Second, 30 * time.Second, -30 * time.Second, 90 * time.Second, -90 * time.Second} {
		offset := ahead
		clock := postgres.NewClock(func() time.Time { return time.Now().Add(offset) })
		check := func(of string) {
			t.Helper()
			if err := clock.Compare(t.Context(), db.Pool); err != nil {
				t.Fatal(err)
			}
			var before, after time.Time
			read := func(into *time.Time) {
				if err := db.Pool.QueryRow(t.Context(), `select clock_timestamp()`).Scan(into); err != nil {
					t.Fatal(err)
				}
			}
			read(&before)
			now := clock.Now()
			read(&after)
			// The correction is exact to half of the time that its query took, which is far below the smallest difference here.
			if now.Before(before.Add(-time.Second)) || now.After(after.Add(time.Second)) {
				t.Errorf("%s of %s: clock shows %s, want a time from %s to %s", of, offset, now, before, after)
			}
		}
		check("difference")
		first := clock.Ahead()
		check("difference")
		if second := clock.Ahead(); (second - first).Abs() > time.Second {
			t.Errorf("a machine that is ahead by %s: corrected by %s, then by %s", ahead, first, second)
		}
		offset -= 45 * time.Second
		check("step")
	}
}

// TestAloneClockIsNotCorrected keeps the time that a test has set.
func TestAloneClockIsNotCorrected(t *testing.T) {
	t.Parallel()
	want := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := postgres.AloneClock(func() time.Time { return want })
	if err := clock.Compare(t.Context(), pgtest.New(t).Pool); err != nil {
		t.Fatal(err)
	}
	if got := clock.Now(); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
