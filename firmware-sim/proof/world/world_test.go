package world_test

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPrice(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[int]int{10: 3000, 20: 6000, 30: 8000, 50: 14000, 60: 15000, 100: 26000, 300: 75000} {
		if got := world.Price(time.Duration(minutes) * time.Minute); got != want {
			t.Errorf("%d minutes cost %d, want %d", minutes, got, want)
		}
	}
}

// TestClocksDiffer draws the clocks of many seeds: at least one machine is wrong by more than a hold lives, and any two that are wrong
// are so in opposite directions.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	right, ahead := 0, 0
	for seed := range uint64(1000) {
		clocks := world.Clocks(seed)
		if !slices.Equal(clocks, world.Clocks(seed)) {
			t.Fatalf("seed %d draws different clocks", seed)
		}
		first, second := clocks[0], clocks[1]
		if second.Abs() < 80*time.Second || second.Abs() > 100*time.Second {
			t.Errorf("seed %d: the clock of the second machine is %s ahead", seed, second)
		}
		switch {
		case first == 0:
			right++
		case first > 0 == (second > 0) || first.Abs() < 80*time.Second:
			t.Errorf("seed %d: the clocks are %s and %s ahead", seed, first, second)
		}
		if second > 0 {
			ahead++
		}
	}
	if right == 0 || right > 500 || ahead == 0 || ahead == 1000 {
		t.Errorf("of 1000 seeds, the first clock is right in %d, the second ahead in %d", right, ahead)
	}
}
