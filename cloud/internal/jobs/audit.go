package jobs

import (
	"context"
	"time"
)

// chainEvery is the longest time an entry of the audit log is without its place in the chain.
const chainEvery = time.Second

// linkEvery is the longest time a final row of money, a door or a pass is not linked into the audit log.
const linkEvery = time.Minute

// link links final rows of money, doors and passes into the audit log.
func (s *Service) link(ctx context.Context) {
	if _, err := s.DB.LinkRows(ctx); err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "rows were not linked into the audit log; trying again", "error", err)
	}
}

// chain adds the latest entries of the audit log to the hash chain.
func (s *Service) chain(ctx context.Context) {
	if _, err := s.DB.ChainAudit(ctx); err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "the audit log was not chained; trying again", "error", err)
	}
}
