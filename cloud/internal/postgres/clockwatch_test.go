package postgres_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestClockSteady lets the clock run, jump ahead by years, run there, and return. Rows may be deleted for good only after the clock has run for
// three days without a step.
func TestClockSteady(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	years := start.AddDate(10, 0, 0)
	for _, step := range []struct {
		name           string
		at             time.Time
		before, steady bool // the clock is steady before and after the watch has seen the time
	}{
		{"a new database", start, true, true},
		{"a minute later", start.Add(time.Minute), true, true},
		{"nine hours ahead", start.Add(9 * time.Hour), true, true},
		{"right again", start.Add(2 * time.Minute), true, true},
		{"ten years ahead", years, false, false},
		{"an hour later", years.Add(time.Hour), false, false},
		{"a day later", years.Add(25 * time.Hour), false, false},
		{"right again after the ten years", start.Add(26 * time.Hour), false, false},
		{"two days later", start.Add(26*time.Hour + day), false, false},
		{"two more days later", start.Add(26*time.Hour + 2*day), false, false},
		{"three days later", start.Add(26*time.Hour + 3*day), true, true},
		{"after an outage of two days", start.Add(26*time.Hour + 5*day + time.Second), false, false},
	} {
		for i, want := range []bool{step.before, step.steady} {
			if i == 1 {
				if err := postgres.WatchClock(t.Context(), db.Pool, step.at); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := postgres.ClockSteady(t.Context(), db.Pool, step.at); err != nil || got != want {
				t.Errorf("%s, seen %v: got %v, %v, want %v", step.name, i == 1, got, err, want)
			}
		}
	}
}
