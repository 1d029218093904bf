package access

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
	"github.com/yeolda/yeolda/protocol"
)

// Result takes what an agent reports of one door. The request ends when its last door has reported; a repeated or late
// report changes nothing.
func (s *Service) Result(ctx context.Context, branch string, r protocol.Result) (err error) {
	id, err := uuid.Parse(r.RequestID)
	if err != nil {
		return fmt.Errorf("access: result: %w", err)
	}
	ctx, span := tracing.Door(ctx, id, "door.result")
	span.Set("door.outcome", string(r.Outcome))
	defer func() { span.End(err) }()
	reported, err := s.reports.Do(ctx, postgres.DoorReport{ID: id, Branch: branch, Device: r.Device,
		Outcome: postgres.DoorOutcome{Outcome: string(r.Outcome), Detail: r.Detail, EnergizedMs: r.EnergizedMs}}, s.report)
	if err != nil {
		return fmt.Errorf("access: result %s: %w", id, err)
	}
	if !reported.Known {
		s.Log.Debug("access: report ignored", "branch", branch, "request", id, "device", r.Device)
		return nil
	}
	if r.Outcome != protocol.Opened {
		s.Log.Warn("access: door not opened", "branch", branch, "request", id, "device", r.Device,
			"outcome", string(r.Outcome), "detail", r.Detail)
	}
	if reported.Decided != "" {
		s.end(id, reported.Decided)
	}
	return nil
}

func (s *Service) report(ctx context.Context, reports []postgres.DoorReport) ([]postgres.DoorReported, error) {
	return postgres.ReportDoors(ctx, s.DB.Doors, reports)
}
