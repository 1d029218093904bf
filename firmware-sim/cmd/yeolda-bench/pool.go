package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/protocol"
)

const (
	poolReplicas  = 3
	poolGroup     = 10_000 // agents that connect at once
	poolRate      = 60     // presses per second over all agents and all replicas
	poolPresses   = 20 * time.Second
	poolRecovery  = 30 * time.Second // in which the agents of a killed broker are back
	poolNoticed   = 3 * time.Second  // in which every generator has reported that its agents are away
	barPoolPress  = 20 * time.Millisecond
	barPoolReturn = 5 * time.Second
)

// poolBench measures replicas whose brokers form a pool: presses at each of them, and what the others notice when one broker is
// killed under load. The brokers are those of the replicas, or Mosquittos.
type poolBench struct{ agents, replicas, mosquittos int }

func (b poolBench) validate() error {
	switch {
	case b.agents <= probes || b.agents > fleetconfig.MaxFleet:
		return fmt.Errorf("-pool %d, want %d to %d agents", b.agents, probes+1, fleetconfig.MaxFleet)
	case b.replicas < 2 || b.replicas > protocol.MaxBrokers:
		return fmt.Errorf("-replicas %d, want 2 to %d", b.replicas, protocol.MaxBrokers)
	case b.mosquittos == 1 || b.mosquittos < 0 || b.mosquittos > protocol.MaxBrokers:
		return fmt.Errorf("-mosquittos %d, want 0, or 2 to %d: one must survive", b.mosquittos, protocol.MaxBrokers)
	}
	return nil
}

// flags returns the command line of this measurement.
func (b poolBench) flags() string {
	text := fmt.Sprintf("-pool %d", b.agents)
	if b.replicas != poolReplicas {
		text += fmt.Sprintf(" -replicas %d", b.replicas)
	}
	if b.mosquittos > 0 {
		text += fmt.Sprintf(" -mosquittos %d", b.mosquittos)
	}
	return text
}

// file returns the file of this measurement's part. Each number of replicas or Mosquittos has a file of its own.
func (b poolBench) file() string {
	name := "pool"
	if b.mosquittos > 0 {
		name += fmt.Sprintf("-%d-mosquittos", b.mosquittos)
	}
	if b.replicas != poolReplicas {
		name += fmt.Sprintf("-%d-replicas", b.replicas)
	}
	return filepath.Join(part.Dir, name+".json")
}

func (b poolBench) title() string {
	if b.mosquittos > 0 {
		return fmt.Sprintf("%d services, %d Mosquittos as their pool of brokers", b.replicas, b.mosquittos)
	}
	return fmt.Sprintf("%d services, one pool of brokers", b.replicas)
}

// member is the broker that is killed: the last replica or the last Mosquitto.
func (b poolBench) member() string {
	if b.mosquittos > 0 {
		return "one Mosquitto"
	}
	return "one replica"
}

