package access

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
	"github.com/yeolda/yeolda/protocol"
)

// attempt is a request that this replica accepted. The ask is repeated until the request has ended; after that, the result
// is kept in memory for a while for its subscribers.
type attempt struct {
	row      door.Request  // as written; State is guarded by attempts.mu and follows what this replica knows
	peer     protocol.Peer // the agent to ask
	keyHash  []byte        // nil: staff's
	accepted time.Time     // monotonic
	claimed  time.Time     // when its first claim came to this replica; zero: it did not
	granted  bool          // the row was granted when it was written, or when the claim limit had passed
	timer    *time.Timer
}

// resultTTL is how long an ended request is kept in memory. After that the row is read.
const resultTTL = 3 * time.Second

// attempts are the attempts of this replica.
type attempts struct {
	mu      sync.Mutex
	byID    map[uuid.UUID]*attempt
	stopped bool
	running sync.WaitGroup
}

// add stores an attempt and calls next after one interval. next calls again for the following intervals.
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

// enter reports whether an attempt is still in progress. If so, stop waits for running.Done.
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

// find returns a request as this replica knows it; it may have ended at another replica. If keyHash is given, the request
// must have been made with that key.
func (a *attempts) find(id uuid.UUID, keyHash []byte) (door.Request, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.byID[id]
	if !ok || keyHash != nil && !bytes.Equal(keyHash, t.keyHash) {
		return door.Request{}, false
	}
	return t.row, true
}

// claim records that the agent has claimed a request, for the stage metrics.
func (a *attempts) claim(id uuid.UUID, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t, ok := a.byID[id]; ok && t.claimed.IsZero() {
		t.claimed = at
		stageSeconds.WithLabelValues("claim").Observe(at.Sub(t.accepted).Seconds())
	}
}

// end records the final state of a request. If the state is empty, it is unknown here and the row must be read.
func (a *attempts) end(id uuid.UUID, state door.State) {
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
	if state == door.Success {
		openSeconds.Observe(time.Since(t.accepted).Seconds())
		if !t.claimed.IsZero() {
			stageSeconds.WithLabelValues("drive").Observe(time.Since(t.claimed).Seconds())
		}
	}
	t.row.State = state
	t.timer.Reset(resultTTL)
}

// stop leaves open requests to the other replicas and waits for steps in progress.
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

// attempt asks the agent and repeats the ask: a lost ask, claim or grant costs one interval. Asks continue after the grant,
// because the agent answers them by repeating a lost result.
func (s *Service) attempt(row door.Request, agent string, keyHash []byte) {
	t := &attempt{row: row, peer: peer(row.Branch, agent), keyHash: keyHash, accepted: time.Now()}
	s.proceedLater(t)
	s.ask(t)
}

// proceedLater repeats the ask of an attempt after each interval.
func (s *Service) proceedLater(t *attempt) { s.attempts.add(t, func() { s.proceed(t) }) }

func peer(branch, username string) protocol.Peer {
	return protocol.Peer{Agent: protocol.Agent{Branch: branch, Username: username}}
}

func (s *Service) ask(t *attempt) {
	_, span := tracing.Door(context.Background(), t.row.ID, "door.ask")
	err := s.Link.Send(t.peer, protocol.Ask{RequestID: t.row.ID.String(), Doors: t.row.Devices})
	span.End(err)
	if err != nil {
		s.Log.Error("access: ask not sent", "branch", t.row.Branch, "request", t.row.ID, "error", err)
	}
}

// proceed performs the step that is due at the age of an attempt.
func (s *Service) proceed(t *attempt) {
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	age := time.Since(t.accepted)
	if age >= s.reportLimit() {
		s.abandon(ctx, t)
		return
	}
	limit := protocol.ClaimLimit
	if age >= limit && !t.granted {
		ended, err := postgres.FailDoor(ctx, s.DB.Doors, t.row.ID, t.row.Branch, "no claim", s.now())
		if err != nil {
			s.Log.Error("access: request not ended", "request", t.row.ID, "error", err)
		}
		if ended {
			s.Log.Warn("access: agent is silent", "branch", t.row.Branch, "request", t.row.ID)
			s.end(t.row.ID, door.Failed)
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
	state, err := postgres.AbandonDoor(ctx, s.DB.Doors, t.row.ID, s.now())
	if err != nil {
		s.Log.Error("access: request not ended", "request", t.row.ID, "error", err) // the sweep ends it
	}
	if state != "" {
		s.Log.Warn("access: the agent has sent no report", "branch", t.row.Branch, "request", t.row.ID, "state", state)
		s.end(t.row.ID, state)
		return
	}
	s.refresh(t.row.ID) // it ended at another replica, or the sweep ends it
}
