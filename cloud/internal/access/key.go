package access

import (
	"context"
	"errors"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Key is the reservation of a doorlockKey.
type Key struct {
	Branch      booking.Branch
	Reservation booking.Reservation
	Key         booking.AccessKey
	Online      bool // the active agent of the branch is connected
}

// Lookup returns the reservation of a doorlockKey, at any time, or ErrInvalidKey.
func (s *Service) Lookup(ctx context.Context, doorlockKey string) (Key, error) {
	id, _, err := parseKey(doorlockKey)
	if err != nil {
		return Key{}, err
	}
	r, key, err := postgres.ReservationByKey(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoReservation) {
		return Key{}, ErrInvalidKey
	}
	if err != nil {
		return Key{}, fmt.Errorf("access: look up a key: %w", err)
	}
	branch, err := s.DB.BranchByID(ctx, r.Branch)
	if err != nil {
		return Key{}, fmt.Errorf("access: look up a key: %w", err)
	}
	_, online, err := postgres.ConnectedAgent(ctx, s.DB.Pool, branch.Code, s.Link.Online(branch.Code))
	if err != nil {
		return Key{}, fmt.Errorf("access: look up a key of %s: %w", branch.Code, err)
	}
	return Key{Branch: branch, Reservation: r, Key: key, Online: online}, nil
}
