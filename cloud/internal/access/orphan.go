package access

import (
	"context"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// orphanAge is when a request that this replica does not ask for may have lost the one that does: its own asks are
// repeated more often than that.
const orphanAge = 2 * protocol.RepeatInterval

// adopt asks for the requests of replicas that died. An agent that has driven its doors repeats what came of it, even if
// the first report went down with a replica; to an agent that was asked already another ask is nothing new.
func (s *Service) adopt(ctx context.Context) {
	open, err := postgres.OpenDoors(ctx, s.DB.Pool, orphanAge, s.reportLimit())
	if err != nil {
		if ctx.Err() == nil {
			s.Log.Error("access: open requests not read", "error", err)
		}
		return
	}
	for _, r := range open {
		if _, ours := s.attempts.find(r.ID, nil); !ours {
			s.ask(&attempt{row: r})
		}
	}
}
