package jobs

import (
	"context"
	"time"
)

// chainEvery is the longest time an entry of the audit log is without its place in the chain.
const chainEvery = time.Second

// chain adds the latest entries of the audit log to the hash chain.
func (s *Service) chain(ctx context.Context) {
	if _, err := s.DB.ChainAudit(ctx); err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "the audit log was not chained; trying again", "error", err)
	}
}
