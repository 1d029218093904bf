package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	retentionLock  = 0x79656f6c_0004
	retentionEvery = time.Hour
	retentionBatch = 1000
)

// retain ends the retention of rows and of personal data.
func (s *Service) retain(ctx context.Context) {
	s.lead(ctx, retentionLock, func(ctx context.Context) error {
		return errors.Join(s.keepPartitions(ctx), s.forget(ctx))
	})
}

// forget erases names and contacts at the end of their retention, and those that a restored backup brought back. It deletes
// the keys of order ids and the photos of cleaned rooms that are no longer needed. Unless the clock is steady, only the persons of a restored
// backup are erased.
func (s *Service) forget(ctx context.Context) error {
	if err := s.Reserve.KeepOrderKeys(ctx); err != nil {
		return err
	}
	if err := s.Office.EraseAgain(ctx); err != nil {
		return err
	}
	now := s.DB.Now()
	if steady, err := postgres.ClockSteady(ctx, s.DB.Pool, now); !steady {
		return err
	}
	if err := postgres.DeleteCleaningPhotos(ctx, s.DB.Pool, now); err != nil {
		return err
	}
	for {
		var n int64
		err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
			n, err = postgres.Anonymise(ctx, tx, s.Retention, s.Queue.NoVariables(), now, retentionBatch)
			if err != nil || n == 0 {
				return err
			}
			return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: "system", Action: "personal.anonymise", Detail: map[string]any{"reservations": n}})
		})
		if err != nil || n < retentionBatch {
			return err
		}
	}
}
