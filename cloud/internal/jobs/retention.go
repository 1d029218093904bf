package jobs

import (
	"context"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	retentionLock  = 0x79656f6c_0004
	retentionEvery = time.Hour
	retentionBatch = 1000
)

// forget takes away names and contacts whose time is over.
func (s *Service) forget(ctx context.Context) {
	s.lead(ctx, retentionLock, func(ctx context.Context) error {
		for {
			n, err := postgres.Anonymise(ctx, s.DB.Pool, s.Retention, s.Queue.NoVariables(), s.DB.Now(), retentionBatch)
			if err != nil {
				return err
			}
			if n > 0 {
				err := postgres.AppendAudit(ctx, s.DB.Pool, postgres.AuditEntry{Actor: "system", Action: "personal.anonymise", Detail: map[string]any{"reservations": n}})
				if err != nil {
					return err
				}
			}
			if n < retentionBatch {
				return nil
			}
		}
	})
}
