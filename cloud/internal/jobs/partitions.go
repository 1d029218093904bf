package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// doorRequestTTL is how long door requests are kept.
const doorRequestTTL = 365 * 24 * time.Hour

// keepPartitions creates partitions ahead, drops expired ones, and deletes expired door requests. A table that is locked, for instance
// during a backup, is kept at a later call: partitions exist for weeks ahead.
func (s *Service) keepPartitions(ctx context.Context) error {
	now := s.DB.Now()
	added, dropped, err := s.DB.KeepPartitions(ctx, now)
	if len(added)+len(dropped) > 0 {
		s.Log.InfoContext(ctx, "partitions of growing tables", "added", added, "dropped", dropped)
	}
	_, errRequests := postgres.DeleteDoorRequests(ctx, s.DB.Pool, now.Add(-doorRequestTTL))
	return errors.Join(err, errRequests)
}
