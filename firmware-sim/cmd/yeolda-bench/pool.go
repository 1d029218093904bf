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
)

const (
	poolReplicas  = 3
	poolRate      = 60 // presses per second over all agents and all replicas
	poolPresses   = 20 * time.Second
	poolRecovery  = 30 * time.Second // in which the agents of a killed replica are back
	barPoolPress  = 20 * time.Millisecond
	barPoolReturn = 5 * time.Second
)

// pool measures replicas whose embedded brokers form a pool: presses at each of them, and what the others notice when one is
// killed under load.
func pool(ctx context.Context, root, dir string, agents int, log io.Writer, p *part.Part) (err error) {
	s, server, err := startServices(ctx, root, dir, []int{agents}, poolReplicas-1, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(), server.Stop()) }()
	brokers := []string{s.MQTTAt}
	for _, r := range s.Replicas {
		brokers = append(brokers, r.MQTTAt)
	}
	began := time.Now()
	swarm, err := startSwarm(ctx, filepath.Join(dir, world.Simulator), brokers, agents)
	if err != nil {
		return err
	}
	defer swarm.stop()
	online, err := swarm.await(ctx, began, int64(agents), fleetTimeout)
	if err != nil {
		return err
	}
	fmt.Printf("%d agents online after %s\n", agents, online.Round(10*time.Millisecond))
	if err := pause(ctx, fleetSettle); err != nil {
		return err
	}
	presses, err := poolPressers(ctx, s)
	if err != nil {
		return err
	}
	p.Figures = append(p.Figures, part.Figure{Name: fmt.Sprintf("%d agents over %d replicas, time until all are online", agents, poolReplicas), Value: online.Seconds(), Unit: "s"})
	branches := names(reachable(agents, []int{agents}))
	all := atRate(ctx, poolRate, poolPresses, func(ctx context.Context, n int64) (bool, error) {
		// The replica of a press and the broker of its branch are independent.
		return presses[n%poolReplicas](ctx, branches[n/poolReplicas%int64(len(branches))])
	})
	fmt.Printf("presses at any replica: p50 %s, p99 %s, not opened %d\n", all.p50, all.p99, all.failed)
	p.Figures = append(p.Figures,
		atMost("press at any replica, p50, ms", ms(all.p50), ms(barPoolPress)),
		part.Figure{Name: "press at any replica, p99", Value: ms(all.p99), Unit: "ms"},
		atMost("presses at any replica that opened no door", float64(all.failed), 0))
	return poolKill(ctx, s, swarm, presses[:poolReplicas-1], agents, p)
}

// poolPressers returns a function for each replica that presses there.
func poolPressers(ctx context.Context, s *world.Stack) (presses []func(context.Context, string) (bool, error), err error) {
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

// poolKill kills the last replica while doors are pressed at the others.
func poolKill(ctx context.Context, s *world.Stack, swarm *swarm, presses []func(context.Context, string) (bool, error), agents int, p *part.Part) error {
	lost := s.Replicas[len(s.Replicas)-1]
	moving := int64(0)
	for n := range agents {
		if swarm.config.Broker(fleetconfig.FleetName(n+1), 0).String() == lost.MQTTAt {
			moving++
		}
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
			opened, err := presses[n%int64(len(presses))](ctx, branch)
			after, _ := swarm.probe(int(n))
			stays := swarm.config.Broker(branch, 0).String() != lost.MQTTAt
			mu.Lock()
			defer mu.Unlock()
			ok := err == nil && opened || watching.Err() != nil
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
			return opened, err
		})
	}()
	if err := pause(ctx, 2*time.Second); err != nil { // under load
		done()
		<-watched
		return err
	}
	accepted, killed := swarm.stats().Accepted, time.Now()
	err := s.Signal(lost.Name, kill)
	var back time.Duration
	if err == nil {
		back, err = swarm.await(ctx, killed, accepted+moving, poolRecovery)
	}
	if err == nil {
		err = pause(ctx, fleetWatch)
	}
	done()
	<-watched
	if err != nil {
		return err
	}
	fmt.Printf("kill -9 of one replica: its %d agents back after %s; %d presses at branches of the others, %d refused; %d at its own while connected, %d refused\n",
		moving, back.Round(10*time.Millisecond), others, refused, connected, missed)
	p.Figures = append(p.Figures,
		atMost("kill -9 of one replica: its agents are back after, s", back.Seconds(), barPoolReturn.Seconds()),
		part.Figure{Name: "kill -9 of one replica: agents that moved", Value: float64(moving)},
		part.Figure{Name: "kill -9 of one replica: presses at branches of the others", Value: float64(others)},
		atMost("kill -9 of one replica: refused presses at branches of the others", float64(refused), 0),
		part.Figure{Name: "kill -9 of one replica: presses at its own branches while connected", Value: float64(connected)},
		atMost("kill -9 of one replica: refused presses at its own branches while connected", float64(missed), 0))
	p.Notes = append(p.Notes,
		fmt.Sprintf("%d services with embedded brokers and no other broker, on one machine with the database and the agents. Presses are those of a manager, %d a second in turn at every replica; the time is that from the request to the event with the result.", poolReplicas, poolRate),
		fmt.Sprintf("After kill -9, presses go to the other replicas, at %d watched branches. A press at a branch of the killed one counts if its agent stays connected from before the press until the result. The light agents do not return to the killed replica when it is back; the tests of the agent cover that.", probes))
	return nil
}
