package reserve

import (
	"context"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// A payment belongs to the legal entity that its order names. Its key set is stored with the payment (see question.keys), so a
// branch may get another entity at any time: each payment is read and refunded with the keys that took it.

// entities returns the codes of all legal entities; the first, empty one is that of the settings.
func (s *Service) entities(ctx context.Context) ([]string, error) {
	codes, err := postgres.LegalEntityCodes(ctx, s.DB.Pool)
	if err != nil {
		return nil, fmt.Errorf("legal entities: %w", err)
	}
	return append([]string{""}, codes...), nil
}

// keySets returns the key sets of all legal entities.
func (s *Service) keySets(ctx context.Context) ([]toss.KeySet, error) {
	codes, err := s.entities(ctx)
	if err != nil {
		return nil, err
	}
	sets := make([]toss.KeySet, 0, 2*len(codes))
	for _, code := range codes {
		sets = append(sets, toss.Widget.Of(code), toss.API.Of(code))
	}
	return sets, nil
}
