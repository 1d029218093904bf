package access

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/protocol"
)

// Errors of requests, besides postgres.ErrNoBranch.
var (
	// ErrInvalidKey is returned when the key opens nothing here: it is unknown, of another branch, of a reservation that is
	// not paid or was cancelled, or not the key of the request (docs/specification.md, Doors 3 and 7).
	ErrInvalidKey = errors.New("access: invalid doorlock key")
	// ErrOutsideWindow is returned when the key opens doors at another time.
	ErrOutsideWindow = booking.ErrOutsideWindow
	// ErrUnknownDoor is returned when the kind of door is neither front nor room.
	ErrUnknownDoor = errors.New("access: unknown kind of door")
	// ErrOccupied is returned when a room that may open between stays only has one.
	ErrOccupied = errors.New("access: a stay occupies the room")
	// ErrUnknownRoom is returned when the branch has no room with that number.
	ErrUnknownRoom = errors.New("access: unknown room")
	// ErrOtherRoom is returned when the key's reservation is not for the room that the client names.
	ErrOtherRoom = errors.New("access: the reservation is for another room")
	// ErrRepeated is returned when a request with the same Actor.Once was made before.
	ErrRepeated = errors.New("access: the request is repeated")
	// ErrUnknownRequest is returned when there is no request with that id.
	ErrUnknownRequest = errors.New("access: unknown request")
	// ErrNoResult is returned when the result timeout of a subscriber has passed (docs/specification.md, Doors 5).
	ErrNoResult = errors.New("access: no result in time")
)

// Link sends messages to agents.
type Link interface {
	// Send sends a message to an agent, without confirmation of delivery.
	Send(to protocol.Peer, m protocol.Message) error
	// Online returns the user names of the branch's connected agents; see protocol.Agent.
	Online(branch string) []string
}

// PINPurpose is the purpose with which door PINs are sealed.
const PINPurpose = "door-pin"

const (
	// DefaultResultTimeout is how long a subscriber waits (docs/specification.md, Limits 4).
	DefaultResultTimeout = 7 * time.Second
	// endMargin makes a request end before its subscribers time out, so that they still receive the result.
	endMargin = 100 * time.Millisecond
	// driveLimit is the age after which no lock is driven for a request (docs/specification.md, Doors 10).
	driveLimit = protocol.ClaimLimit + protocol.GrantAge
	// sweepInterval bounds how late a request of a dead replica ends.
	sweepInterval = 500 * time.Millisecond
	// relistenDelay is the delay before a failed LISTEN is retried.
	relistenDelay = time.Second
	// stepTimeout limits a step that no caller waits for.
	stepTimeout = 3 * time.Second
	// pressTimeout is how long a press may take to reach the database. After that its guest has received an error and may have left: a request
	// that was written then would be adopted like one of a dead replica, and would open the door.
	pressTimeout = 3 * time.Second
	// clockInterval bounds for how long presses are rejected after the database's clock was set forward.
	clockInterval = time.Second
)

// Service opens doors. Its exported fields are set before Run; Limits, ResultTimeout, Pulse, Alone and Now are optional.
type Service struct {
	DB        *postgres.DB
	Link      Link
	Keys      *seal.Keyring  // opens PINs
	GrantKeys *grantkey.Ring // sign grants
	Log       *slog.Logger
	Limits    *limit.Limiter // nil: presses are not limited

	ResultTimeout time.Duration // how long a subscriber waits; 0: DefaultResultTimeout
	Pulse         time.Duration // how long a lock is driven; 0: protocol.DefaultPulse
	Alone         bool          // no other replica reaches the agents, as with the embedded broker; results are not announced to replicas
	Now           func() time.Time

	asks      postgres.Batcher[postgres.KeyedAsk, postgres.KeyedDoor]
	announces postgres.Batcher[postgres.KeyedAsk, postgres.AnnouncedDoor]
	announced announcements
	claims    postgres.Batcher[postgres.DoorClaim, postgres.GrantedDoors]
	reports   postgres.Batcher[postgres.DoorReport, postgres.DoorReported]
	keyed     limit.Buckets // presses by key and kind of door
	codes     limit.Buckets // codes by reservation and kind of door
	staffed   limit.Lenient // presses by member of staff
	attempts  attempts
	waiters   waiters
	ended     updates
	clock     atomic.Pointer[postgres.Clock] // the database's; nil: not compared yet
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
	return max(s.resultTimeout()-endMargin, driveLimit)
}

