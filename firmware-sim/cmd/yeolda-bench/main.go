// Command yeolda-bench measures the path from a press on the unlock button to its result (POST, broker, agent, claim,
// signed grant, simulated lock, event) and the path from a look-up to the key of a paid reservation. It starts the
// whole system as real processes and prints a table.
//
// Rates depend on the machine, so compare figures of one run. The floor is the same two requests answered with
// constants by the same HTTP stack, in its own process.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

func main() {
	pressed := pressBench{inFlight: []int{1, 16, 64}}
	flag.IntVar(&pressed.agents, "agents", 50, "branches with an agent each")
	flag.DurationVar(&pressed.round, "round", 10*time.Second, "length of one measurement")
	flag.IntVar(&pressed.rounds, "rounds", 3, "measurements of each kind; medians are printed")
	root := flag.String("root", ".", "the checkout")
	file := flag.String("json", "", "also measure exchanges, holds, look-ups and memory, and write all figures into this file, as a part of the proof")
	flag.Func("in-flight", "how many presses at once, several with commas (default 1,16,64)", func(list string) error {
		pressed.inFlight = nil
		for text := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is not a number of presses", text)
			}
			pressed.inFlight = append(pressed.inFlight, n)
		}
		return nil
	})
	var sizes []int
	flag.Func("fleet", "measure a service with this many light agents, several numbers with commas, and nothing else", func(list string) (err error) {
		sizes, err = parseSizes(list)
		return err
	})
	var pooled poolBench
	flag.IntVar(&pooled.agents, "pool", 0, "measure several services whose brokers form a pool with this many light agents, and nothing else")
	flag.IntVar(&pooled.replicas, "replicas", poolReplicas, "services of -pool")
	flag.IntVar(&pooled.mosquittos, "mosquittos", 0, "number of Mosquittos that are the pool of -pool instead of the embedded brokers")
	bought := flag.Bool("purchases", false, "measure what a purchase costs, and nothing else")
	constant := flag.Bool("floor", false, "answer an unlock's requests with constants, and nothing else (the bench does this in a second process)")
	flag.Parse()
	if *constant {
		fmt.Fprintln(os.Stderr, "yeolda-bench:", serveFloor())
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE) // the reader of our output may exit first: leave no processes behind
	measure := func(ctx context.Context, dir string, log io.Writer) error {
		return benchmarkAll(ctx, *root, dir, *file, pressed, log)
	}
	if sizes != nil {
		measure = func(ctx context.Context, dir string, log io.Writer) error {
			return benchmarkFleet(ctx, *root, dir, *file, sizes, log)
		}
	}
	if pooled.agents != 0 {
		if err := pooled.validate(); err != nil {
			fmt.Fprintln(os.Stderr, "yeolda-bench:", err)
			os.Exit(2)
		}
		measure = func(ctx context.Context, dir string, log io.Writer) error {
			return benchmarkPool(ctx, *root, dir, *file, pooled, log)
		}
	}
	if *bought {
		measure = func(ctx context.Context, dir string, log io.Writer) error {
			return benchmarkPurchases(ctx, *root, dir, *file, pressed.round, log)
		}
	}
	err := run(ctx, *root, measure)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "yeolda-bench:", err)
		os.Exit(1)
	}
}

// run builds the programs and calls measure with a directory for them and for data, and their log.
func run(ctx context.Context, root string, measure func(ctx context.Context, dir string, log io.Writer) error) error {
	dir, err := os.MkdirTemp("/var/tmp", "yeolda-bench-") // on disk, so that commits are durable
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := world.Build(ctx, root, dir); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	return measure(ctx, dir, log)
}

// benchmarkFleet measures fleets of light agents.
func benchmarkFleet(ctx context.Context, root, dir, file string, sizes []int, log io.Writer) error {
	var texts []string
	for _, n := range sizes {
		texts = append(texts, strconv.Itoa(n))
	}
	p := part.Part{Name: "fleet", Title: "One service and its agents", Machine: part.Machine(), Began: time.Now().UTC().Truncate(time.Second),
		Repeat: "go run ./firmware-sim/cmd/yeolda-bench -fleet " + strings.Join(texts, ",") + " -json docs/proof/parts/fleet.json"}
	failed := fleet(ctx, root, dir, sizes, log, &p) // a failure keeps the earlier measurements
	if failed != nil {
		p.Notes = append(p.Notes, "Not everything could be measured in this run: "+failed.Error())
	}
	return finish(&p, file, failed)
}

// benchmarkPool measures a pool of brokers.
func benchmarkPool(ctx context.Context, root, dir, file string, b poolBench, log io.Writer) error {
	p := part.Part{Name: strings.TrimSuffix(filepath.Base(b.file()), ".json"), Title: b.title(), Machine: part.Machine(), Began: time.Now().UTC().Truncate(time.Second),
		Repeat: fmt.Sprintf("go run ./firmware-sim/cmd/yeolda-bench %s -json %s", b.flags(), b.file()),
		Notes:  []string{"Load average of the machine when the run began: " + loadAverage() + "."}}
	return finish(&p, file, b.run(ctx, root, dir, log, &p))
}

// benchmarkPurchases measures what a purchase costs.
func benchmarkPurchases(ctx context.Context, root, dir, file string, round time.Duration, log io.Writer) error {
	p := part.Part{Name: "purchase", Title: "The cost of a purchase", Machine: part.Machine(), Began: time.Now().UTC().Truncate(time.Second),
		Repeat: "go run ./firmware-sim/cmd/yeolda-bench -purchases -json docs/proof/parts/purchase.json"}
	return finish(&p, file, purchases(ctx, root, dir, round, log, &p))
}

