package simulation

import "testing"

func TestRead(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]struct {
		seeds  int
		counts string
	}{
		"":            {},
		"ok  	x	1s\n": {},
		"    sim_test.go:225: 5000 seeds: map[FAILED:12 SUCCESS:7]\n--- PASS: TestSeeds (1s)\n":                                   {5000, "FAILED:12 SUCCESS:7"},
		"    sim_test.go:225: 5000 seeds: map[SUCCESS:7]\n    sim_test.go:229: FAILED: only 0 in 5000 seeds\n--- FAIL: TestSeeds": {},
	} {
		if seeds, counts := read(out); seeds != want.seeds || counts != want.counts {
			t.Errorf("%q: %d %q", out, seeds, counts)
		}
	}
}
