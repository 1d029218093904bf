package device

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// takeoverTTL is how long an alert about a takeover stays open after the last one.
const takeoverTTL = 10 * time.Minute

// Activate makes a credential the active one of its branch: the cloud asks its agent to open doors from now on, and counts
// its reports only. The others of the branch become standby. It returns postgres.ErrNoAgent.
func (s *Service) Activate(ctx context.Context, username, actor string) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return s.activate(ctx, tx, username, actor) })
	if err != nil {
		return fmt.Errorf("device: activate %s: %w", username, err)
	}
	return nil
}

func (s *Service) activate(ctx context.Context, tx pgx.Tx, username, actor string) error {
	u, err := postgres.ActivateAgent(ctx, tx, username, s.now())
	if err != nil {
		return err
	}
	if u.Report != nil {
		if err := s.putReports(ctx, tx, []postgres.AgentUpdate{u}); err != nil {
			return err
		}
	}
	s.Log.Info("device: agent activated", "branch", u.Agent.Branch, "username", username, "actor", actor)
	if err := postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Branch: u.Agent.Branch, Action: "agent.activate", Target: username}); err != nil {
		return err
	}
	return s.revokeReplaced(ctx, tx, u.Agent, actor)
}

// revokeReplaced revokes the credential of the machine that an activated one replaces: its secret leaves the branch with it.
func (s *Service) revokeReplaced(ctx context.Context, tx pgx.Tx, by protocol.Agent, actor string) error {
	replaced, err := postgres.ReplacedAgent(ctx, tx, by.Username)
	if err != nil || replaced == "" {
		return err
	}
	if err := postgres.RevokeAgent(ctx, tx, replaced); err != nil {
		return err
	}
	s.Log.Info("device: replaced agent revoked", "branch", by.Branch, "username", replaced, "by", by.Username)
	return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Branch: by.Branch, Action: "agent.revoke", Target: replaced})
}

// activateNew activates those of the credentials that become active automatically; see postgres.NewAgents.
func (s *Service) activateNew(ctx context.Context, usernames []string) error {
	if len(usernames) == 0 {
		return nil
	}
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		eligible, err := postgres.NewAgents(ctx, tx, usernames, s.now())
		if err != nil {
			return err
		}
		for _, username := range eligible {
			if err := s.activate(ctx, tx, username, "system"); err != nil {
				return fmt.Errorf("activate %s: %w", username, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("device: activate new agents: %w", err)
	}
	return nil
}

// TakenOver records that another machine connected with a credential while its agent was connected.
func (s *Service) TakenOver(ctx context.Context, agent protocol.Agent) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.TakenOver(ctx, tx, agent, s.now())
	})
	if err != nil {
		return fmt.Errorf("device: record takeover of %s: %w", agent.Username, err)
	}
	return nil
}
