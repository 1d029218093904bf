package service

import (
	"context"

	"github.com/yeolda/yeolda/cloud/internal/archive"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// openArchive prepares the archive of the private database, if there is one.
func (s *Service) openArchive(ctx context.Context) error {
	set := s.settings.Archive
	if set.Place == "" {
		return postgres.ForgetWork(ctx, s.db.Pool, postgres.WorkArchive, postgres.WorkBase, postgres.WorkRestoreTest)
	}
	a, err := archive.Open(set.Place, set.Key.Reveal(), set.AccessKey, set.SecretKey.Reveal())
	if err != nil {
		return err
	}
	s.keeper = &archive.Keeper{Archive: a, Server: s.database, DB: s.db, DataDir: s.settings.Database.DataDir, Keep: set.Keep, Log: s.log}
	return nil
}
