package climate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Errors of commands and reads, besides postgres.ErrNoBranch.
var (
	// ErrUnknownOption is returned when no air conditioner has an option with that id.
	ErrUnknownOption = errors.New("climate: unknown air conditioner option")
	// ErrDeviceUnavailable is returned when the branch is offline, did not answer, or reported a failure (docs/specification.md, Devices 3).
	ErrDeviceUnavailable = errors.New("climate: device unavailable")
)

// Link sends messages to agents.
type Link interface {
	// Send sends a message to an agent, without confirmation of delivery.
	Send(to protocol.Peer, m protocol.Message) error
	// Online returns the user names of the branch's connected agents; see protocol.Agent.
	Online(branch string) []string
}

// Service controls air conditioners and reads sensors. DB, Link and Log are required.
type Service struct {
	DB   *postgres.DB
	Link Link
	Log  *slog.Logger

	Now           func() time.Time // nil: time.Now
	AnswerTimeout time.Duration    // how long to wait for an agent; 0: protocol.CommandTTL

	mu      sync.Mutex
	pending map[question]chan protocol.Message
}

// question identifies a request in progress. An answer must come from the agent that was asked, with the same request id.
type question struct {
	agent     protocol.Agent
	requestID string
}

func (s *Service) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// exchange sends a request to the agent of a branch, repeats it, and waits for the answer with the same request id.
func (s *Service) exchange(ctx context.Context, branch string, ask func(requestID string) protocol.Message) (protocol.Message, error) {
	username, connected, err := postgres.ConnectedAgent(ctx, s.DB.Pool, branch, s.Link.Online(branch))
	if err != nil {
		return nil, fmt.Errorf("climate: find the agent of %s: %w", branch, err)
	}
	if !connected {
		return nil, fmt.Errorf("%w: %s is offline", ErrDeviceUnavailable, branch)
	}
	agent := protocol.Agent{Branch: branch, Username: username}
	limit := s.AnswerTimeout
	if limit == 0 {
		limit = protocol.CommandTTL
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	repeat := time.NewTicker(protocol.RepeatInterval)
	defer repeat.Stop()

	id := uuid.NewString()
	answers, leave := s.expect(question{agent, id})
	defer leave()
	m := ask(id)
	for {
		if err := s.Link.Send(protocol.Peer{Agent: agent}, m); err != nil {
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

// Commanded passes an agent's answer to the command that waits for it.
func (s *Service) Commanded(_ context.Context, from protocol.Agent, result protocol.ClimateResult) error {
	s.answer(question{from, result.RequestID}, result)
	return nil
}

// Measured passes an agent's readings to the read that waits for them.
func (s *Service) Measured(_ context.Context, from protocol.Agent, readings protocol.SensorsReadings) error {
	s.answer(question{from, readings.RequestID}, readings)
	return nil
}

// answer passes an answer to the caller of exchange, if it runs on this replica and still waits.
func (s *Service) answer(q question, m protocol.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.pending[q]; ok {
		select {
		case c <- m:
		default: // a second answer, to a repeated request
		}
	}
}
