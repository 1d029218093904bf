package access

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// attempt is a request that this replica accepted and that has not ended: it is asked again until it has.
type attempt struct {
	id       uuid.UUID
	branch   string
	ask      protocol.Ask
	accepted time.Time // monotonic
	claimed  bool      // the row was found granted when the claim limit had passed
	timer    *time.Timer
}

// attempts are those of this replica.
type attempts struct {
	mu      sync.Mutex
	open    map[uuid.UUID]*attempt
	stopped bool
	running sync.WaitGroup
}

func (a *attempts) add(t *attempt, next func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	if a.open == nil {
		a.open = make(map[uuid.UUID]*attempt)
	}
	a.open[t.id] = t
	t.timer = time.AfterFunc(protocol.RepeatInterval, func() {
		if a.enter(t) {
			defer a.running.Done()
			next()
		}
	})
}

// enter reports whether an attempt is still open; then stop waits for running.Done.
func (a *attempts) enter(t *attempt) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || a.open[t.id] != t {
		return false
	}
	a.running.Add(1)
	return true
}

func (a *attempts) again(t *attempt, in time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped && a.open[t.id] == t {
		t.timer.Reset(in)
	}
}

func (a *attempts) forget(id uuid.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t, ok := a.open[id]; ok {
		t.timer.Stop()
		delete(a.open, id)
	}
}

// stop leaves what is open to the other replicas.
func (a *attempts) stop() {
	a.mu.Lock()
	a.stopped = true
	for id, t := range a.open {
		t.timer.Stop()
		delete(a.open, id)
	}
	a.mu.Unlock()
	a.running.Wait()
}

// attempt asks the agent and goes on asking: a lost ask, claim or grant costs one interval. Asking goes on after the
// grant, for an agent that is asked again repeats a result that was lost.
func (s *Service) attempt(id uuid.UUID, branch string, doors []string) {
	t := &attempt{id: id, branch: branch, accepted: time.Now(), ask: protocol.Ask{RequestID: id.String(), Doors: doors}}
	s.attempts.add(t, func() { s.proceed(t) })
	s.ask(t)
}

func (s *Service) ask(t *attempt) {
	if err := s.Link.Send(t.branch, t.ask); err != nil {
		s.Log.Error("access: ask not sent", "branch", t.branch, "request", t.id, "error", err)
	}
}

// proceed does what the age of an attempt demands.
func (s *Service) proceed(t *attempt) {
	ctx, cancel := context.WithTimeout(context.Background(), stepWithin)
	defer cancel()
	next := protocol.RepeatInterval
	switch age := time.Since(t.accepted); {
	case age >= s.reportLimit():
		s.abandon(ctx, t)
		return
	case age >= protocol.ClaimLimit && !t.claimed:
		ended, err := postgres.FailDoor(ctx, s.DB.Pool, t.id, t.branch, "no claim")
		if err != nil {
			s.Log.Error("access: request not ended", "request", t.id, "error", err)
			break
		}
		if ended {
			s.Log.Warn("access: agent is silent", "branch", t.branch, "request", t.id)
			s.end(t.id, postgres.DoorFailed)
			return
		}
		t.claimed = true
		next = min(next, s.reportLimit()-age)
		s.ask(t)
	case !t.claimed:
		next = min(next, protocol.ClaimLimit-age)
		s.ask(t)
	default:
		next = min(next, s.reportLimit()-age)
		s.ask(t)
	}
	s.attempts.again(t, next)
}

func (s *Service) abandon(ctx context.Context, t *attempt) {
	s.attempts.forget(t.id)
	state, err := postgres.AbandonDoor(ctx, s.DB.Pool, t.id)
	switch {
	case err != nil:
		s.Log.Error("access: request not ended", "request", t.id, "error", err) // the sweep does it
	case state != "":
		s.Log.Warn("access: no report", "branch", t.branch, "request", t.id, "state", state)
		s.end(t.id, state)
	}
}
