package jobs

import (
	"context"
	"time"
)

const (
	proofLock = 0x79656f6c_0009
	// proofInterval is the interval at which it is checked whether the proof of the night is due.
	proofInterval = 5 * time.Minute
)

// prove makes the proof of the night. It takes the lock only if one is due: at the start of the service every part that
// leads holds a connection and needs another one, and a small pool would have none left.
func (s *Service) prove(ctx context.Context) {
	due, err := s.Proofs.Due(ctx)
	if err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "it is unknown whether a proof is due; trying again", "error", err)
	}
	if due {
		s.lead(ctx, proofLock, s.Proofs.RunDue)
	}
}
