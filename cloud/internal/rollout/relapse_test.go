package rollout

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// The next wave waits for agents that were healthy and are not any more: b still settles when a relapses.
func TestHealthyAgentThatRelapsesHoldsTheNextWave(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		fall, recover func(*postgres.RolloutMember)
		end           string // of the rollout
	}{
		{"rolled back", func(a *postgres.RolloutMember) {
			a.Version, a.Update = "1", &protocol.UpdateStatus{Version: "2", State: protocol.UpdateRolledBack, Detail: "door_1 failed"}
		}, nil, stopped},
		{"self-tests failed", func(a *postgres.RolloutMember) { a.Failed = 4 }, nil, stopped},
		{"another version", func(a *postgres.RolloutMember) { a.Version = "1" }, nil, stopped},
		{"lost its connection for good", func(a *postgres.RolloutMember) { a.Online = false }, nil, stopped},
		{"lost its connection for a while", func(a *postgres.RolloutMember) { a.Online = false }, func(a *postgres.RolloutMember) { a.Online = true }, done},
		{"replaced", func(a *postgres.RolloutMember) { a.Active, a.Online = false, false }, nil, done},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
			r := postgres.Rollout{Kind: postgres.RolloutPackage, Version: "2", Waves: []int{40, 100}, Wave: 1, Settle: 5 * time.Minute, State: running}
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				wave := 1 + len(r.Members)/2
				r.Members = append(r.Members, postgres.RolloutMember{Username: name, Wave: min(wave, 2), State: waiting, Version: "1", Online: true, Active: true})
			}
			a, b := &r.Members[0], &r.Members[1]
			step := func(d time.Duration) {
				now = now.Add(d)
				advance(&r, now)
			}
			step(0)
			a.Version = "2"
			step(time.Second)
			step(4 * time.Minute)
			b.Version = "2"
			step(time.Second)
			step(61 * time.Second)
			if a.State != healthy || b.State != asked {
				t.Fatalf("a is %s, b is %s", a.State, b.State)
			}
			tc.fall(a)
			for n := range 60 {
				if n == 20 && tc.recover != nil {
					tc.recover(a)
				}
				for i := range r.Members[2:] {
					if m := &r.Members[2+i]; m.State == asked {
						m.Version = "2"
					}
				}
				step(time.Minute)
				if steady := a.Online && a.Version == "2" && a.Failed == 0; r.Wave > 1 && a.Active && (!steady || n < 25 && tc.recover != nil) {
					t.Fatalf("minute %d: wave 2 began although a is not healthy", n)
				}
			}
			if r.State != tc.end {
				t.Errorf("the rollout is %s (%s), want %s; a is %s (%s)", r.State, r.Reason, tc.end, a.State, a.Detail)
			}
		})
	}
}

// In a large rollout, one agent of the first wave that loses its connection later does not stop it.
func TestOneLostConnectionStopsNoLargeRollout(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	r := postgres.Rollout{Kind: postgres.RolloutPackage, Version: "2", Waves: []int{100}, Wave: 2, Settle: 5 * time.Minute, State: running}
	for n := range 41 {
		m := postgres.RolloutMember{Wave: 2, State: asked, AskedAt: now, BeforeVersion: "1", Version: "2", Online: true, Active: true}
		if n == 0 {
			m.Wave, m.State, m.Since = 1, healthy, now.Add(-time.Hour)
		}
		r.Members = append(r.Members, m)
	}
	r.Members[0].Online = false
	for range 60 {
		now = now.Add(time.Minute)
		advance(&r, now)
	}
	if a := r.Members[0]; r.State != done || a.State != failed || a.Failure != lost {
		t.Errorf("the rollout is %s, the agent %s (%s)", r.State, a.State, a.Detail)
	}
}