func (b poolBench) run(ctx context.Context, root, dir string, log io.Writer, p *part.Part) (err error) {
	options := world.StackOptions{Root: root, Log: log, Replicas: b.replicas - 1, Mosquittos: b.mosquittos}
	for n := range b.agents * min(b.mosquittos, 1) {
		name := fleetconfig.FleetName(n + 1)
		options.Agents = append(options.Agents, world.Credential{Branch: name, Username: protocol.AgentID(name), Password: fleetconfig.DemoPassword(name)})
	}
	s, server, err := startServices(ctx, dir, []int{b.agents}, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(), server.Stop()) }()
	fmt.Println("profiles of the first service at", s.MetricsAt+"/debug/pprof/")
	before, err := poolMemory(s)
	if err != nil {
		return err
	}
	began := time.Now()
	swarm, err := startSwarm(ctx, filepath.Join(dir, world.Simulator), poolAddresses(s), b.agents, poolGroup)
	if err != nil {
		return err
	}
	defer swarm.stop()
	online, err := swarm.await(ctx, began, int64(b.agents), fleetTimeout)
	if err != nil {
		return err
	}
	fmt.Printf("%d agents online after %s\n", b.agents, online.Round(10*time.Millisecond))
	if err := pause(ctx, fleetSettle); err != nil {
		return err
	}
	after, err := poolMemory(s)
	if err != nil {
		return err
	}
	presses, err := poolPressers(ctx, s)
	if err != nil {
		return err
	}
	each := func(i int) float64 { return (after[i] - before[i]) / 1024 / float64(b.agents) }
	p.Figures = append(p.Figures,
		part.Figure{Name: fmt.Sprintf("%d agents over %d replicas, time until all are online", b.agents, b.replicas), Value: online.Seconds(), Unit: "s"},
		part.Figure{Name: "memory of all services for each agent", Value: each(0), Unit: "KiB"})
	if b.mosquittos > 0 {
		p.Figures = append(p.Figures, part.Figure{Name: "memory of the Mosquittos for each agent, without that of its rules", Value: each(1), Unit: "KiB"})
	}
	branches := names(reachable(b.agents, []int{b.agents}))
	all := atRate(ctx, poolRate, poolPresses, func(ctx context.Context, n int64) (bool, error) {
		// The replica of a press and the broker of its branch are independent.
		branch := branches[n/int64(b.replicas)%int64(len(branches))]
		err := presses[n%int64(b.replicas)](ctx, branch)
		if err != nil {
			fmt.Fprintf(log, "refused: %s at replica %d: %v\n", branch, n%int64(b.replicas)+1, err)
		}
		return err == nil, err
	})
	fmt.Printf("presses at any replica: p50 %s, p99 %s, not opened %d\n", all.p50, all.p99, all.failed)
	p.Figures = append(p.Figures,
		atMost("press at any replica, p50, ms", ms(all.p50), ms(barPoolPress)),
		part.Figure{Name: "press at any replica, p99", Value: ms(all.p99), Unit: "ms"},
		atMost("presses at any replica that opened no door", float64(all.failed), 0))
	return b.kill(ctx, s, swarm, presses, log, p)
}

// poolAddresses returns the brokers of a stack as agents reach them.
func poolAddresses(s *world.Stack) (addresses []string) {
	for _, b := range s.Brokers {
		addresses = append(addresses, b.Agents)
	}
	if addresses != nil {
		return addresses
	}
	addresses = append(addresses, s.MQTTAt)
	for _, r := range s.Replicas {
		addresses = append(addresses, r.MQTTAt)
	}
	return addresses
}

// poolMemory returns the resident memory of all services, and of all Mosquittos, in bytes.
func poolMemory(s *world.Stack) (sum [2]float64, err error) {
	add := func(i, pid int) error {
		bytes, err := residentOf(pid)
		sum[i] += bytes
		return err
	}
	failures := []error{add(0, s.PID(world.Service))}
	for _, r := range s.Replicas {
		failures = append(failures, add(0, s.PID(r.Name)))
	}
	for _, b := range s.Brokers {
		failures = append(failures, add(1, b.PID()))
	}
	return sum, errors.Join(failures...)
}

// poolPressers returns a function for each replica that presses there.
func poolPressers(ctx context.Context, s *world.Stack) (presses []doorPresser, err error) {
	apis := []string{s.API}
	for _, r := range s.Replicas {
		apis = append(apis, r.API)
	}
	for _, api := range apis {
		press, err := administrator(ctx, api)
		if err != nil {
			return nil, err
		}
		presses = append(presses, press)
	}
	return presses, nil
}

