// Package seeds drives simulations that are a function of a seed: it runs thousands of seeds on all processors, each in a
// testing/synctest bubble of its own, repeats one on request (-seed), and checks that a seed repeats exactly.
package seeds

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

var (
	one  = flag.Uint64("seed", 0, "run this seed only and print its trace")
	many = flag.Uint64("seeds", 0, "how many seeds to run, from 1; 0: the usual number")
)

// Result is what one run of a simulation found.
type Result struct {
	Violations []string
	Trace      func() string
	Counts     map[string]int // how often each thing happened
}

// Simulation is a simulation and what is expected of its seeds.
type Simulation struct {
	Run func(seed uint64) Result // is called in a synctest bubble
	// Covered are the counts that must reach one in Rare seeds on average: a rule that no run exercises proves nothing.
	Covered []string
	Rare    uint64
	// Cost is the cost of a seed as a multiple of the others' (0: 1): a test runs Normal / Cost seeds.
	Cost uint64
}

// Regression is a seed that once violated a rule.
type Regression struct {
	Seed uint64
	Why  string
}

// Bubble runs one seed in a bubble of its own.
func (s Simulation) Bubble(t *testing.T, seed uint64) (r Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = s.Run(seed) })
	return r
}

// Failure describes a run that violated a rule, with its trace.
func (r Result) Failure(seed uint64) string {
	return fmt.Sprintf("seed %d:\n%s\n%s", seed, strings.Join(r.Violations, "\n"), r.Trace())
}

// Check runs all seeds, or the one of -seed, and fails at the first violation of each processor.
func (s Simulation) Check(t *testing.T) {
	if *one != 0 {
		r := s.Bubble(t, *one)
		t.Log(r.Failure(*one))
		if len(r.Violations) > 0 {
			t.Fail()
		}
		return
	}
	n := *many
	if n == 0 {
		n = Normal / max(s.Cost, 1)
	}
	total := s.checkAll(t, n)
	if t.Failed() {
		return
	}
	t.Logf("%d seeds: %v", n, total)
	for _, what := range s.Covered {
		if total[what] < int(n/s.Rare) {
			t.Errorf("%s: %d in %d seeds, want %d", what, total[what], n, n/s.Rare)
		}
	}
}

func (s Simulation) checkAll(t *testing.T, n uint64) map[string]int {
	var mu sync.Mutex
	total := map[string]int{}
	t.Run("all", func(t *testing.T) {
		shards := uint64(runtime.GOMAXPROCS(0))
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for seed := 1 + shard; seed <= n && !t.Failed(); seed += shards {
					r := s.Bubble(t, seed)
					if len(r.Violations) > 0 {
						t.Error(r.Failure(seed))
					}
					mu.Lock()
					for what, count := range r.Counts {
						total[what] += count
					}
					mu.Unlock()
				}
			})
		}
	})
	return total
}

// CheckOne runs one seed and fails if it violates a rule or accept rejects its counts.
func (s Simulation) CheckOne(t *testing.T, seed uint64, accept func(counts map[string]int) bool) {
	t.Helper()
	if r := s.Bubble(t, seed); len(r.Violations) > 0 || !accept(r.Counts) {
		t.Errorf("%s\ncounts %v", r.Failure(seed), r.Counts)
	}
}

// CheckRegressions runs the seeds that once violated a rule.
func (s Simulation) CheckRegressions(t *testing.T, list []Regression) {
	for _, g := range list {
		if r := s.Bubble(t, g.Seed); len(r.Violations) > 0 {
			t.Errorf("%s, again: %s", g.Why, r.Failure(g.Seed))
		}
	}
}

// CheckRepeats runs the seeds 1 to n twice and fails if the traces of a seed differ.
func (s Simulation) CheckRepeats(t *testing.T, n uint64) {
	for seed := uint64(1); seed <= n; seed++ {
		if first, second := s.Bubble(t, seed).Trace(), s.Bubble(t, seed).Trace(); first != second {
			t.Errorf("two traces of seed %d differ:\n%s\nand:\n%s", seed, first, second)
		}
	}
}

// Find returns the first of the seeds 1 to n that violates a rule, and the violations; 0 if none does. Tests that plant a
// fault in a simulation use it.
func (s Simulation) Find(t *testing.T, n uint64) (seed uint64, violations []string) {
	t.Helper()
	for seed := uint64(1); seed <= n; seed++ {
		if r := s.Bubble(t, seed); len(r.Violations) > 0 {
			return seed, r.Violations
		}
	}
	return 0, nil
}
