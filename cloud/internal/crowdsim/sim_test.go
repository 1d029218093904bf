package crowdsim

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

var (
	sequences = flag.Int("sequences", 2, "random sequences of the crowd")
	firstSeed = flag.Uint64("seed", 1, "of the first sequence")
	steps     = flag.Int("steps", 40, "verbs of an act")
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// scs.New creates a store in memory before it is replaced by ours.
		goleak.IgnoreTopFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup"))
}

// TestCrowd plays sequences. After each, no slot is sold twice, the provider holds what the reservations say, every stay has its key and its
// pass, no message has reached another guest, and no discrepancy is left that an administrator cannot end.
func TestCrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many services")
	}
	total := map[string]int{}
	for i := range uint64(*sequences) {
		seed := *firstSeed + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := open(t, seed)
			w.play(t)
			for name, n := range w.counts {
				total[name] += n
			}
		})
	}
	names := slices.Sorted(maps.Keys(total))
	for i, name := range names {
		names[i] = fmt.Sprintf("%s: %d", name, total[name])
	}
	t.Log(strings.Join(names, ", "))
}

// restored reports whether the second act of the sequence is lost.
func (w *world) restored() bool { return w.seed%2 == 1 }

// play runs the three acts of a sequence and its end.
func (w *world) play(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d:\n%s", w.seed, strings.Join(w.trace, "\n"))
		}
	})
	t.Run("before the backup", func(t *testing.T) { w.act(t, 1) })
	w.backUp(t)
	t.Run("after the backup", func(t *testing.T) { w.act(t, 2) })
	if w.restored() {
		w.restore(t)
	}
	t.Run("the end", func(t *testing.T) {
		w.act(t, 3)
		w.rest(t)
		w.check(t)
	})
}