// benchmarkAll measures presses, purchases and their parts.
func benchmarkAll(ctx context.Context, root, dir, file string, b pressBench, log io.Writer) error {
	p := part.Part{Name: "bench", Title: "Benchmarks beside their floors", Machine: part.Machine(), Began: time.Now().UTC().Truncate(time.Second),
		Repeat: "go run ./firmware-sim/cmd/yeolda-bench -json docs/proof/parts/bench.json"}
	if err := b.run(ctx, root, dir, log, &p); err != nil {
		return err
	}
	if file == "" {
		return nil
	}
	// A failure keeps the earlier measurements.
	failed := memory(ctx, root, dir, log, &p)
	for _, measure := range []func(context.Context, string, *part.Part) error{exchange, alone, distant, holds, lookUps} {
		failed = errors.Join(failed, measure(ctx, root, &p))
	}
	if failed != nil {
		p.Notes = append(p.Notes, "Not everything could be measured in this run.")
	}
	return finish(&p, file, failed)
}

// finish prints the figures of a part and writes it into a file, if there is one.
func finish(p *part.Part, file string, failed error) error {
	p.Took = time.Since(p.Began).Seconds()
	for _, f := range p.Figures {
		fmt.Printf("%s: %s %s\n", f.Name, f.Text(), f.Unit)
	}
	if file == "" {
		return failed
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return errors.Join(failed, os.WriteFile(file, append(text, '\n'), 0o644))
}

// pressBench measures unlocks and purchases of the whole system beside the floor.
type pressBench struct {
	agents   int // one for each branch
	rounds   int
	round    time.Duration
	inFlight []int
}

func (b pressBench) run(ctx context.Context, root, dir string, log io.Writer, p *part.Part) (err error) {
	s, keys, err := start(ctx, root, dir, b.agents, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()

	floor, err := startFloor(ctx)
	if err != nil {
		return err
	}
	defer floor.Close()

	fmt.Println("profiles of the service at", s.MetricsAt+"/debug/pprof/")
	buyer := buyer(s, b.agents)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0) // it buffers until Flush, which returns the error
	_, _ = fmt.Fprintln(table, "in flight\tof\trate/s\tp50 ms\tp99 ms\tmax ms\tnot SUCCESS")
	compare := func(n int, name string, announce func(context.Context, int64) error, press presser) (sample, error) {
		var results []sample
		for range b.rounds {
			result, err := measure(ctx, n, b.round, announce, press)
			if err != nil {
				return sample{}, err
			}
			results = append(results, result)
		}
		m := medians(results)
		_, _ = fmt.Fprintf(table, "%d\t%s\t%.0f\t%.2f\t%.2f\t%.2f\t%d\n", n, name, m.rate, ms(m.p50), ms(m.p99), ms(m.max), m.failed)
		p.Figures = append(p.Figures,
			part.Figure{Name: fmt.Sprintf("%s, %d in flight, p50", name, n), Value: ms(m.p50), Unit: "ms"},
			part.Figure{Name: fmt.Sprintf("%s, %d in flight, p99", name, n), Value: ms(m.p99), Unit: "ms"},
			part.Figure{Name: fmt.Sprintf("%s, %d in flight", name, n), Value: m.rate, Unit: "per s"},
			atMost(fmt.Sprintf("%s, %d in flight, not SUCCESS", name, n), float64(m.failed), 0))
		return m, table.Flush()
	}
	for _, n := range b.inFlight {
		unlock, err := compare(n, "unlock", nil, unlocker(s.API, keys))
		if err != nil {
			return err
		}
		constant, err := compare(n, "floor", nil, floor.press)
		if err != nil {
			return err
		}
		p.Figures = append(p.Figures, bars(n, unlock, constant)...)
		if n > 1 {
			continue
		}
		// The pauses between announced presses let the processors fall asleep, so the floor is measured with the same ones.
		announced, err := compare(n, "announced unlock", announcer(s.API, keys), unlocker(s.API, keys))
		if err != nil {
			return err
		}
		if constant, err = compare(n, "announced floor", floor.announce, floor.press); err != nil {
			return err
		}
		p.Figures = append(p.Figures,
			atMost("announced unlock, 1 in flight, p50, of the announced floor's", float64(announced.p50)/float64(constant.p50), 4))
	}
	// Purchases last: their background work (messages, channels) would compete with the presses.
	for _, n := range b.inFlight {
		if _, err := compare(n, "purchase", nil, buyer); err != nil {
			return err
		}
	}
	bytes, err := resident(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("memory of the service after it: %.0f MB\n", bytes/1e6)
	return nil
}

// bars are the limits for unlocks, relative to the floor of the same run.
func bars(inFlight int, unlock, floor sample) []part.Figure {
	switch inFlight {
	case 1:
		return []part.Figure{
			{Name: "unlock, 1 in flight, p50, of the floor's", Value: float64(unlock.p50) / float64(floor.p50)},
			atMost("unlock, 1 in flight, p99, ms", ms(unlock.p99), 10),
		}
	case 64:
		return []part.Figure{atLeast("unlock, 64 in flight, rate, of the floor's", unlock.rate/floor.rate, 0.15)}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func medians(samples []sample) sample {
	by := func(less func(a, b sample) int) sample {
		slices.SortFunc(samples, less)
		return samples[len(samples)/2]
	}
	m := sample{
		rate: by(func(a, b sample) int { return int(a.rate - b.rate) }).rate,
		p50:  by(func(a, b sample) int { return int(a.p50 - b.p50) }).p50,
		p99:  by(func(a, b sample) int { return int(a.p99 - b.p99) }).p99,
		max:  by(func(a, b sample) int { return int(a.max - b.max) }).max,
	}
	for _, one := range samples {
		m.failed += one.failed
	}
	return m
}
