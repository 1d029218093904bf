package seeds_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/testkit/seeds"
)

// odd violates its rule in every seed that is divisible by seven.
var odd = seeds.Simulation{Rare: 2, Covered: []string{"even"}, Run: func(seed uint64) seeds.Result {
	began := time.Now()
	time.Sleep(time.Hour) // in a bubble: takes no time
	took := time.Since(began)
	r := seeds.Result{Trace: func() string { return fmt.Sprint(seed, took) }, Counts: map[string]int{}}
	if seed%2 == 0 {
		r.Counts["even"]++
	}
	if seed%7 == 0 {
		r.Violations = append(r.Violations, fmt.Sprint(seed, " is divisible by seven"))
	}
	return r
}}

func TestFindReturnsFirstViolation(t *testing.T) {
	t.Parallel()
	if seed, violations := odd.Find(t, 6); seed != 0 || len(violations) != 0 {
		t.Errorf("got seed %d with %v, want none", seed, violations)
	}
	if seed, violations := odd.Find(t, 100); seed != 7 || len(violations) != 1 {
		t.Errorf("got seed %d with %v, want seed 7 with one violation", seed, violations)
	}
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	odd.CheckRepeats(t, 6)
	odd.CheckOne(t, 2, func(counts map[string]int) bool { return counts["even"] == 1 })
}
