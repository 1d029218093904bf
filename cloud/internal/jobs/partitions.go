package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// requestTTL is how long door requests and commands to air conditioners are kept.
const requestTTL = 365 * 24 * time.Hour

const (
	// partitionTries is how often a call tries to keep partitions. A query that reads a table makes an attempt fail, because the
	// attempt must not make others wait for longer.
	partitionTries = 10
	partitionPause = time.Second
)

// keepPartitions creates partitions ahead, drops expired ones, and deletes expired rows of tables without partitions. A table that is
// locked for long, for instance during a backup, is kept at a later call: partitions exist for weeks ahead.
func (s *Service) keepPartitions(ctx context.Context) error {
	now := s.DB.Now()
	var err error
	for try := range partitionTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(partitionPause):
			}
		}
		var added, dropped []string
		added, dropped, err = s.DB.KeepPartitions(ctx, now)
		if len(added)+len(dropped) > 0 {
			s.Log.InfoContext(ctx, "partitions of growing tables changed", "added", added, "dropped", dropped)
		}
		if err == nil {
			break
		}
	}
	if steady, errClock := postgres.ClockSteady(ctx, s.DB.Pool, now); !steady {
		return errors.Join(err, errClock)
	}
	_, errRequests := postgres.DeleteDoorRequests(ctx, s.DB.Pool, now.Add(-requestTTL))
	_, errCommands := postgres.DeleteCommands(ctx, s.DB.Pool, now.Add(-requestTTL))
	return errors.Join(err, errRequests, errCommands)
}
