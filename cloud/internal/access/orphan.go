package access

import (
	"context"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// orphanAge is the age at which an open request of another replica may be orphaned: asks are repeated more often than that.
const orphanAge = 2 * protocol.RepeatInterval

// adopt repeats the asks of replicas that died. An agent that has driven the doors repeats its results, even if the first
// report was lost with the replica; a further ask does no harm.
func (s *Service) adopt(ctx context.Context) {
	open, err := postgres.OpenDoors(ctx, s.DB.Pool, orphanAge, s.reportLimit())
	if err != nil {
		if ctx.Err() == nil {
			s.Log.Error("access: open requests not read", "error", err)
		}
		return
	}
	for _, r := range open {
		if _, ours := s.attempts.find(r.ID, nil); ours {
			continue
		}
		agent, connected, err := postgres.ConnectedAgent(ctx, s.DB.Pool, r.Branch, s.Link.Online(r.Branch))
		if err != nil {
			s.Log.Error("access: agent not found", "branch", r.Branch, "request", r.ID, "error", err)
		} else if connected {
			s.ask(&attempt{row: r, peer: peer(r.Branch, agent)})
		}
	}
}
