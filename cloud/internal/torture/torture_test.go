package torture

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"go.uber.org/goleak"
)

var (
	runs    = flag.Int("torture", 0, "go through every crash point this many times, at the true pace, and print the table")
	pace    = flag.Int("haste", 1, "with -torture: divide the delays of the service by this")
	onlyOne = flag.String("point", "", "go through the crash points whose names begin so, such as C4")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("8") // the tests mostly wait, so more of them than processors can run in parallel
	}
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path)) // a temporary directory
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// hurry is the factor by which `go test` shortens the real times.
const hurry = 15

// grace is the additional time that a slow machine may take before a point fails; the reported limits do not include it.
const grace = 2 * time.Minute

// result is the summary of the runs of a point.
type result struct {
	passed  int
	slowest time.Duration
}

func TestCrashPoints(t *testing.T) {
	if testing.Short() {
		t.Skip("starts dozens of processes")
	}
	times, haste := 1, hurry
	if *runs > 0 {
		times, haste = *runs, *pace
	}
	var (
		mu      sync.Mutex
		results = make([]result, len(points))
	)
	t.Run("points", func(t *testing.T) {
		for run := range times {
			for i, p := range points {
				if *onlyOne != "" && !strings.HasPrefix(p.name, *onlyOne) || *onlyOne == "" && *runs == 0 && p.slow {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d", p.name, run), func(t *testing.T) {
					t.Parallel()
					took := torment(t, p, run, haste)
					mu.Lock()
					defer mu.Unlock()
					if !t.Failed() {
						results[i].passed++
					}
					results[i].slowest = max(results[i].slowest, took)
				})
			}
		}
	})
	if *runs > 0 {
		print(results, times)
	}
}

// torment runs a point once and audits the books.
func torment(t *testing.T, p point, run, haste int) time.Duration {
	r, err := newRig(t.Context(), t, run, haste, max(1, p.replicas), p.env...) // outside the limit: it compiles the program and migrates
	if err != nil {
		t.Fatal(err)
	}
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithTimeout(t.Context(), p.within+grace)
	defer cancel()
	r.mark()
	err = p.do(r)
	if err == nil {
		err = r.audit()
	}
	took := time.Since(r.whole)
	if err == nil && haste == 1 && took > p.within {
		err = fmt.Errorf("it took %v", took)
	}
	if err != nil {
		t.Errorf("%s, %s: %v\n%s", p.name, p.what, err, r.tail())
	}
	return took
}

func print(results []result, times int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "point\twhat happens\tright\twithin\tslowest")
	passed, all := 0, 0
	for i, p := range points {
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%v\t%v\n", p.name, p.what, results[i].passed, times, p.within, results[i].slowest.Round(100*time.Millisecond))
		passed, all = passed+results[i].passed, all+times
	}
	_ = w.Flush()
	fmt.Printf("%d of %d\n", passed, all)
}
