package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// ErrNotStopped is returned if the last rollout was not stopped, or if it has no agent left.
var ErrNotStopped = errors.New("rollout: no rollout was stopped that can be resumed")

// Resume continues the last rollout at the wave at which it was stopped. Agents that failed are left out (docs/specification.md, Agent
// protocol 32). It returns ErrNotStopped, ErrOpen while agents still return to the previous version, and ErrNoPackage.
func (s *Service) Resume(ctx context.Context, actor string) error {
	last, err := s.Last(ctx)
	switch {
	case errors.Is(err, ErrNone):
		return ErrNotStopped
	case err != nil:
		return fmt.Errorf("rollout: resume: %w", err)
	}
	packages := last.Packages
	if last.Kind == postgres.RolloutPackage && last.State == stopped {
		if packages, err = s.packages(ctx, last.Version); err != nil {
			return err
		}
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockLastRollout(ctx, tx)
		switch {
		case err != nil:
			return err
		case r.State == running || r.State == goingBack:
			return ErrOpen
		case r.ID != last.ID || r.State != stopped || !resume(&r, now):
			return ErrNotStopped
		}
		r.Packages = packages
		if err := postgres.ReopenRollout(ctx, tx, r); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Action: "agent.rollout-resume", Target: r.Version,
			Detail: map[string]any{"wave": r.Wave, "skipped": count(r, skipped)}})
	})
	if err != nil {
		return fmt.Errorf("rollout: resume: %w", err)
	}
	return nil
}

// resume returns a stopped rollout to its wave. An agent that failed is skipped, and the next one of the later waves takes its place: the
// first wave keeps its size, so a version that is bad for all agents stops there again. It reports false if no agent is left.
func resume(r *postgres.Rollout, now time.Time) bool {
	for i := range r.Members {
		m := &r.Members[i]
		switch {
		case m.State == skipped, m.State == waiting:
		case m.Failure != "":
			m.State, m.Detail = skipped, m.Failure
			moveUp(r, m.Wave)
		case m.Version == r.Version: // it could not return
			m.State, m.Detail, m.Back, m.AskedAt, m.Since = healthy, "has the version already", 0, now, time.Time{}
		default:
			m.State, m.Detail, m.Goal, m.Back = waiting, "", 0, 0
			m.BeforeVersion, m.BeforeFailed, m.BeforeFailure, m.AskedAt, m.Since = "", 0, "", time.Time{}, time.Time{}
		}
	}
	r.State, r.Reason, r.EndedAt = running, "", time.Time{}
	return count(*r, waiting) > 0
}

// skipOffline skips the agents that wait and are not connected, and returns their names. Those of the begun waves are replaced.
func skipOffline(r *postgres.Rollout) (names []string) {
	for i := range r.Members { // in the order of the waves: one that moves up is looked at afterwards
		m := &r.Members[i]
		if m.State != waiting || m.Online {
			continue
		}
		m.State, m.Detail = skipped, "not connected"
		names = append(names, m.Username)
		if m.Wave <= r.Wave {
			moveUp(r, m.Wave)
		}
	}
	return names
}

// moveUp moves an agent of the next wave that has one to an earlier wave, a connected one first.
func moveUp(r *postgres.Rollout, wave int) {
	var next *postgres.RolloutMember
	for i := range r.Members { // in the order of the waves
		m := &r.Members[i]
		if m.State != waiting || m.Wave <= r.Wave {
			continue
		}
		if next == nil || m.Wave == next.Wave && m.Online && !next.Online {
			next = m
		}
	}
	if next != nil {
		next.Wave = wave
	}
}

// count returns the number of agents in a state.
func count(r postgres.Rollout, state string) (n int) {
	for _, m := range r.Members {
		if m.State == state {
			n++
		}
	}
	return n
}
