package jobs

import (
	"context"
	"time"
)

// chainEvery is how long an entry of the audit log may be without its place in the chain.
const chainEvery = time.Second

// chain gives the latest entries of the audit log their places.
func (s *Service) chain(ctx context.Context) {
	if _, err := s.DB.ChainAudit(ctx); err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "audit log not chained, to be tried again", "error", err)
	}
}
