package service

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	canaryInterval = 3 * time.Second
	canaryTimeout  = 2 * time.Second
)

// canary commits a row every few seconds: a database that answers queries may still be unable to write, for instance
// because its disk is full.
type canary struct{ failures atomic.Int32 }

// ok reports whether one of the last two writes was committed: a single failure may be a moment of load.
func (c *canary) ok() bool { return c.failures.Load() < 2 }

// watchWrites runs until ctx is done.
func (s *Service) watchWrites(ctx context.Context) error {
	for {
		before := s.canary.ok()
		if err := s.writeCanary(ctx); err != nil && ctx.Err() == nil {
			s.canary.failures.Add(1)
			if before && !s.canary.ok() {
				s.log.ErrorContext(ctx, "the database takes no writes", "error", err)
			}
		} else if err == nil {
			s.canary.failures.Store(0)
			if !before {
				s.log.InfoContext(ctx, "the database takes writes again")
			}
		}
		if err := wait(ctx, canaryInterval); err != nil {
			return err
		}
	}
}

func (s *Service) writeCanary(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, canaryTimeout)
	defer cancel()
	return postgres.NoteSuccess(ctx, s.db.Pool, postgres.WorkWrite, s.now())
}
