// Package simulation runs the deterministic simulations and the formal model, and reads the results from their output.
// They live beside the code that they test.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
)

// Seeds is the number of schedules that each simulation must run.
const Seeds = 5000

// simulations are the tests that run seeds.
var simulations = []struct{ name, pkg string }{
	{"door exchange", "./agent/internal/doorsim"},
	{"payment protocol", "./cloud/internal/reserve/moneysim"},
}

// ran matches the line in which a simulation reports its seeds.
var ran = regexp.MustCompile(`(\d+) seeds: (.+)`)

// Run runs every simulation of the checkout at root.
func Run(ctx context.Context, root string) (part.Part, error) {
	began := time.Now()
	p := part.Part{Name: "simulation", Title: "Deterministic simulation and formal model", Machine: part.Machine(), Began: began.UTC().Truncate(time.Second),
		Repeat: "go test -run 'TestSeeds|TestRegressions' -v -count 1 ./agent/internal/doorsim ./cloud/internal/reserve/moneysim; make model",
		Notes:  []string{"Time, network, crashes and scheduling depend on the seed alone (testing/synctest); every seed that ever failed also runs as a test of its own."}}
	for _, s := range simulations {
		command := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout=30m", "-run", "^(TestSeeds|TestRegressions)$", s.pkg, "-seeds", strconv.Itoa(Seeds))
		command.Dir = root
		out, err := command.CombinedOutput()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			return p, fmt.Errorf("simulation: %s: %w", s.name, err)
		}
		seeds, counts := read(string(out))
		if seeds == 0 && err == nil {
			return p, fmt.Errorf("simulation: %s does not report how many seeds it ran", s.name)
		}
		p.Figures = append(p.Figures,
			part.Figure{Name: s.name + ": seeds without a violation", Value: float64(seeds), Bar: fmt.Sprint(Seeds), Met: err == nil && seeds >= Seeds})
		if counts != "" {
			p.Notes = append(p.Notes, s.name+", over all seeds: "+counts)
		}
	}
	model(ctx, root, &p)
	p.Took = time.Since(began).Seconds()
	return p, ctx.Err()
}

// read returns the number of seeds and the counts of their events; 0 if the run failed.
func read(out string) (seeds int, counts string) {
	found := ran.FindStringSubmatch(out)
	if found == nil || strings.Contains(out, "--- FAIL") {
		return 0, ""
	}
	seeds, _ = strconv.Atoi(found[1]) // digits
	return seeds, strings.TrimSuffix(strings.TrimPrefix(found[2], "map["), "]")
}

var stored = regexp.MustCompile(`(\d+) states, stored`)

// model checks the formal model over all interleavings, if spin is installed.
func model(ctx context.Context, root string, p *part.Part) {
	if _, err := exec.LookPath("spin"); err != nil {
		p.Notes = append(p.Notes, "The formal model was not checked: spin is not installed.")
		return
	}
	command := exec.CommandContext(ctx, "protocol/model/check.sh")
	command.Dir = root
	out, err := command.CombinedOutput()
	errs := 0.0
	if err != nil {
		errs = 1
	}
	found := strings.Count(string(out), ": found, ")
	p.Figures = append(p.Figures,
		part.Figure{Name: "model of the door exchange with several agents: errors", Value: errs, Bar: "0", Met: err == nil},
		part.Figure{Name: "model: planted faults, all of them found", Value: float64(found), Met: err == nil})
	if match := stored.FindSubmatch(out); match != nil {
		states, _ := strconv.ParseFloat(string(match[1]), 64) // digits
		p.Figures = append(p.Figures, part.Figure{Name: "model: states, all of them visited", Value: states})
	}
}
