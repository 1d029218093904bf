package soak

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// fault records a fault and its duration.
func (s *Soak) fault(kind, target string, at time.Time) {
	s.note(func(rec *record.Record) {
		rec.Faults = append(rec.Faults, record.Fault{Kind: kind, Target: target, At: at, Until: time.Now()})
	})
}

// breakPrograms kills a program or breaks a link, one after the other, with pauses in between.
func (s *Soak) breakPrograms(limited, ctx context.Context, dice *rand.Rand) error {
	for {
		pause(limited, between(dice, 3*time.Second, 9*time.Second))
		if limited.Err() != nil {
			return nil //nolint:nilerr // the disturbed part is over
		}
		r := s.world.Replicas[dice.IntN(len(s.world.Replicas))]
		var err error
		switch n := dice.IntN(10); {
		case n < 3:
			err = s.kill(limited, ctx, between(dice, 200*time.Millisecond, 5*time.Second), r.Process)
		case n < 4: // two at once
			err = s.kill(limited, ctx, between(dice, 200*time.Millisecond, 2*time.Second), s.world.Replicas[0].Process, s.world.Replicas[1].Process)
		case n < 5:
			broker := s.world.Brokers[dice.IntN(len(s.world.Brokers))].Process
			if broker == nil {
				broker = r.Process // which it is embedded in
			}
			err = s.kill(limited, ctx, between(dice, 200*time.Millisecond, 3*time.Second), broker)
		case n < 6:
			err = s.kill(limited, ctx, between(dice, 500*time.Millisecond, 6*time.Second), s.world.Postgres)
		default:
			name, link := "database", r.Database
			switch dice.IntN(3) {
			case 0:
				name, link = "broker", r.Brokers[dice.IntN(len(r.Brokers))]
			case 1:
				name, link = "providers", r.Providers
			}
			kind, begin := "cut", link.Cut
			if oneIn(dice, 2) {
				kind, begin = "partition", link.Freeze
			}
			at := time.Now()
			begin()
			pause(limited, between(dice, 500*time.Millisecond, 9*time.Second))
			link.Restore()
			s.fault(kind, r.Name+"–"+name, at)
		}
		if err != nil {
			return err
		}
	}
}

// kill kills programs and restarts them after a while.
func (s *Soak) kill(limited, ctx context.Context, away time.Duration, programs ...*world.Process) error {
	at := time.Now()
	for _, p := range programs {
		if err := p.Kill(); err != nil {
			return err
		}
	}
	pause(limited, away)
	for _, p := range programs {
		if err := p.Start(ctx); err != nil {
			return err
		}
		s.fault("kill", p.Name, at)
	}
	return nil
}

// breakProvider makes the next calls to the providers fail.
func (s *Soak) breakProvider(ctx context.Context, dice *rand.Rand) {
	targets := []string{"confirm", "confirm", "confirm", "cancel", "get", "virtual-accounts", "messages", "channel"}
	errors := []map[string]any{
		{"status": 500}, {"status": 502, "code": "BAD_GATEWAY"}, {"status": 429, "code": "TOO_MANY_REQUESTS"},
		{"status": 409, "code": "IDEMPOTENT_REQUEST_PROCESSING"}, {"status": 400, "code": "ALREADY_PROCESSED_PAYMENT"}, {"status": 400, "code": "NEVER_HEARD_OF"},
	}
	for {
		pause(ctx, between(dice, 500*time.Millisecond, 4*time.Second))
		if ctx.Err() != nil {
			return
		}
		target := targets[dice.IntN(len(targets))]
		fault := map[string]any{"target": target, "times": 1 + dice.IntN(3)}
		switch kind := []string{"error", "error", "drop-after-commit", "drop-after-commit", "slow", "timeout"}[dice.IntN(6)]; kind {
		case "error":
			fault["kind"] = kind
			if target == "confirm" || target == "cancel" || target == "get" {
				for k, v := range errors[dice.IntN(len(errors))] {
					fault[k] = v
				}
			} else {
				fault["status"] = 500
			}
		case "slow":
			fault["kind"], fault["delayMs"] = kind, 500+dice.IntN(25_000)
		case "timeout":
			fault["kind"], fault["delayMs"] = kind, 1000+dice.IntN(30_000)
		default:
			fault["kind"] = kind
		}
		at := time.Now()
		if _, err := world.Ask(http.MethodPost, s.world.Sandbox+"/sandbox/faults", fault, nil); err == nil {
			s.fault("provider "+fault["kind"].(string), target, at)
		}
	}
}

