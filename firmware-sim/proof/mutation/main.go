// Mutation measures the tests of the core: it changes the code in one small place, runs the tests of that package, and
// counts the mutants that no test kills. Each survivor is either explained in docs/proof/mutation.md or a missing test.
//
// The mutants are compiled with go test -overlay, so the checkout stays unchanged and the modules of the workspace are
// used. (gremlins copies a module away from its neighbours and downloads the whole module graph.)
//
//	go run ./firmware-sim/proof/mutation            # all targets; writes docs/proof/parts/mutation.json
//	go run ./firmware-sim/proof/mutation booking    # those whose directory ends so; writes nothing
//	go run ./firmware-sim/proof/mutation defences A5 # the defence of a row of SECURITY.md, or of all
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
)

// target is a package to mutate.
type target struct {
	dir  string
	args []string // for its own tests
	also []string // other tests to run if its own pass: arguments of go test
}

// noFiles stops rapid from writing a file into the checkout for each killed mutant.
const noFiles = "-rapid.nofailfile"

// targets are the core: rules of booking, decisions about money, the door and its protocol.
var targets = []target{
	{dir: "cloud/internal/booking", args: []string{noFiles}},
	{dir: "cloud/internal/reserve/rule", also: []string{"./cloud/internal/reserve/moneysim", "-run", "Seeds|Calm", "-seeds", "300", noFiles}},
	{dir: "agent/internal/door", args: []string{noFiles}, also: []string{"./agent/internal/doorsim", "-seeds", "1000"}},
	{dir: "protocol", args: []string{noFiles}},
}

// bar is the share of mutants that must be killed, in percent.
const bar = 85

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only []string) error {
	if len(only) > 0 && only[0] == "defences" {
		return withoutDefences(ctx, only[1:])
	}
	began := time.Now()
	var results []result
	for _, t := range targets {
		if len(only) > 0 && !slices.ContainsFunc(only, func(end string) bool { return strings.HasSuffix(t.dir, end) }) {
			continue
		}
		of, err := try(ctx, t)
		if err != nil {
			return err
		}
		results = append(results, of...)
	}
	p := summary(results, began)
	for _, f := range p.Figures {
		fmt.Printf("%-40s %s %s\n", f.Name, f.Text(), f.Unit)
	}
	if len(only) > 0 {
		return nil
	}
	return part.Write(".", p)
}

// result is the outcome of a mutant.
type result struct {
	mutant
	dir  string
	fate fate
}

type fate string

const (
	killed   fate = "killed"
	timedOut fate = "timed out" // counts as killed
	survived fate = "survived"
	invalid  fate = "invalid" // does not compile and does not count
)

// try runs the tests of a target without changes, and then against each mutant.
func try(ctx context.Context, t target) ([]result, error) {
	start := time.Now()
	for _, tests := range t.tests() {
		if out, err := goTest(ctx, "", 5*time.Minute, tests); err != nil {
			return nil, fmt.Errorf("the tests of %s fail as they are: %w\n%s", t.dir, err, out)
		}
	}
	limit := 10*time.Second + 3*time.Since(start)
	mutants, err := mutantsOf(t.dir)
	if err != nil {
		return nil, err
	}
	results := make([]result, len(mutants))
	var (
		wg   sync.WaitGroup
		next = make(chan int)
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				results[i] = result{mutants[i], t.dir, t.judge(ctx, mutants[i], limit)}
				if results[i].fate == survived {
					fmt.Printf("%s survives: %s\n", mutants[i].where, mutants[i].what)
				}
			}
		})
	}
	for i := range mutants {
		if i%25 == 0 {
			fmt.Printf("%s: %d of %d changes, %v\n", t.dir, i, len(mutants), time.Since(start).Round(time.Second))
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return results, ctx.Err()
}

func summary(results []result, began time.Time) part.Part {
	p := part.Part{Name: "mutation", Title: "Mutation testing of the core", Machine: part.Machine(), Began: began.UTC().Truncate(time.Second),
		Took: time.Since(began).Seconds(), Repeat: "make mutation",
		Notes: []string{"Survivors are explained in docs/proof/mutation.md."}}
	var all, dead int
	for _, t := range targets {
		var of, noticed int
		for _, r := range results {
			if r.dir != t.dir || r.fate == invalid {
				continue
			}
			of++
			if r.fate != survived {
				noticed++
			} else {
				p.Notes = append(p.Notes, fmt.Sprintf("survives: %s: %s", r.where, r.what))
			}
		}
		if of == 0 {
			continue
		}
		all, dead = all+of, dead+noticed
		share := 100 * float64(noticed) / float64(of)
		p.Figures = append(p.Figures,
			part.Figure{Name: t.dir, Value: share, Unit: fmt.Sprintf("%% of %d changes noticed", of), Bar: fmt.Sprintf("at least %d", bar), Met: share >= bar})
	}
	if all > 0 {
		share := 100 * float64(dead) / float64(all)
		p.Figures = append(p.Figures,
			part.Figure{Name: "all", Value: share, Unit: fmt.Sprintf("%% of %d changes noticed", all), Bar: fmt.Sprintf("at least %d", bar), Met: share >= bar})
	}
	return p
}
