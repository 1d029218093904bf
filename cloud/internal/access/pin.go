package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// PIN is the PIN of a guest's pass.
type PIN struct {
	Digits      string
	From, Until time.Time // the window of the key
	Doors       []string  // front, room_<n>: those with an agent keypad
	Ready       bool      // the branch's agent has it, so that it works without the uplink
}

// PIN returns the PIN of an owner's key. It is nil until the guest can no longer cancel, after the end, and where no door has
// an agent keypad (docs/specification.md, Passes 5). A companion receives none: revoking the companion's key must end what it
// opens.
func (s *Service) PIN(ctx context.Context, key Key) (*PIN, error) {
	r := key.Reservation
	if r.CanCancel(s.now()) == nil || key.Key.Kind != booking.OwnerKey {
		return nil, nil
	}
	doors := key.Branch.PINDoors(booking.Room{No: r.RoomNo})
	pass, err := postgres.PassOf(ctx, s.DB.Pool, r.ID)
	if errors.Is(err, postgres.ErrNoPass) || err == nil && (!s.now().Before(pass.NotAfter) || doors == nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("access: pass of reservation %d: %w", r.ID, err)
	}
	plain, err := s.Keys.Open(postgres.PassPINPurpose, pass.PIN)
	if err != nil {
		return nil, fmt.Errorf("access: PIN of pass %s: %w", pass.ID, err)
	}
	return &PIN{Digits: string(plain), From: pass.NotBefore, Until: pass.NotAfter, Doors: doors, Ready: pass.Ready}, nil
}
