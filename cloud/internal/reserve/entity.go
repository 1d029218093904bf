package reserve

import (
	"context"
	"fmt"
	"slices"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// A payment belongs to the legal entity that its order names. Its key set is stored with the payment (see question.keys), so a
// branch may get another entity at any time: each payment is read and refunded with the keys that took it.

// entities returns the codes of all legal entities; the first, empty one is that of the settings.
func (s *Service) entities(ctx context.Context) ([]string, error) {
	codes, err := postgres.LegalEntityCodes(ctx, s.DB.Pool, false)
	if err != nil {
		return nil, fmt.Errorf("legal entities: %w", err)
	}
	return append([]string{""}, codes...), nil
}

// keySets returns the key sets of the legal entities whose books are read, and the codes of those that are retired.
func (s *Service) keySets(ctx context.Context) (sets []toss.KeySet, retired []string, err error) {
	codes, err := s.entities(ctx)
	if err != nil {
		return nil, nil, err
	}
	if retired, err = postgres.LegalEntityCodes(ctx, s.DB.Pool, true); err != nil {
		return nil, nil, fmt.Errorf("retired legal entities: %w", err)
	}
	for _, code := range codes {
		if !slices.Contains(retired, code) {
			sets = append(sets, toss.Widget.Of(code), toss.API.Of(code))
		}
	}
	return sets, retired, nil
}
