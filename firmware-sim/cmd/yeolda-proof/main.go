// Command yeolda-proof runs the simulations, and the race and the random soak against the whole system, and writes the
// report (docs/proof/report.md, report.html) with all parts in docs/proof/parts. `make proof` calls it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof"
	"github.com/yeolda/yeolda/firmware-sim/proof/contend"
	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/report"
	"github.com/yeolda/yeolda/firmware-sim/proof/simulation"
	"github.com/yeolda/yeolda/firmware-sim/proof/soak"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// options are the command line.
type options struct {
	root       string
	soak       soak.Options
	branches   int
	keep       string
	pool       world.Pool
	reportOnly bool
	simulate   bool
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the checkout")
	flag.DurationVar(&o.soak.For, "for", 15*time.Minute, "length of the disturbed part of the soak")
	flag.Uint64Var(&o.soak.Seed, "seed", 0, "of the soak; 0: a random one, which is printed")
	flag.IntVar(&o.soak.Customers, "customers", 32, "at once")
	flag.IntVar(&o.soak.Admins, "administrators", 5, "at once")
	flag.IntVar(&o.branches, "branches", 20, "simulated, with an agent each")
	flag.StringVar((*string)(&o.pool), "pool", "", "run the soak with another pool of brokers, and nothing else: mosquittos (two) or embedded (of three replicas)")
	flag.StringVar(&o.keep, "keep", "", "keep the record and the programs' log in this directory")
	flag.BoolVar(&o.reportOnly, "report-only", false, "only write the report of the stored parts")
	flag.BoolVar(&o.simulate, "simulate", true, "run the deterministic simulations and the formal model first")
	flag.Parse()
	if !o.pool.Valid() {
		fmt.Fprintf(os.Stderr, "yeolda-proof: there is no pool %q\n", o.pool)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	misses, err := run(ctx, o)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "yeolda-proof:", err)
		os.Exit(1)
	case misses > 0:
		fmt.Fprintf(os.Stderr, "yeolda-proof: %d misses; the report lists them first\n", misses)
		os.Exit(2)
	}
}

func run(ctx context.Context, o options) (misses int, err error) {
	if !o.reportOnly && o.simulate && o.pool == world.Mosquitto {
		simulated, err := simulation.Run(ctx, o.root)
		if err != nil {
			return 0, err
		}
		if err := part.Write(o.root, simulated); err != nil {
			return 0, err
		}
		for _, f := range simulated.Figures {
			fmt.Printf("yeolda-proof: %s: %s\n", f.Name, f.Text())
		}
	}
	if !o.reportOnly {
		if err := measure(ctx, o); err != nil {
			return 0, err
		}
	}
	misses, err = report.Write(o.root, time.Now())
	if err == nil {
		fmt.Printf("yeolda-proof: %s/report.md and report.html are written\n", report.Dir)
	}
	return misses, err
}

// measure runs the race and the soak in one world.
func measure(ctx context.Context, o options) (err error) {
	if o.soak.Seed == 0 {
		o.soak.Seed = rand.Uint64N(1_000_000_000) + 1
	}
	fmt.Printf("yeolda-proof: seed %d, soak of %s, %d branches\n", o.soak.Seed, o.soak.For, o.branches)
	o.soak.Say = func(format string, args ...any) { fmt.Printf("yeolda-proof: "+format+"\n", args...) }
	w, err := world.Start(ctx, world.Options{Root: o.root, Branches: o.branches, Pool: o.pool, Clocks: world.Clocks(o.soak.Seed)})
	if err != nil {
		return err
	}
	defer func() {
		if o.keep != "" {
			err = errors.Join(err, keepLog(w.LogFile, filepath.Join(o.keep, "log")))
		}
		err = errors.Join(err, w.Close())
	}()
	if o.pool == world.Mosquitto {
		race, err := contend.Run(ctx, w, contend.Slots)
		if err != nil {
			return fmt.Errorf("race: %w", err)
		}
		if err := part.Write(o.root, race); err != nil {
			return err
		}
		o.soak.Say("race: %s of %d slots with exactly one winner", race.Figures[0].Text(), contend.Slots)
	}
	soaked, seen, err := proof.Soak(ctx, w, o.soak)
	if o.keep != "" {
		err = errors.Join(err, keepRecord(&seen, filepath.Join(o.keep, "record.json")))
	}
	if err != nil {
		return fmt.Errorf("soak: %w", err)
	}
	for _, c := range soaked.Checks {
		o.soak.Say("%-4s %7d held against, %d violations  %s", c.ID, c.Observations, c.Violations, c.Rule)
		for _, e := range c.Examples {
			o.soak.Say("       %s", e)
		}
	}
	return part.Write(o.root, soaked)
}

// keepLog copies the programs' log before the world is closed.
func keepLog(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// keepRecord writes the record, for the analysis of a violation.
func keepRecord(seen *record.Record, to string) error {
	text, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
