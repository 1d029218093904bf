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

// rekeyInterval is how often an agent is asked for new secrets until it has answered.
const rekeyInterval = 2 * time.Second

// RotateCredential replaces the secrets of a credential by new ones that its agent makes, as soon as the agent is connected.
// The old ones are worthless from the moment the new ones are stored. It returns postgres.ErrNoAgent.
func (s *Service) RotateCredential(ctx context.Context, username, actor string) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		branch, err := postgres.RotateAgent(ctx, tx, username, protocol.NewNonce())
		if err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Branch: branch, Action: "agent.rotate", Target: username})
	})
	if err != nil {
		return fmt.Errorf("device: rotate the credential %s: %w", username, err)
	}
	return nil
}

// askForSecrets asks the connected agents whose rotation is open.
func (s *Service) askForSecrets(ctx context.Context) error {
	if s.Send == nil {
		return nil
	}
	open, err := postgres.OpenRotations(ctx, s.DB.Pool)
	if err != nil {
		return fmt.Errorf("device: find open rotations: %w", err)
	}
	for _, r := range open {
		if err := s.Send(protocol.Peer{Agent: r.Agent}, protocol.Rekey{Rotation: r.ID}); err != nil {
			return fmt.Errorf("device: rotate the credential %s: %w", r.Agent.Username, err)
		}
	}
	return nil
}

// Rekeyed stores the new secrets of an agent's credential. An answer to a rotation that is not open is ignored: it is a
// repeated one.
func (s *Service) Rekeyed(ctx context.Context, agent protocol.Agent, m protocol.Rekeyed) error {
	key, hash, err := m.Secrets()
	if err != nil {
		return err
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		stored, err := postgres.PutAgentSecrets(ctx, tx, agent, m.Rotation, key, hash, now)
		if err != nil || !stored {
			return err
		}
		s.Log.Info("device: credential rotated", "branch", agent.Branch, "username", agent.Username)
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: "system", Branch: agent.Branch, Action: "agent.rotated", Target: agent.Username})
	})
	if err != nil {
		return fmt.Errorf("device: store the new secrets of %s: %w", agent.Username, err)
	}
	return nil
}
