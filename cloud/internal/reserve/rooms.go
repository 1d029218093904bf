package reserve

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// SwitchRoom enables or disables a room. A room with reservations cannot be disabled: *RoomBusy lists them. A concurrent
// hold waits for the room's lock, so a disabled room never has a hold.
//
// Errors: account.ErrBranchForbidden, booking.ErrNoBranch, ErrNoRoom, *RoomBusy.
func (s *Service) SwitchRoom(ctx context.Context, code string, no int, enabled bool, by account.Principal) error {
	if !by.Reaches(code) {
		return account.ErrBranchForbidden
	}
	branch, room, err := s.room(ctx, code, no)
	if err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, room.ID); err != nil {
			return err
		}
		if enabled {
			if err := s.proveLock(ctx, tx, branch, room); err != nil {
				return err
			}
		} else {
			conflicts, err := postgres.Blocking(ctx, tx, room.ID, now)
			if err != nil {
				return err
			}
			if len(conflicts) > 0 {
				return &RoomBusy{branch.Zone, conflicts}
			}
		}
		if err := postgres.SetRoomEnabled(ctx, tx, room.ID, enabled); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: by.Actor(), BranchID: &branch.ID, Action: "room.switch", Target: fmt.Sprintf("%s/%d", code, no),
			Detail: map[string]any{"enabled": enabled},
		})
	})
}

// LockUnproven is returned when an administrator enables a room whose door no guest could open.
type LockUnproven struct {
	NoDoor bool // the agent has not reported the door
	NoPIN  bool // the PIN of the door is unknown
}

func (e *LockUnproven) Error() string { return "reserve: the lock of the room is unproven" }

// proveLock returns *LockUnproven if the agent has not reported the door of the room or its PIN is unknown. A proven lock is
// not checked again.
func (s *Service) proveLock(ctx context.Context, tx pgx.Tx, branch booking.Branch, room booking.Room) error {
	lock, err := postgres.RoomLock(ctx, tx, room.ID)
	if err != nil || lock != booking.LockUnproven {
		return err
	}
	proofs, err := postgres.DoorProofs(ctx, tx, branch.ID)
	if err != nil {
		return err
	}
	if proof := proofs[room.Device()]; !proof.Reported || !proof.PIN {
		return &LockUnproven{NoDoor: !proof.Reported, NoPIN: !proof.PIN}
	}
	return postgres.SetRoomLock(ctx, tx, room.ID, booking.LockFitted)
}
