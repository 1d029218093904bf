package access

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
	"github.com/yeolda/yeolda/protocol"
)

// attempt is a request that this replica accepted: it is asked again until it has ended, and remembered for a while after
// that, for those who ask how it ended.
type attempt struct {
	row      postgres.DoorRequest // as it was written; State is guarded by attempts.mu and follows what this replica learns
	keyHash  []byte               // nil: staff's
	accepted time.Time            // monotonic
	claimed  time.Time            // when its first claim came to this replica; zero: it did not
	granted  bool                 // the row was found granted when the claim limit had passed
	timer    *time.Timer
}

// rememberFor is how long an ended request is answered from memory. The row answers later ones.
const rememberFor = 3 * time.Second

// attempts are those of this replica.
type attempts struct {
	mu      sync.Mutex
	byID    map[uuid.UUID]*attempt
	stopped bool
	running sync.WaitGroup
}

// add remembers an attempt and calls next, which must call again, after one interval.
func (a *attempts) add(t *attempt, next func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	if a.byID == nil {
		a.byID = make(map[uuid.UUID]*attempt)
	}
	a.byID[t.row.ID] = t
	t.timer = time.AfterFunc(protocol.RepeatInterval, func() {
		if a.enter(t) {
			defer a.running.Done()
			next()
		}
	})
}

// enter reports whether there is something left to do for an attempt; then stop waits for running.Done.
func (a *attempts) enter(t *attempt) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return false
	}
	if t.row.State.Final() {
		delete(a.byID, t.row.ID)
		return false
	}
	a.running.Add(1)
	return true
}

func (a *attempts) again(t *attempt, in time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped && !t.row.State.Final() {
		t.timer.Reset(in)
	}
}

// find returns a request as this replica knows it: ended, or perhaps still open. With the hash of a key it must be the
// one made with it.
func (a *attempts) find(id uuid.UUID, keyHash []byte) (postgres.DoorRequest, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.byID[id]
	if !ok || keyHash != nil && !bytes.Equal(keyHash, t.keyHash) {
		return postgres.DoorRequest{}, false
	}
	return t.row, true
}

// claim notes that the agent has claimed a request, for the measurement of its stages.
func (a *attempts) claim(id uuid.UUID, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t, ok := a.byID[id]; ok && t.claimed.IsZero() {
		t.claimed = at
		stageSeconds.WithLabelValues("claim").Observe(at.Sub(t.accepted).Seconds())
	}
}

// end notes how a request ended. With an empty state that is not known here, and the row must be read.
func (a *attempts) end(id uuid.UUID, state postgres.DoorState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.byID[id]
	if !ok || t.row.State.Final() {
		return
	}
	if state == "" {
		t.timer.Stop()
		delete(a.byID, id)
		return
	}
	if state == postgres.DoorSuccess {
		openSeconds.Observe(time.Since(t.accepted).Seconds())
		if !t.claimed.IsZero() {
			stageSeconds.WithLabelValues("drive").Observe(time.Since(t.claimed).Seconds())
		}
	}
	t.row.State = state
	t.timer.Reset(rememberFor)
}

// stop leaves what is open to the other replicas and waits for steps under way.
func (a *attempts) stop() {
	a.mu.Lock()
	a.stopped = true
	for id, t := range a.byID {
		t.timer.Stop()
		delete(a.byID, id)
	}
	a.mu.Unlock()
	a.running.Wait()
}

// attempt asks the agent and goes on asking: a lost ask, claim or grant costs one interval. Asking goes on after the
// grant, for an agent that is asked again repeats a result that was lost.
func (s *Service) attempt(row postgres.DoorRequest, keyHash []byte) {
	t := &attempt{row: row, keyHash: keyHash, accepted: time.Now()}
	s.attempts.add(t, func() { s.proceed(t) })
	s.ask(t)
}

func (s *Service) ask(t *attempt) {
	_, span := tracing.Door(context.Background(), t.row.ID, "door.ask")
	err := s.Link.Send(t.row.Branch, protocol.Ask{RequestID: t.row.ID.String(), Doors: t.row.Devices})
	span.End(err)
	if err != nil {
		s.Log.Error("access: ask not sent", "branch", t.row.Branch, "request", t.row.ID, "error", err)
	}
}

// proceed does what the age of an attempt demands.
func (s *Service) proceed(t *attempt) {
	ctx, cancel := context.WithTimeout(context.Background(), stepWithin)
	defer cancel()
	age := time.Since(t.accepted)
	if age >= s.reportLimit() {
		s.abandon(ctx, t)
		return
	}
	limit := protocol.ClaimLimit
	if age >= limit && !t.granted {
		ended, err := postgres.FailDoor(ctx, s.DB.Doors, t.row.ID, t.row.Branch, "no claim")
		if err != nil {
			s.Log.Error("access: request not ended", "request", t.row.ID, "error", err)
		}
		if ended {
			s.Log.Warn("access: agent is silent", "branch", t.row.Branch, "request", t.row.ID)
			s.end(t.row.ID, postgres.DoorFailed)
			return
		}
		t.granted = err == nil
	}
	if age >= limit {
		limit = s.reportLimit()
	}
	s.ask(t)
	s.attempts.again(t, min(protocol.RepeatInterval, limit-age))
}

func (s *Service) abandon(ctx context.Context, t *attempt) {
	state, err := postgres.AbandonDoor(ctx, s.DB.Doors, t.row.ID)
	if err != nil {
		s.Log.Error("access: request not ended", "request", t.row.ID, "error", err) // the sweep does it
	}
	if state != "" {
		s.Log.Warn("access: no report", "branch", t.row.Branch, "request", t.row.ID, "state", state)
		s.end(t.row.ID, state)
		return
	}
	s.learn(t.row.ID) // it ended elsewhere, or will
}