// Run ends the requests of replicas that died, and exchanges notifications about ended requests with the other replicas,
// until ctx ends. Requests are accepted without it, but then only their own timers end them.
func (s *Service) Run(ctx context.Context) error {
	defer s.attempts.stop()
	defer s.announced.stop()
	var loops errgroup.Group
	loops.Go(func() error { s.sweep(ctx); return nil })
	loops.Go(func() error { s.followClock(ctx); return nil })
	if !s.Alone {
		loops.Go(func() error { s.notify(ctx); return nil })
		loops.Go(func() error { s.listen(ctx); return nil })
	}
	return loops.Wait()
}

func (s *Service) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	adopted := make(map[uuid.UUID]time.Time)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.adopt(ctx, adopted)
		// Later than the timers of the replica that accepted the request, so that the two do not compete.
		ended, err := postgres.EndOverdueDoors(ctx, s.DB.Pool, protocol.ClaimLimit+endMargin, s.reportLimit()+endMargin, s.now())
		if err != nil {
			if ctx.Err() == nil {
				s.Log.Error("access: overdue requests not ended", "error", err)
			}
			continue
		}
		for _, e := range ended {
			s.Log.Warn("access: overdue request ended", "request", e.ID, "state", e.State)
			s.end(e.ID, e.State)
		}
	}
}

// followClock compares a clock with the database's until ctx ends. It is apart from Now, which tests move.
func (s *Service) followClock(ctx context.Context) {
	tick := time.NewTicker(clockInterval)
	defer tick.Stop()
	clock := postgres.NewClock(time.Now)
	for {
		limited, cancel := context.WithTimeout(ctx, stepTimeout)
		if err := clock.Compare(limited, s.DB.Pool); err == nil { // otherwise it continues to count, and the sweep logs the error
			s.clock.Store(clock)
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pressUntil returns until when a press that arrives now may be written, by the database's clock; zero: no limit.
func (s *Service) pressUntil() time.Time {
	clock := s.clock.Load()
	if clock == nil {
		return time.Time{}
	}
	return clock.Now().Add(pressTimeout)
}

// end records that this replica ended a request, wakes its subscribers and announces it to the other replicas.
func (s *Service) end(id uuid.UUID, state door.State) {
	count(state)
	s.attempts.end(id, state)
	s.waiters.wake(id, state)
	s.Log.Info("access: request ended", "request", id.String(), "state", string(state))
	if !s.Alone {
		s.ended.put(id)
	}
}

// refresh wakes the subscribers of a request that has ended or may have ended at another replica. They read the row.
func (s *Service) refresh(id uuid.UUID) {
	s.attempts.end(id, "")
	s.waiters.wake(id, "")
}

// notify announces ended requests to the other replicas, all that have accumulated in one notification.
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
		// Requests that ended before listening began are found by reading the rows.
		err := postgres.ListenDoors(ctx, s.DB, s.waiters.wakeAll, s.refresh)
		if ctx.Err() != nil {
			return
		}
		s.Log.Error("access: listening to replicas failed", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(relistenDelay):
		}
	}
}

// updates accumulates the ids of ended requests.
type updates struct {
	mu    sync.Mutex
	ids   []uuid.UUID
	ready chan struct{} // has one token while ids is not empty
}

func (u *updates) init() {
	if u.ready == nil {
		u.ready = make(chan struct{}, 1)
	}
}

func (u *updates) put(id uuid.UUID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.init()
	u.ids = append(u.ids, id)
	select {
	case u.ready <- struct{}{}:
	default:
	}
}

// take waits for ids and removes all of them.
func (u *updates) take(ctx context.Context) ([]uuid.UUID, error) {
	u.mu.Lock()
	u.init()
	ready := u.ready
	u.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-ready:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	ids := u.ids
	u.ids = nil
	return ids, nil
}
