package device

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

const (
	// heldDelay is how long a door may stay open before it counts as held open.
	heldDelay    = 2 * time.Minute
	heldInterval = 15 * time.Second
)

// Service stores the reports of agents. DB and Log are required.
type Service struct {
	DB  *postgres.DB
	Log *slog.Logger

	Now func() time.Time // nil: time.Now
	// Send sends a message to an agent; see access.Link. Set before Run; optional.
	Send func(to protocol.Peer, m protocol.Message) error
	// OfferKeys sends an agent the key list that follows the one it has reported. Optional; see package grantkey.
	OfferKeys func(agent protocol.Agent, next protocol.KeyList)
	// SigningKey returns the key for messages to an agent that uses the key list of an epoch. Optional; see grantkey.Ring.
	SigningKey func(ctx context.Context, epoch uint64) (ed25519.PrivateKey, error)
}

func (s *Service) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Run marks doors that are held open and continues changes of settings and secrets until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	held := time.NewTicker(heldInterval)
	defer held.Stop()
	rekey := time.NewTicker(rekeyInterval)
	defer rekey.Stop()
	settings := time.NewTicker(settingsInterval)
	defer settings.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-settings.C:
			err = errors.Join(s.StepSettings(ctx), s.StepDiagnostics(ctx))
		case <-held.C:
			err = errors.Join(s.markHeld(ctx), postgres.EndTakeovers(ctx, s.DB.Pool, s.now().Add(-takeoverTTL), s.now()),
				postgres.ReopenSettings(ctx, s.DB.Pool, s.now()), postgres.PruneDiagnostics(ctx, s.DB.Pool, s.now()))
		case <-rekey.C:
			err = s.askForSecrets(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Error("device: upkeep failed", "error", err)
		}
	}
}

func (s *Service) markHeld(ctx context.Context) error {
	var held []postgres.HeldDoor
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
		held, err = postgres.MarkHeldDoors(ctx, tx, heldDelay, s.now())
		return err
	})
	if err != nil {
		return fmt.Errorf("device: mark held doors: %w", err)
	}
	for _, d := range held {
		s.Log.Warn("device: door held open", "branch", d.Branch, "device", d.Device)
	}
	return nil
}
