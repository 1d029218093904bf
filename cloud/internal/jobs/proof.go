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

// prove makes the proof of the night.
func (s *Service) prove(ctx context.Context) { s.lead(ctx, proofLock, s.Proofs.RunDue) }
