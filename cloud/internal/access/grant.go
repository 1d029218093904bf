package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
	"github.com/yeolda/yeolda/protocol"
)

// Claim answers an agent that wants to drive the doors of a request: with a signed grant if it is pending and young and
// its reservation holds at this moment, with the same grant again if this nonce has it already, else with a deny. A
// request whose claim is denied while it is pending has failed.
func (s *Service) Claim(ctx context.Context, branch string, claim protocol.Claim) (err error) {
	// An answer that takes longer is worth nothing to the agent.
	ctx, cancel := context.WithTimeout(ctx, protocol.GrantAge)
	defer cancel()
	id, err := uuid.Parse(claim.RequestID)
	if err != nil {
		return fmt.Errorf("access: claim: %w", err)
	}
	ctx, span := tracing.Door(ctx, id, "door.claim")
	defer func() { span.End(err) }()
	came := time.Now()
	s.attempts.claim(id, came)
	doors, err := s.claims.Do(ctx, postgres.DoorClaim{ID: id, Branch: branch, Nonce: claim.Nonce, Now: s.now()}, s.grant)
	if err != nil {
		return fmt.Errorf("access: claim %s: %w", id, err)
	}
	if doors == nil {
		return s.deny(ctx, branch, id, claim)
	}
	stageSeconds.WithLabelValues("grant").Observe(time.Since(came).Seconds())
	pulse := s.Pulse
	if pulse == 0 {
		pulse = protocol.DefaultPulse
	}
	grant := protocol.Grant{Branch: branch, RequestID: claim.RequestID, Nonce: claim.Nonce, Doors: doors,
		PulseMs: uint32(pulse.Milliseconds())}
	_, granting := tracing.Door(ctx, id, "door.grant")
	err = s.Link.Send(branch, grant.Sign(s.GrantKey))
	granting.End(err)
	return err
}

func (s *Service) grant(ctx context.Context, claims []postgres.DoorClaim) ([][]string, error) {
	return postgres.GrantDoors(ctx, s.DB.Doors, claims, protocol.ClaimLimit, driveLimit)
}

func (s *Service) deny(ctx context.Context, branch string, id uuid.UUID, claim protocol.Claim) error {
	const reason = "too late, not the first, or the reservation does not hold any more"
	deniedTotal.Inc()
	s.Log.Warn("access: claim denied", "branch", branch, "request", id)
	err := s.Link.Send(branch, protocol.Deny{RequestID: claim.RequestID, Nonce: claim.Nonce, Reason: reason})
	if err != nil {
		return err
	}
	ended, err := postgres.FailDoor(ctx, s.DB.Doors, id, branch, "claim denied")
	if err != nil {
		return fmt.Errorf("access: claim %s: %w", id, err)
	}
	if ended {
		s.end(id, postgres.DoorFailed)
	}
	return nil
}
