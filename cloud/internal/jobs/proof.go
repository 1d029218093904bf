package jobs

import (
	"context"
	"time"
)

const (
	proofLock = 0x79656f6c_0009
	// proofInterval is the interval at which it is checked whether the proof of the night or the head of the audit log is due.
	proofInterval = 5 * time.Minute
)

// prove makes the proof of the night, and sends the head of the audit log every hour.
func (s *Service) prove(ctx context.Context) {
	s.leadIfDue(ctx, proofLock, "a proof", s.Proofs.Due, s.Proofs.RunDue)
	s.leadIfDue(ctx, proofLock, "the head of the audit log", s.Proofs.HeadDue, s.Proofs.SendHead)
}

// leadIfDue takes the lock only if work is due: at the start of the service every part that leads holds a connection and needs
// another one, and a small pool would have none left.
func (s *Service) leadIfDue(ctx context.Context, key int64, what string, due func(context.Context) (bool, error), do func(context.Context) error) {
	now, err := due(ctx)
	if err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "it is unknown whether "+what+" is due; trying again", "error", err)
	}
	if now && err == nil {
		s.lead(ctx, key, do)
	}
}
