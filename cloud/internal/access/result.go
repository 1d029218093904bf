package access

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Result takes what an agent reports of one door. The request ends when its last door has reported; a repeated or late
// report changes nothing.
func (s *Service) Result(ctx context.Context, branch string, r protocol.Result) error {
	id, err := uuid.Parse(r.RequestID)
	if err != nil {
		return fmt.Errorf("access: result: %w", err)
	}
	decided, err := postgres.ReportDoor(ctx, s.DB.Pool, id, branch, r.Device,
		postgres.DoorOutcome{Outcome: string(r.Outcome), Detail: r.Detail, EnergizedMs: r.EnergizedMs})
	if errors.Is(err, postgres.ErrNoDoorRequest) {
		s.Log.Debug("access: report ignored", "branch", branch, "request", id, "device", r.Device)
		return nil
	}
	if err != nil {
		return fmt.Errorf("access: result %s: %w", id, err)
	}
	if r.Outcome != protocol.Opened {
		s.Log.Warn("access: door not opened", "branch", branch, "request", id, "device", r.Device,
			"outcome", string(r.Outcome), "detail", r.Detail)
	}
	if decided != "" {
		s.end(id, decided)
	}
	return nil
}
