package postgres

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestOverload lets a pool give away connections interval by interval and names those in which it is overloaded.
func TestOverload(t *testing.T) {
	short, long := 10*time.Millisecond, 1200*time.Millisecond
	for _, c := range []struct {
		name  string
		waits []time.Duration // of the 100 connections of an interval; 0: none was given
		want  string          // o for overloaded
	}{
		{"idle", []time.Duration{0, 0, 0}, "---"},
		{"busy", []time.Duration{short, short, short}, "---"},
		{"overloaded until the waits are short", []time.Duration{short, long, long, long, short, long, long}, "--oo--o"},
		{"a stall of the database, and its queue", []time.Duration{short, 0, 0, 10 * time.Second, short, short}, "------"},
		{"no connection is given at all", []time.Duration{long, 0, 0, long}, "----"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var load overload
				var total waits
				read := func() waits { return total }
				load.judge(read)
				got := ""
				for _, wait := range c.waits {
					if wait > 0 {
						total.taken += 100
						total.waited += 100 * wait
					}
					time.Sleep(loadInterval)
					overloaded, changed := load.judge(read)
					mark := "-"
					if overloaded {
						mark = "o"
					}
					if changed != (got != "" && got[len(got)-1:] != mark) {
						t.Errorf("after %q, %q: changed is %v", got, mark, changed)
					}
					got += mark
					if again, changed := load.judge(read); again != overloaded || changed {
						t.Errorf("within the interval: %v, changed %v, want %v", again, changed, overloaded)
					}
				}
				if got != c.want {
					t.Errorf("overloaded %s, want %s", got, c.want)
				}
			})
		})
	}
}
