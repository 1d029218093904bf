package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
	"github.com/yeolda/yeolda/protocol"
)

// Claim answers an agent's claim: with a signed grant if the request is pending and young, its reservation is valid at this
// moment and the agent is the active one of its branch; with the same grant again if the nonce has it already; otherwise
// with a deny, or not at all if the request is unknown. If the claim of the active agent is denied while the request is
// pending, the request has failed. A claim for an announced press is kept for that press.
func (s *Service) Claim(ctx context.Context, from protocol.Peer, claim protocol.Claim) (err error) {
	// The agent cannot use a grant that takes longer.
	ctx, cancel := context.WithTimeout(ctx, protocol.GrantAge)
	defer cancel()
	id, err := uuid.Parse(claim.RequestID)
	if err != nil {
		return fmt.Errorf("access: claim of %s: %w", from.Branch, err)
	}
	ctx, span := tracing.Door(ctx, id, "door.claim")
	defer func() { span.End(err) }()
	came := time.Now()
	if s.announced.claim(id, from, claim.Nonce, came) {
		return nil // the press decides
	}
	s.attempts.claim(id, came)
	granted, err := s.claims.Do(ctx, postgres.DoorClaim{ID: id, Agent: from.Agent, Nonce: claim.Nonce, Now: s.now()}, s.grant)
	if err != nil {
		return fmt.Errorf("access: claim %s: %w", id, err)
	}
	if granted.Doors == nil {
		return s.deny(ctx, from, id, claim)
	}
	stageSeconds.WithLabelValues("grant").Observe(time.Since(came).Seconds())
	return s.sendGrant(ctx, from, id, claim.Nonce, granted)
}

// sendGrant signs a grant and sends it to the session that claimed.
func (s *Service) sendGrant(ctx context.Context, to protocol.Peer, id uuid.UUID, nonce string, granted postgres.GrantedDoors) error {
	pulse := s.Pulse
	if pulse == 0 {
		pulse = protocol.DefaultPulse
	}
	grant := protocol.Grant{Branch: to.Branch, RequestID: id.String(), Nonce: nonce, Doors: granted.Doors,
		PulseMs: uint32(pulse.Milliseconds())}
	key, err := s.GrantKeys.Signing(ctx, granted.KeyEpoch)
	if err != nil { // the agent applies the next key list, and its repeated claim gets the grant
		return fmt.Errorf("access: sign grant %s: %w", id, err)
	}
	_, granting := tracing.Door(ctx, id, "door.grant")
	err = s.Link.Send(to, grant.Sign(key))
	granting.End(err)
	if err != nil {
		return fmt.Errorf("access: grant %s: %w", id, err)
	}
	return nil
}

func (s *Service) grant(ctx context.Context, claims []postgres.DoorClaim) ([]postgres.GrantedDoors, error) {
	return postgres.GrantDoors(ctx, s.DB.Doors, claims, protocol.ClaimLimit, driveLimit)
}

func (s *Service) deny(ctx context.Context, from protocol.Peer, id uuid.UUID, claim protocol.Claim) error {
	const reason = "too late, not the first, not the active agent, or the reservation is no longer valid"
	known, ended, err := postgres.DenyDoor(ctx, s.DB.Doors, id, from.Agent, s.now())
	if err != nil {
		return fmt.Errorf("access: deny claim of %s: %w", id, err)
	}
	if !known {
		// Another replica may have announced the press and may hold another copy of this claim: a deny would spend its nonce.
		s.Log.Debug("access: claim for an unknown request", "branch", from.Branch, "username", from.Username, "request", id)
		return nil
	}
	deniedTotal.Inc()
	s.Log.Warn("access: claim denied", "branch", from.Branch, "username", from.Username, "request", id)
	if err := s.Link.Send(from, protocol.Deny{RequestID: claim.RequestID, Nonce: claim.Nonce, Reason: reason}); err != nil {
		return fmt.Errorf("access: deny claim of %s: %w", id, err)
	}
	if ended {
		s.end(id, door.Failed)
	}
	return nil
}
