// Package soak runs random customers, administrators, agents and intruders in a [world.World] with random faults, and
// records what each of them saw. The seed decides what actors intend and when faults occur; threads and sockets do not
// depend on it, so the same seed repeats the intentions but not the exact history.
package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// Options configures a soak.
type Options struct {
	Seed      uint64
	For       time.Duration // of the disturbed part
	Customers int           // concurrent
	Admins    int
	Say       func(format string, args ...any) // reports progress to the operator
}

// Soak is one run.
type Soak struct {
	world     *world.World
	options   Options
	transport *http.Transport
	began     time.Time
	owners    atomic.Int64
	eyes      *observer
	requests  chan accepted // offered to the thief

	mu        sync.Mutex
	record    record.Record
	latencies []Latency
}

// Latency is the duration of one request as its client saw it.
type Latency struct {
	What   string
	At     time.Time
	Took   time.Duration
	Status int
}

// Run disturbs a world for the given time, lets it settle, probes it, and returns the record.
func Run(ctx context.Context, w *world.World, options Options) (record.Record, []Latency, error) {
	s := &Soak{requests: make(chan accepted, 64), world: w, options: options, began: time.Now(), transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 20 * time.Second}}
	defer s.transport.CloseIdleConnections()
	s.record.Seed, s.record.Began = options.Seed, s.began
	var err error
	if s.eyes, err = observe(ctx, w); err != nil {
		return s.record, nil, err
	}
	defer s.eyes.close()

	if err := s.addEntity(ctx); err != nil {
		return s.record, nil, err
	}
	if err := s.disturbed(ctx); err != nil {
		return s.record, s.latencies, err
	}
	s.say("quiet: all faults are cleared")
	if err := s.settle(ctx); err != nil {
		return s.record, s.latencies, err
	}
	s.say("settled after %s; probes", time.Since(s.record.Quiet).Round(time.Second))
	if err := s.probe(ctx); err != nil {
		return s.record, s.latencies, err
	}
	if err := s.settle(ctx); err != nil {
		return s.record, s.latencies, err
	}
	s.record.Ended = time.Now()
	return s.record, s.latencies, s.collect(ctx)
}

// disturbed is the part with faults.
func (s *Soak) disturbed(ctx context.Context) error {
	limited, stop := context.WithTimeout(ctx, s.options.For)
	defer stop()
	var acting sync.WaitGroup
	for i := range s.options.Customers {
		acting.Go(func() { s.customers(limited, ctx, s.dice("customer", i)) })
	}
	for i := range s.options.Admins {
		acting.Go(func() { s.administrator(limited, ctx, s.dice("administrator", i)) })
	}
	acting.Go(func() { s.clumsy(limited, ctx, s.dice("clumsy", 0)) })
	acting.Go(func() { s.partner(limited, s.dice("partner", 0)) })
	acting.Go(func() { s.intrude(limited, s.dice("intruder", 0)) })
	if standby := s.world.Standby; len(standby) == 2 {
		acting.Go(func() { s.runBenchPi(limited, standby[0]) })
		acting.Go(func() { s.runThief(limited, standby[1], s.dice("thief", 0)) })
	}
	acting.Go(func() { s.eyes.watch(limited, s) })

	var breaking sync.WaitGroup
	failed := make(chan error, 2*len(s.world.Branches)+2)
	breaking.Go(func() { failed <- s.breakPrograms(limited, ctx, s.dice("programs", 0)) })
	breaking.Go(func() { s.breakProvider(limited, s.dice("provider", 0)) })
	for i, b := range s.world.Branches {
		if i%4 != 3 { // every fourth branch has no faults
			breaking.Go(func() { s.breakBranch(limited, b, s.dice("branch", i)) })
		}
	}
	breaking.Go(func() { s.progress(limited) })
	<-limited.Done()
	breaking.Wait()
	if err := s.clearFaults(ctx); err != nil {
		return err
	}
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	acting.Wait()
	return ctx.Err()
}

// clearFaults ends every fault.
func (s *Soak) clearFaults(ctx context.Context) error {
	for _, b := range s.world.Branches {
		s.clearBranch(b)
	}
	if _, err := world.Ask(http.MethodDelete, s.world.Sandbox+"/sandbox/faults", nil, nil); err != nil {
		return err
	}
	if err := s.world.Restore(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.record.Quiet = time.Now()
	s.mu.Unlock()
	return s.world.AwaitAgents(ctx, time.Minute)
}

func (s *Soak) progress(ctx context.Context) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.mu.Lock()
			ops, presses, faults := len(s.record.Ops), len(s.record.Presses), len(s.record.Faults)
			s.mu.Unlock()
			s.say("%s: %d requests about reservations, %d presses, %d faults", time.Since(s.began).Round(time.Second), ops, presses, faults)
		}
	}
}

func (s *Soak) say(format string, args ...any) {
	if s.options.Say != nil {
		s.options.Say(format, args...)
	}
}

// dice returns the random source of one actor.
func (s *Soak) dice(name string, n int) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, c := range []byte(fmt.Sprint(name, n)) {
		h = (h ^ uint64(c)) * 1099511628211 // FNV-1a
	}
	return rand.New(rand.NewPCG(s.options.Seed, h))
}

func (s *Soak) note(change func(*record.Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.record)
}

func (s *Soak) op(o record.Op, r reply) record.Op {
	o.Call, o.Return, o.Status, o.Type = r.call, r.ret, r.status, r.kind
	s.note(func(rec *record.Record) { rec.Ops = append(rec.Ops, o) })
	return o
}

// latency records how long a request took, by its kind.
func (s *Soak) latency(method, path string, r reply) {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "proof-") || p != "" && p[0] >= '0' && p[0] <= '9' || len(p) == len("00000000-0000-4000-8000-000000000000") {
			parts[i] = "…"
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latencies = append(s.latencies, Latency{method + " " + strings.Join(parts, "/"), r.call, r.ret.Sub(r.call), r.status})
}

// pause waits, shorter when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// between returns a random duration.
func between(dice *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(dice.Int64N(int64(most-least)))
}

// oneIn returns true once in n times.
func oneIn(dice *rand.Rand, n int) bool { return dice.IntN(n) == 0 }
