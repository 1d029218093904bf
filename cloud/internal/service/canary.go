package service

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	canaryInterval = 3 * time.Second
	canaryTimeout  = 2 * time.Second
)

// diskNeeded is the space without which the private database counts as full. PostgreSQL creates files of this size for its
// write-ahead log. The canary's row alone would be written long after no other row finds a place.
const diskNeeded = 16 << 20

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
	if s.database != nil {
		if err := checkDisk(pgserver.FreeSpace(s.databaseDir())); err != nil {
			return err
		}
	} else if err := postgres.CheckDisk(ctx, s.db.Doors); err != nil {
		return err
	}
	return s.db.WriteCanary(ctx, s.now())
}

// databaseDir is a directory on the disk of the private database.
func (s *Service) databaseDir() string { return filepath.Join(s.settings.Database.DataDir, "postgres") }

// checkDisk takes the results of pgserver.FreeSpace. Its error means that the system does not report the space.
func checkDisk(free, _ uint64, err error) error {
	if err == nil && free < diskNeeded {
		return postgres.ErrDiskFull
	}
	return nil
}
