package device

import (
	"context"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// sendBrokers sends an agent the list of brokers that it does not use yet. The next status that does not name it has it sent again,
// so a failure costs a minute.
func (s *Service) sendBrokers(ctx context.Context, a postgres.SeenAgent) {
	if s.Send == nil || s.SigningKey == nil {
		return
	}
	key, err := s.SigningKey(ctx, a.KeyEpoch)
	if err == nil {
		err = s.Send(protocol.Peer{Agent: a.Agent}, a.Brokers.Sign(key))
	}
	if err != nil {
		s.Log.WarnContext(ctx, "device: the list of brokers was not sent", "branch", a.Agent.Branch, "username", a.Agent.Username, "error", err)
	}
}
