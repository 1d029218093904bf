package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// MoveRequest changes room and time of a confirmed reservation; its amount stays.
type MoveRequest struct {
	ID      booking.ReservationID
	Room    int
	Times   func(zone *time.Location) (booking.Interval, error)
	Reason  string
	By      string                              // login id
	Scope   func(branch booking.BranchID) error // nil error: the administrator may act there
	Audit   audit.Entry                         // actor, action and detail
	Version int                                 // what the administrator has seen; 0: does not say
}

// Stale says that a reservation was changed after the administrator looked at it.
type Stale struct{ Now booking.Reservation }

func (e *Stale) Error() string { return "reserve: the reservation has changed in between" }

// Move moves a reservation, wholly or not at all: its old time is never lost, and it never has both.
//
// Errors: ErrNotFound, Scope's, ErrNotMovable, ErrNoRoom, ErrRoomDisabled, ErrTaken, ErrHeld, *Stale, those of booking about times.
func (s *Service) Move(ctx context.Context, req MoveRequest) error {
	found, err := postgres.Reservation(ctx, s.DB.Pool, req.ID)
	if errors.Is(err, postgres.ErrNoReservation) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	if err := req.Scope(found.Branch); err != nil {
		return err
	}
	branch, err := s.DB.BranchByID(ctx, found.Branch)
	if err != nil {
		return err
	}
	times, err := req.Times(branch.Zone)
	if err != nil {
		return err
	}
	room, ok := branch.Room(req.Room)
	if !ok {
		return ErrNoRoom
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, found.Room, room.ID); err != nil {
			return err
		}
		r, err := postgres.LockReservation(ctx, tx, req.ID)
		if err != nil {
			return err
		}
		switch {
		case req.Version != 0 && req.Version != r.Version, r.Room != found.Room:
			return &Stale{r}
		case r.State != booking.Done:
			return ErrNotMovable
		}
		return s.move(ctx, tx, branch, r, room, times, req, now)
	})
}

func (s *Service) move(ctx context.Context, tx pgx.Tx, branch booking.Branch, r booking.Reservation, room booking.Room, times booking.Interval, req MoveRequest, now time.Time) error {
	// A reservation that has begun may keep its start and change its end.
	if !times.Start.Equal(r.Start) {
		if err := booking.CheckStart(times, now); err != nil {
			return err
		}
	}
	if err := branch.Schedule.Check(times, branch.Zone); err != nil {
		return err
	}
	if err := postgres.ExpireHolds(ctx, tx, room.ID, times, r.ID, now); err != nil {
		return err
	}
	free, err := postgres.RoomFree(ctx, tx, room.ID, times, r.ID)
	if err != nil {
		return err
	}
	if !free {
		return s.conflict(ctx, tx, room.ID, times, r.ID)
	}
	if err := s.unblock(ctx, tx, r.ID); err != nil {
		return err
	}
	if err := postgres.MoveReservation(ctx, tx, r, room, times, "admin:"+req.By, req.Reason); err != nil {
		return err
	}
	r.Room, r.RoomNo, r.Interval = room.ID, room.No, times
	if err := s.audit(ctx, tx, req.Audit, r); err != nil {
		return err
	}
	return errors.Join(s.block(ctx, tx, r.ID), s.renotifyGuest(ctx, tx, r, notify.ReservationMoved))
}
