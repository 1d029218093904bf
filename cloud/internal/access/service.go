package access

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/protocol"
)

// Errors of requests; postgres.ErrNoBranch comes through as it is.
var (
	// ErrInvalidKey says that the key opens nothing here: it is unknown, of another branch, of a reservation that is not
	// paid or was cancelled, or not the one of the request (docs/specification.md, Doors 3 and 7).
	ErrInvalidKey = errors.New("access: invalid doorlock key")
	// ErrOutsideWindow says that the key opens doors at another time.
	ErrOutsideWindow = booking.ErrOutsideWindow
	// ErrUnknownDoor says that the kind of door is neither front nor room.
	ErrUnknownDoor = errors.New("access: unknown kind of door")
	// ErrUnknownRoom says that the branch has no room of that number.
	ErrUnknownRoom = errors.New("access: unknown room")
	// ErrUnknownRequest says that there is no unlock request of that id.
	ErrUnknownRequest = errors.New("access: unknown request")
	// ErrNoResult says that the subscriber's time ran out (docs/specification.md, Doors 5).
	ErrNoResult = errors.New("access: no result in time")
)

// Link carries messages to the agents.
type Link interface {
	// Send hands a message to the agent of a branch. Whether it arrives is not known.
	Send(branch string, m protocol.Message) error
	// Online reports whether the agent of a branch is known to be there.
	Online(branch string) bool
}

// PINPurpose is what door PINs are sealed for.
const PINPurpose = "door-pin"

const (
	// DefaultResultTimeout is how long a subscriber waits (docs/specification.md, Limits 4).
	DefaultResultTimeout = 7 * time.Second
	// endEarly makes a request end a little before the people who wait for it give up, so that they still see how.
	endEarly = 100 * time.Millisecond
	// driveLimit is the age after which no lock is driven for a request (docs/specification.md, Doors 10).
	driveLimit = protocol.ClaimLimit + protocol.GrantAge
	// sweepEvery bounds how late a request of a dead replica ends.
	sweepEvery = 500 * time.Millisecond
	// relisten is the pause before notifications are listened to again.
	relisten = time.Second
	// stepWithin bounds a step that no caller waits for.
	stepWithin = 3 * time.Second
)

// Service opens doors. Its exported fields are set before Run; all but Limits, ResultTimeout, Pulse, Alone and Now are required.
type Service struct {
	DB       *postgres.DB
	Link     Link
	Keys     *seal.Keyring      // opens PINs
	GrantKey ed25519.PrivateKey // signs grants
	Log      *slog.Logger
	Limits   *limit.Limiter // nil: nobody presses too often

	ResultTimeout time.Duration // how long a subscriber waits; 0: DefaultResultTimeout
	Pulse         time.Duration // how long a lock is driven; 0: protocol.DefaultPulse
	Alone         bool          // no other replica reaches the agents, as with the embedded broker: there is nobody to tell
	Now           func() time.Time

	asks     postgres.Batcher[postgres.KeyedAsk, postgres.KeyedDoor]
	claims   postgres.Batcher[postgres.DoorClaim, []string]
	reports  postgres.Batcher[postgres.DoorReport, postgres.DoorReported]
	presses  limit.Lenient
	attempts attempts
	waiters  waiters
	ended    queue
}

func (s *Service) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func (s *Service) resultTimeout() time.Duration {
	if s.ResultTimeout == 0 {
		return DefaultResultTimeout
	}
	return s.ResultTimeout
}

// reportLimit is the age at which a granted request without a report ends.
func (s *Service) reportLimit() time.Duration {
	return max(s.resultTimeout()-endEarly, driveLimit)
}

// Run ends requests of replicas that died, tells the other replicas about requests that ended here, and listens to them,
// until ctx ends. Requests are accepted without it, but only their own timers end them then.
func (s *Service) Run(ctx context.Context) error {
	defer s.attempts.stop()
	var loops errgroup.Group
	loops.Go(func() error { s.sweep(ctx); return nil })
	if !s.Alone {
		loops.Go(func() error { s.notify(ctx); return nil })
		loops.Go(func() error { s.listen(ctx); return nil })
	}
	return loops.Wait()
}

func (s *Service) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.adopt(ctx)
		// Later than the timers of the replica that accepted the request, which then need not compete.
		ended, err := postgres.EndOverdueDoors(ctx, s.DB.Pool, protocol.ClaimLimit+endEarly, s.reportLimit()+endEarly)
		if err != nil {
			if ctx.Err() == nil {
				s.Log.Error("access: overdue requests not ended", "error", err)
			}
			continue
		}
		for _, e := range ended {
			s.Log.Warn("access: request ended for its age", "request", e.ID, "state", e.State)
			s.end(e.ID, e.State)
		}
	}
}

// end spreads the news that a request has ended.
func (s *Service) end(id uuid.UUID, state postgres.DoorState) {
	count(state)
	s.attempts.end(id, state)
	s.waiters.wake(id, state)
	s.Log.Info("access: request ended", "request", id.String(), "state", string(state))
	if !s.Alone {
		s.ended.put(id)
	}
}

// learn takes the news that a request has ended, perhaps at another replica. How is in the row.
func (s *Service) learn(id uuid.UUID) {
	s.attempts.end(id, "")
	s.waiters.wake(id, "")
}

// notify tells the other replicas. While one notification is on its way the next ones gather.
func (s *Service) notify(ctx context.Context) {
	for {
		ids, err := s.ended.take(ctx)
		if err != nil {
			return
		}
		if err := postgres.NotifyDoors(ctx, s.DB.Pool, ids); err != nil && ctx.Err() == nil {
			s.Log.Error("access: replicas not notified", "error", err) // they poll
		}
	}
}

func (s *Service) listen(ctx context.Context) {
	for ctx.Err() == nil {
		// Whatever ended while nobody listened is found by looking at the rows.
		err := postgres.ListenDoors(ctx, s.DB, s.waiters.wakeAll, s.learn)
		if ctx.Err() != nil {
			return
		}
		s.Log.Error("access: listening to replicas failed", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(relisten):
		}
	}
}

// queue gathers ids of ended requests.
type queue struct {
	mu    sync.Mutex
	ids   []uuid.UUID
	ready chan struct{} // holds one token while ids is not empty
}

func (q *queue) init() {
	if q.ready == nil {
		q.ready = make(chan struct{}, 1)
	}
}

func (q *queue) put(id uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.init()
	q.ids = append(q.ids, id)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take waits for ids and empties the queue.
func (q *queue) take(ctx context.Context) ([]uuid.UUID, error) {
	q.mu.Lock()
	q.init()
	ready := q.ready
	q.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-ready:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	ids := q.ids
	q.ids = nil
	return ids, nil
}