// kill kills the last broker of the pool while doors are pressed at the replicas that stay.
func (b poolBench) kill(ctx context.Context, s *world.Stack, swarm *swarm, presses []doorPresser, log io.Writer, p *part.Part) error {
	lost, end := "", func() error { return nil }
	if b.mosquittos > 0 {
		broker := s.Brokers[len(s.Brokers)-1]
		lost, end = broker.Agents, broker.Kill
	} else {
		replica := s.Replicas[len(s.Replicas)-1]
		lost, end = replica.MQTTAt, func() error { return s.Signal(replica.Name, kill) }
		presses = presses[:len(presses)-1]
	}
	var mu sync.Mutex
	var others, refused, connected, missed int
	watching, done := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		atRate(watching, poolRate, poolRecovery, func(ctx context.Context, n int64) (bool, error) {
			before, branch := swarm.probe(int(n))
			if before == 0 {
				return true, nil // it is moving
			}
			pressed := time.Now()
			err := presses[n%int64(len(presses))](ctx, branch)
			after, _ := swarm.probe(int(n))
			stays := swarm.config.Broker(branch, 0).String() != lost
			mu.Lock()
			defer mu.Unlock()
			ok := err == nil || watching.Err() != nil
			if !ok && before == after {
				fmt.Fprintf(log, "refused: %s at replica %d, pressed at %s: %v\n", branch, n%int64(len(presses))+1, pressed.UTC().Format(time.RFC3339Nano), err)
			}
			switch {
			case stays:
				others++
				if !ok {
					refused++
				}
			case before == after:
				connected++
				if !ok {
					missed++
				}
			}
			return err == nil, err
		})
	}()
	if err := pause(ctx, 2*time.Second); err != nil { // under load
		done()
		<-watched
		return err
	}
	accepted, killed := swarm.stats().Accepted, time.Now()
	err := end()
	var back time.Duration
	if err == nil {
		err = pause(ctx, poolNoticed)
	}
	if err == nil {
		back, err = swarm.await(ctx, killed, accepted+1, poolRecovery)
	}
	moved := swarm.stats().Accepted - accepted
	if err == nil {
		err = pause(ctx, fleetWatch)
	}
	done()
	<-watched
	if err != nil {
		return err
	}
	event := "kill -9 of " + b.member() + ": "
	fmt.Printf("%sits %d agents back after %s; %d presses at branches of the others, %d refused; %d at its own while connected, %d refused\n",
		event, moved, back.Round(10*time.Millisecond), others, refused, connected, missed)
	p.Figures = append(p.Figures,
		atMost(event+"its agents are back after, s", back.Seconds(), barPoolReturn.Seconds()),
		part.Figure{Name: event + "agents that moved", Value: float64(moved)},
		part.Figure{Name: event + "presses at branches of the others", Value: float64(others)},
		atMost(event+"refused presses at branches of the others", float64(refused), 0),
		part.Figure{Name: event + "presses at its own branches while connected", Value: float64(connected)},
		atMost(event+"refused presses at its own branches while connected", float64(missed), 0))
	p.Notes = append(p.Notes, b.notes()...)
	return nil
}

func (b poolBench) notes() (notes []string) {
	brokers, pressed, back := "embedded brokers and no other broker", "the other replicas", "the killed replica"
	if b.mosquittos > 0 {
		brokers, pressed, back = fmt.Sprintf("%d Mosquittos with deploy/mosquitto/mosquitto.conf, without TLS", b.mosquittos), "all replicas", "the killed Mosquitto"
	}
	if b.mosquittos > 0 {
		notes = append(notes, "At most 100 connections wait until Mosquitto accepts them, and no setting changes that. The agents of the killed broker connect within two seconds, so the kernel may drop some of their attempts, and repeats those after 1, 3 and 7 s.")
	}
	return append(notes,
		fmt.Sprintf("%d services with %s, on one machine with the database and the agents. Agents connect in groups of %d, each when those before it are online. Presses are those of a manager, %d a second in turn at every replica; the time is that from the request to the event with the result.", b.replicas, brokers, poolGroup, poolRate),
		fmt.Sprintf("After kill -9, presses go to %s, at %d watched branches. A press at a branch of the killed broker counts if its agent stays connected from before the press until the result. The light agents do not return to %s when it is back; the tests of the agent cover that.", pressed, probes, back))
}
