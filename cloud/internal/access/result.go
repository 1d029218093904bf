package access

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
	"github.com/yeolda/yeolda/protocol"
)

// Result processes an agent's report about one door. The request ends with the report of its last door. A repeated or late
// report changes nothing, and only reports of the active agent with the granted nonce count.
func (s *Service) Result(ctx context.Context, from protocol.Peer, r protocol.Result) (err error) {
	id, err := uuid.Parse(r.RequestID)
	if err != nil {
		return fmt.Errorf("access: result of %s: %w", from.Branch, err)
	}
	ctx, span := tracing.Door(ctx, id, "door.result")
	span.Set("door.outcome", string(r.Outcome))
	defer func() { span.End(err) }()
	reported, err := s.reports.Do(ctx, postgres.DoorReport{ID: id, Agent: from.Agent, Nonce: r.Nonce, Device: r.Device,
		Outcome: door.Outcome{Outcome: string(r.Outcome), Detail: r.Detail, EnergizedMs: r.EnergizedMs}, Now: s.now()}, s.report)
	if err != nil {
		return fmt.Errorf("access: result %s: %w", id, err)
	}
	if !reported.Known {
		s.Log.Debug("access: report ignored", "branch", from.Branch, "username", from.Username, "request", id, "device", r.Device)
		return nil
	}
	if r.Outcome != protocol.Opened {
		s.Log.Warn("access: door not opened", "branch", from.Branch, "request", id, "device", r.Device,
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
