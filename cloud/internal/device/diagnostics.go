package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// ErrNoDiagnostics is returned for an agent whose version is too old; see package postgres.
var ErrNoDiagnostics = postgres.ErrNoDiagnostics

// Diagnostics is what is known of the diagnostics of an agent.
type Diagnostics = postgres.DiagnosticsState

// OpenDiagnostics has an agent send its log for ten minutes from now on, and the report of its doctor if doctor is set. An open window
// is extended. An agent that is not connected begins as soon as it is. It returns postgres.ErrNoAgent and ErrNoDiagnostics.
func (s *Service) OpenDiagnostics(ctx context.Context, username string, doctor bool, actor string) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		branch, err := postgres.BranchOfAgent(ctx, tx, username)
		if err != nil {
			return err
		}
		window := postgres.Diagnostics{Request: protocol.NewNonce(), OpenedBy: actor, OpenedAt: now, EndsAt: now.Add(protocol.DiagnosticsTime)}
		if err := postgres.OpenDiagnostics(ctx, tx, username, window, doctor); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: actor, Branch: branch, Action: "agent.diagnostics", Target: username, Detail: map[string]any{"doctor": doctor},
		})
	})
	if err != nil {
		return fmt.Errorf("device: open diagnostics of %s: %w", username, err)
	}
	if err := s.StepDiagnostics(ctx); err != nil {
		s.Log.Warn("device: diagnostics are sent later", "error", err)
	}
	return nil
}

// CloseDiagnostics closes the window of an agent before its end: what still arrives is discarded. Without an open window it does nothing. It
// returns postgres.ErrNoAgent.
func (s *Service) CloseDiagnostics(ctx context.Context, username, actor string) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		branch, err := postgres.BranchOfAgent(ctx, tx, username)
		if err != nil {
			return err
		}
		closed, err := postgres.CloseDiagnostics(ctx, tx, username, protocol.NewNonce(), now)
		if err != nil || !closed {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Branch: branch, Action: "agent.diagnostics-close", Target: username})
	})
	if err != nil {
		return fmt.Errorf("device: close diagnostics of %s: %w", username, err)
	}
	if err := s.StepDiagnostics(ctx); err != nil {
		s.Log.Warn("device: diagnostics are closed later", "error", err)
	}
	return nil
}

// StepDiagnostics sends the requests that agents have not received. Several replicas may send one: an agent accepts it once.
func (s *Service) StepDiagnostics(ctx context.Context) error {
	if s.Send == nil || s.SigningKey == nil {
		return nil
	}
	now := s.now()
	waiting, err := postgres.DiagnosticsToSend(ctx, s.DB.Pool, now)
	if err != nil {
		return fmt.Errorf("device: diagnostics: %w", err)
	}
	var failures []error // one agent that cannot be reached does not keep the others waiting
	for _, w := range waiting {
		key, err := s.SigningKey(ctx, w.KeyEpoch)
		if err == nil {
			m := protocol.Diagnostics{Nonce: w.Nonce, Request: w.Request}
			if !w.Closed {
				m.Doctor, m.Seconds = w.Doctor, secondsUntil(w.EndsAt, now)
			}
			err = s.Send(protocol.Peer{Agent: w.Agent}, m.Sign(key, w.Agent))
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("device: send diagnostics to %s: %w", w.Agent.Username, err))
		}
	}
	return errors.Join(failures...)
}

// secondsUntil returns the length of a window that is open, in whole seconds of at least 1.
func secondsUntil(end, now time.Time) uint32 {
	return uint32(min(max(end.Sub(now), time.Second), protocol.DiagnosticsTime) / time.Second)
}

// DiagnosticsLog stores a part of the log of an agent. Without an open window, or beyond the budget of one, it is discarded.
func (s *Service) DiagnosticsLog(ctx context.Context, from protocol.Agent, m protocol.DiagnosticsLog) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		stored, err := postgres.InsertAgentLog(ctx, tx, from.Username, m, now)
		if err == nil && !stored {
			s.Log.Debug("device: log of an agent discarded", "branch", from.Branch, "username", from.Username)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("device: store the log of %s: %w", from.Username, err)
	}
	return nil
}

// DiagnosticsReport stores the report of the doctor of an agent, unless it was not asked for.
func (s *Service) DiagnosticsReport(ctx context.Context, from protocol.Agent, m protocol.DiagnosticsReport) error {
	stored, err := postgres.PutDoctorReport(ctx, s.DB.Pool, from.Username, m, s.now())
	if err != nil {
		return fmt.Errorf("device: store the report of %s: %w", from.Username, err)
	}
	if !stored {
		s.Log.Debug("device: report of an agent discarded", "branch", from.Branch, "username", from.Username)
	}
	return nil
}

// ShowDiagnostics returns the diagnostics of an agent, with the parts of its log behind the one with the id after. It returns
// postgres.ErrNoAgent.
func (s *Service) ShowDiagnostics(ctx context.Context, username string, after int64) (Diagnostics, error) {
	return postgres.DiagnosticsOf(ctx, s.DB.Pool, username, after, s.now())
}
