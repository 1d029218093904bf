package backoffice

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Quarantines returns the times of a branch's rooms that are not sold because an agent may hold a pass for them.
func (s *Service) Quarantines(ctx context.Context, branch booking.BranchID) ([]postgres.Quarantine, error) {
	return postgres.Quarantines(ctx, s.DB.Pool, branch, s.DB.Now())
}

// ReleaseQuarantine sells the time of a quarantine although an agent may still hold a pass for it. The reason is
// kept as the note of the quarantine. It returns ErrNoQuarantine.
func (s *Service) ReleaseQuarantine(ctx context.Context, branch booking.Branch, id booking.ReservationID, reason, by string) error {
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "quarantine.release", Target: strconv.FormatInt(int64(id), 10)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		return postgres.ReleaseQuarantine(ctx, tx, branch.ID, id, reason, now)
	})
}

// PassAgent is what an agent knows about passes.
type PassAgent = postgres.PassAgent

// PassAgents returns what the agents of a branch know about passes, by user name.
func (s *Service) PassAgents(ctx context.Context, branch booking.BranchID) ([]PassAgent, error) {
	return postgres.PassAgents(ctx, s.DB.Pool, branch)
}
