package access

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// orphanAge is the age at which an open request of another replica may be orphaned: asks are repeated more often than that.
const orphanAge = 2 * protocol.RepeatInterval

// adoptInterval is how often a replica repeats the ask of another one's request. It does not know which replicas have died. When all
// requests are late, for instance while thousands of agents move to another broker, each replica sees those of all others as
// orphaned, and more asks would delay the answers further.
const adoptInterval = 2 * time.Second

// adopt repeats the asks of replicas that died. An agent that has driven the doors repeats its results, even if the first
// report was lost with the replica; a further ask does no harm. asked are the times of the last asks by request; adopt updates it.
func (s *Service) adopt(ctx context.Context, asked map[uuid.UUID]time.Time) {
	open, err := postgres.OpenDoors(ctx, s.DB.Pool, orphanAge, s.reportLimit())
	if err != nil {
		if ctx.Err() == nil {
			s.Log.Error("access: open requests not read", "error", err)
		}
		return
	}
	now := time.Now()
	maps.DeleteFunc(asked, func(_ uuid.UUID, at time.Time) bool { return now.Sub(at) >= adoptInterval })
	for _, r := range open {
		if _, ours := s.attempts.find(r.ID, nil); ours {
			continue
		}
		if _, lately := asked[r.ID]; lately {
			continue
		}
		agent, connected, err := postgres.ConnectedAgent(ctx, s.DB.Pool, r.Branch, s.Link.Online(r.Branch))
		if err != nil {
			s.Log.Error("access: agent not found", "branch", r.Branch, "request", r.ID, "error", err)
		} else if connected {
			asked[r.ID] = now
			s.ask(&attempt{row: r, peer: peer(r.Branch, agent)})
		}
	}
}
