package door_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/door"
)

// simulate returns the days of a door with ten presses a day, whose latency spreads by 40 ms around base + slope per day. A
// press that takes longer than timeout fails. failed is the first day with a failure, or -1.
func simulate(random *rand.Rand, days int, base, slope, timeout float64) (level door.Level, failed int) {
	failed = -1
	for day := range days {
		d := door.Day{Date: time.Unix(int64(day)*86400, 0), Presses: 10}
		var took []float64
		for range d.Presses {
			if ms := base + slope*float64(day) + 40*random.NormFloat64(); ms < timeout {
				took = append(took, ms)
			} else if failed < 0 {
				failed = day
			}
		}
		slices.Sort(took)
		d.Success = len(took)
		if len(took) > 0 {
			d.P50, d.P95 = int(took[len(took)/2]), int(took[len(took)-1])
		}
		level.Days = append(level.Days, d)
	}
	return level, failed
}

// A lock that slows by 20 ms a day is flagged three days before its first failure in at least 9 of 10 runs.
func TestSlowingLockIsFlagged(t *testing.T) {
	t.Parallel()
	const runs = 500
	early := 0
	for seed := range uint64(runs) {
		level, failed := simulate(rand.New(rand.NewPCG(seed, 1)), 40, 150, 20, 600)
		if failed < 3 {
			continue
		}
		level.Days = level.Days[:failed-2]
		if level.Verdict() == door.Watch {
			early++
		}
	}
	t.Logf("flagged three days early in %d of %d runs", early, runs)
	if early < runs*9/10 {
		t.Errorf("flagged three days early in %d of %d runs, want 9 of 10", early, runs)
	}
}

// Of 1,000 doors that do not change, less than one per week is flagged.
func TestSteadyLockIsNotFlagged(t *testing.T) {
	t.Parallel()
	const doors, weeks = 1000, 10
	flagged := 0
	for seed := range uint64(doors) {
		level, _ := simulate(rand.New(rand.NewPCG(seed, 2)), 14+7*weeks, 150, 0, 600)
		was := door.Good
		for end := 14; end <= len(level.Days); end++ {
			is := door.Level{Days: level.Days[:end]}.Verdict()
			if is != door.Good && was == door.Good {
				flagged++
			}
			was = is
		}
	}
	t.Logf("%d false flags in %d weeks of %d doors", flagged, weeks, doors)
	if flagged >= weeks {
		t.Errorf("%d false flags in %d weeks, want fewer than 1 per week", flagged, weeks)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		presses, success int
		want             door.Verdict
	}{
		{9, 0, door.TooFew}, {10, 10, door.Good}, {100, 99, door.Good}, {100, 97, door.Watch}, {100, 94, door.Failing}, {20, 19, door.Good}, {10, 0, door.Failing},
	} {
		level := door.Level{Days: []door.Day{{Presses: tc.presses, Success: tc.success, P50: 100}}}
		if got := level.Verdict(); got != tc.want {
			t.Errorf("%d of %d: %s, want %s", tc.success, tc.presses, got, tc.want)
		}
	}
}

// TestConstantTrendIsZero: a latency that never changes has no trend, not one of -0 ms, whatever the dates.
func TestConstantTrendIsZero(t *testing.T) {
	for first := range 500 {
		var level door.Level
		for day := range 15 {
			level.Days = append(level.Days, door.Day{Date: time.Unix(int64(20_000+first+day)*86400, 0), Presses: 5, Success: 5, P50: 103})
		}
		if perDay, _ := level.Trend(); perDay != 0 || math.Signbit(perDay) {
			t.Fatalf("from day %d: %g ms a day, want 0", first, perDay)
		}
	}
}
