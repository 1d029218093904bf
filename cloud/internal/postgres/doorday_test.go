package postgres_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Seven days are today and the six before it, at any hour, in the time of each branch.
func TestDoorLevelsHaveTheDaysOfTheBranch(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for code, name := range map[string]string{"seoul": "Asia/Seoul", "york": "America/New_York"} {
		if _, err := db.Pool.Exec(t.Context(), `insert into branch (code, time_zone) values ($1, $2)`, code, name); err != nil {
			t.Fatal(err)
		}
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, today := range []string{"2027-03-17", "2027-06-10", "2027-11-10"} { // New York changes its clocks on 14 March and 7 November
			date, err := time.ParseInLocation(time.DateOnly, today, zone)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Pool.Exec(t.Context(), `
				insert into door_day (branch_id, device, day, presses, success, p50_ms, p95_ms, retries, pins)
				select id, 'room_1', $2::date - n, 20, 20, 100, 200, 0, 0 from branch, generate_series(1, 12) n where code = $1`, code, today); err != nil {
				t.Fatal(err)
			}
			for _, clock := range []time.Duration{30 * time.Minute, 8 * time.Hour, 12 * time.Hour, 23*time.Hour + 30*time.Minute} {
				levels, err := postgres.DoorLevels(t.Context(), db.Pool, []string{code}, 7, date.Add(clock))
				if err != nil {
					t.Fatal(err)
				}
				var days []string
				for _, d := range levels[0].Days {
					days = append(days, d.Date.Format(time.DateOnly))
				}
				if want := date.AddDate(0, 0, -6).Format(time.DateOnly); len(days) != 6 || days[0] != want {
					t.Errorf("%s, %s after midnight of %s: got %v, want six days from %s on", code, clock, today, days, want)
				}
			}
			if _, err := db.Pool.Exec(t.Context(), `delete from door_day`); err != nil {
				t.Fatal(err)
			}
		}
	}
}
