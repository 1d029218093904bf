package climate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Errors of commands and reads; postgres.ErrNoBranch comes through as it is.
var (
	// ErrUnknownOption says that no air conditioner has an option of that id.
	ErrUnknownOption = errors.New("climate: unknown air conditioner option")
	// ErrDeviceUnavailable says that the branch is offline, did not answer, or could not do it (decisions.md 9).
	ErrDeviceUnavailable = errors.New("climate: device unavailable")
)

// Link carries messages to the agents.
type Link interface {
	// Send hands a message to the agent of a branch. Whether it arrives is not known.
	Send(branch string, m protocol.Message) error
	// Online reports whether the agent of a branch is known to be there.
	Online(branch string) bool
}

const (
	// heldAfter is how long a door may stand open before it counts as held.
	heldAfter = 2 * time.Minute
	heldEvery = 15 * time.Second
	// keepReadings and keepDoors are how long readings, and events and requests of doors, stay in the database.
	keepReadings = 90 * 24 * time.Hour
	keepDoors    = 365 * 24 * time.Hour
	pruneEvery   = time.Hour
)

// Service talks to the devices of branches. DB, Link and Log must be set.
type Service struct {
	DB   *postgres.DB
	Link Link
	Log  *slog.Logger

	Now           func() time.Time // nil: time.Now
	AnswerTimeout time.Duration    // how long an agent may take; 0: protocol.CommandLife

	mu      sync.Mutex
	pending map[question]chan protocol.Message
}

// question is what an answer must match: the branch of its topic, and the id that it repeats.
type question struct{ branch, requestID string }

func (s *Service) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Run looks for doors that are held open and deletes what has become old, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	held := time.NewTicker(heldEvery)
	defer held.Stop()
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-held.C:
			err = s.markHeld(ctx)
		case <-prune.C:
			_, err = postgres.Prune(ctx, s.DB.Pool, s.now().Add(-keepReadings), s.now().Add(-keepDoors))
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Error("climate: upkeep failed", "error", err)
		}
	}
}

func (s *Service) markHeld(ctx context.Context) error {
	var held []postgres.HeldDoor
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
		held, err = postgres.MarkHeldDoors(ctx, tx, heldAfter, s.now())
		return err
	})
	for _, d := range held {
		s.Log.Warn("climate: door held open", "branch", d.Branch, "device", d.Device)
	}
	return err
}

// exchange asks the agent of a branch and waits for its answer, which carries the same request id.
func (s *Service) exchange(ctx context.Context, branch string, ask func(requestID string) protocol.Message) (protocol.Message, error) {
	if !s.Link.Online(branch) {
		return nil, fmt.Errorf("%w: %s is offline", ErrDeviceUnavailable, branch)
	}
	limit := s.AnswerTimeout
	if limit == 0 {
		limit = protocol.CommandLife
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	repeat := time.NewTicker(protocol.RepeatInterval)
	defer repeat.Stop()

	id := uuid.NewString()
	answers, leave := s.expect(question{branch, id})
	defer leave()
	m := ask(id)
	for {
		if err := s.Link.Send(branch, m); err != nil {
			return nil, fmt.Errorf("climate: %s: %w", branch, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, fmt.Errorf("%w: %s did not answer within %v", ErrDeviceUnavailable, branch, limit)
		case answer := <-answers:
			return answer, nil
		case <-repeat.C:
		}
	}
}

func (s *Service) expect(q question) (answers <-chan protocol.Message, leave func()) {
	c := make(chan protocol.Message, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = make(map[question]chan protocol.Message)
	}
	s.pending[q] = c
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pending, q)
	}
}

// answer hands an answer to who asked, if they are here and still wait.
func (s *Service) answer(q question, m protocol.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.pending[q]; ok {
		select {
		case c <- m:
		default: // an answer to a repeated question
		}
	}
}
