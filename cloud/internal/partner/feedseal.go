package partner

import (
	"context"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// SealFeeds seals addresses of calendars that a program of the last release wrote in plain text, and deletes their plain
// text once no such program needs it.
func (s *Service) SealFeeds(ctx context.Context) error {
	feeds, err := postgres.UnsealedFeeds(ctx, s.DB.Pool, sweepLimit)
	if err != nil {
		return err
	}
	for _, f := range feeds {
		if err := postgres.SealFeed(ctx, s.DB.Pool, f, s.Keys.Seal(postgres.FeedPurpose, []byte(f.Text))); err != nil {
			return err
		}
	}
	return postgres.ForgetFeedTexts(ctx, s.DB.Pool, s.DB.Now())
}
