package world_test

import (
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
