package access

import (
	"context"
	"errors"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Key is what a doorlockKey stands for, before any door is pressed.
type Key struct {
	Branch      booking.Branch
	Reservation booking.Reservation
	Online      bool // the agent of the branch is known to be there
}

// Lookup returns what a doorlockKey stands for, whatever the time, or ErrInvalidKey.
func (s *Service) Lookup(ctx context.Context, doorlockKey string) (Key, error) {
	id, _, err := parseKey(doorlockKey)
	if err != nil {
		return Key{}, err
	}
	r, err := postgres.ReservationByKey(ctx, s.DB.Pool, id)
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
	return Key{Branch: branch, Reservation: r, Online: s.Link.Online(branch.Code)}, nil
}
