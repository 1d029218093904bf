package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/light"
)

const (
	// probes is the number of agents that this process runs itself, to observe when each is connected.
	probes = 100
	// filesOfGenerator are the open files of a generator beside those of its agents.
	filesOfGenerator = 50

	terminate, kill = syscall.SIGTERM, syscall.SIGKILL
)

// openFiles returns how many files a process of this machine may open.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Max, 1<<21)) //nolint:gosec // bounded
}

// swarm is a fleet of light agents in several processes, each with as many as its open files allow. The first agents run
// in this process.
type swarm struct {
	config  light.Config
	probe0  *light.Fleet
	names   []string
	end     context.CancelFunc
	ended   chan error
	workers []*worker
}

// worker is a process of the simulator with light agents.
type worker struct {
	process *exec.Cmd
	agents  int
	done    chan struct{}

	mu    sync.Mutex
	stats light.Stats
	err   error
}

// startSwarm starts agents that connect at once, or in groups: each group of so many connects when those before it are online.
// group 0 means all at once.
func startSwarm(ctx context.Context, simulator string, brokers []string, agents, group int) (*swarm, error) {
	seed := sha256.Sum256([]byte("yeolda demo grant signing key"))
	config := light.Config{Version: "bench",
		GrantKeys: []ed25519.PublicKey{ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)}}
	for _, broker := range brokers {
		address, err := netip.ParseAddrPort(broker)
		if err != nil {
			return nil, err
		}
		config.Brokers = append(config.Brokers, address)
	}
	s := &swarm{config: config, ended: make(chan error, 1)}
	for n := range probes {
		name := fleetconfig.FleetName(n + 1)
		s.names = append(s.names, name)
		config.Agents = append(config.Agents, light.Identity{Branch: name, Password: fleetconfig.DemoPassword(name)})
	}
	var err error
	if s.probe0, err = light.New(config); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	s.end = cancel
	go func() { s.ended <- s.probe0.Run(running) }()
	each := openFiles() - filesOfGenerator
	if group > 0 {
		each = min(each, group)
	}
	began := time.Now()
	for first := probes; first < agents; first += each {
		if group > 0 {
			if _, err := s.await(ctx, began, int64(first), fleetTimeout); err != nil {
				s.stop()
				return nil, err
			}
		}
		w, err := startWorker(simulator, strings.Join(brokers, ","), first, min(each, agents-first))
		if err != nil {
			s.stop()
			return nil, err
		}
		s.workers = append(s.workers, w)
	}
	return s, nil
}

func startWorker(simulator, brokers string, first, agents int) (*worker, error) {
	w := &worker{agents: agents, done: make(chan struct{}), process: exec.Command(simulator, "fleet", "--light", //nolint:noctx // stop ends it
		"--first", strconv.Itoa(first+1), "--agents", strconv.Itoa(agents), "--mqtt-addr", brokers)}
	w.process.Stderr = os.Stderr
	w.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.process.Start(); err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	go func() {
		defer close(w.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var stats light.Stats
			err := json.Unmarshal(lines.Bytes(), &stats)
			w.mu.Lock()
			if err == nil {
				w.stats = stats
			}
			w.mu.Unlock()
		}
		err := w.process.Wait()
		w.mu.Lock()
		w.err = fmt.Errorf("generator ended: %w", errors.Join(err, lines.Err()))
		w.mu.Unlock()
	}()
	return w, nil
}

// stop ends all agents.
func (s *swarm) stop() {
	s.end()
	<-s.ended
	for _, w := range s.workers {
		_ = w.process.Process.Kill() // it may have ended
		<-w.done
	}
}

// stats returns the sum of the counters. Changed is the latest.
func (s *swarm) stats() light.Stats {
	sum := s.probe0.Stats()
	for _, w := range s.workers {
		w.mu.Lock()
		of := w.stats
		w.mu.Unlock()
		sum.Online, sum.Accepted, sum.Failed, sum.Silent, sum.Rejected = sum.Online+of.Online, sum.Accepted+of.Accepted, sum.Failed+of.Failed, sum.Silent+of.Silent, sum.Rejected+of.Rejected
		sum.Opened, sum.Changed = sum.Opened+of.Opened, max(sum.Changed, of.Changed)
		if of.Problem != "" {
			sum.Problem = of.Problem
		}
	}
	return sum
}

// await waits until all agents are online and there were so many accepted connections. It returns the time of the last one since
// began. The error names how many are online.
func (s *swarm) await(ctx context.Context, began time.Time, accepted int64, within time.Duration) (time.Duration, error) {
	agents := int64(probes)
	for _, w := range s.workers {
		agents += int64(w.agents)
	}
	for report := time.Now(); ; {
		sum := s.stats()
		if sum.Online == agents && sum.Accepted >= accepted {
			return time.UnixMilli(sum.Changed).Sub(began), nil
		}
		for _, w := range s.workers {
			w.mu.Lock()
			err := w.err
			w.mu.Unlock()
			if err != nil {
				return 0, err
			}
		}
		if time.Since(report) > 10*time.Second {
			report = time.Now()
			fmt.Printf("  %s: %+v\n", time.Since(began).Round(time.Second), sum)
		}
		if time.Since(began) > within {
			return 0, fmt.Errorf("%d of %d agents are online after %s: %s", sum.Online, agents, within, sum.Problem)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// probe returns the connection of a watched agent, 0 if it has none, and its branch.
func (s *swarm) probe(n int) (connection uint32, branch string) {
	n %= probes
	return s.probe0.Connection(n), s.names[n]
}

// memory returns the resident memory of the other processes for each of their agents, in KiB.
func (s *swarm) memory() (float64, error) {
	sum, agents := 0.0, 0
	for _, w := range s.workers {
		bytes, err := residentOf(w.process.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum, agents = sum+bytes, agents+w.agents
	}
	return sum / 1024 / float64(agents), nil
}

// computed returns the processor time of the other processes.
func (s *swarm) computed() (sum time.Duration, err error) {
	for _, w := range s.workers {
		took, err := computedBy(w.process.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum, nil
}