// breakBranch applies one fault after the other to a branch.
func (s *Soak) breakBranch(ctx context.Context, b world.Branch, dice *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, between(dice, time.Second, 15*time.Second))
		if ctx.Err() != nil {
			return
		}
		var began []record.Fault
		for range 1 + dice.IntN(2) {
			fault := branchFault(dice)
			if s.setBranch(b, fault) == nil {
				began = append(began, record.Fault{Kind: fault["kind"].(string), Target: b.Code, At: time.Now()})
			}
			if fault["kind"] == "power-off" {
				s.lookAtLocks(b)
			}
			pause(ctx, between(dice, 50*time.Millisecond, 4*time.Second))
		}
		s.clearBranch(b)
		for _, f := range began {
			s.fault(f.Kind, f.Target, f.At)
		}
	}
}

// offsets are wrong clocks of an agent: an hour late or early, half a minute early, or at the end of 1969.
var offsets = []time.Duration{-time.Hour, time.Hour, 30 * time.Second, -30 * time.Second, -57 * 365 * 24 * time.Hour}

// branchFault is a fault of a branch in the simulator's format.
func branchFault(dice *rand.Rand) map[string]any {
	kinds := []string{"network-cut", "network-cut", "network-lag", "network-lag", "loss", "reorder", "duplicate", "clock", "clock", "power-off", "power-off", "stuck", "relay-dead", "slow"}
	fault := map[string]any{"kind": kinds[dice.IntN(len(kinds))]}
	switch fault["kind"] {
	case "network-lag", "reorder":
		fault["delayMs"] = 1 + dice.IntN(1200)
	case "slow":
		fault["delayMs"] = 1 + dice.IntN(600)
	case "loss":
		fault["percent"] = 1 + dice.IntN(60)
	case "clock":
		fault["offsetMs"] = offsets[dice.IntN(len(offsets))].Milliseconds()
	}
	return fault
}

func (s *Soak) setBranch(b world.Branch, fault map[string]any) error {
	_, err := world.Ask(http.MethodPut, s.world.Simulator+"/sim/branches/"+b.Code+"/faults", fault, nil)
	return err
}

// clearBranch clears the faults of a branch. The simulator itself never fails but may be slow.
func (s *Soak) clearBranch(b world.Branch) {
	const tries = 5
	for n := range tries {
		_, err := world.Ask(http.MethodDelete, s.world.Simulator+"/sim/branches/"+b.Code+"/faults", nil, nil)
		if err == nil {
			return
		}
		if n == tries-1 {
			s.say("%s : faults could not be cleared: %v", b.Code, err)
		}
	}
}

// locked reports whether every lock of a branch is locked.
func (s *Soak) locked(b world.Branch) (map[string]bool, error) {
	var state struct {
		Doors []struct {
			Device string `json:"device"`
			Locked bool   `json:"locked"`
		} `json:"doors"`
	}
	if _, err := world.Ask(http.MethodGet, s.world.Simulator+"/sim/branches/"+b.Code, nil, &state); err != nil {
		return nil, err
	}
	locked := map[string]bool{}
	for _, d := range state.Doors {
		locked[b.Code+"/"+d.Device] = d.Locked
	}
	return locked, nil
}

// lookAtLocks records whether a branch without power is locked.
func (s *Soak) lookAtLocks(b world.Branch) {
	at := time.Now()
	locks, err := s.locked(b)
	if err != nil {
		return
	}
	cut := record.PowerCut{Branch: b.Code, At: at, Locked: true}
	for _, locked := range locks {
		cut.Locked = cut.Locked && locked
	}
	s.note(func(rec *record.Record) { rec.PowerCut = append(rec.PowerCut, cut) })
}
