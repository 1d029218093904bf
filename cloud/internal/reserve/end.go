package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// ErrNotBegun is returned for a stay that has not begun: the guest may cancel it instead. ErrStayEnded is returned after its
// end, ErrOwnerOnly to a companion.
var (
	ErrNotBegun  = errors.New("reserve: the stay has not begun")
	ErrStayEnded = errors.New("reserve: the stay is over")
	ErrOwnerOnly = errors.New("reserve: only the owner's key changes the stay")
)

// Ended is a stay that its guest ended early.
type Ended struct {
	Branch    booking.Branch
	FreedFrom time.Time // the new end of the stay; the margin follows
	Refund    int       // won that are refunded
}

// EndStay ends a stay at the next ten-minute mark and frees its room from then on. Nothing changes if the stay ends at that
// mark anyway. The payments are not refunded. A request that is repeated after the new end has the same answer.
//
// Errors: ErrNotFound, ErrNotMovable (not confirmed), ErrNotBegun, ErrStayEnded.
func (s *Service) EndStay(ctx context.Context, id booking.ReservationID) (ended Ended, err error) {
	found, err := postgres.Reservation(ctx, s.DB.Pool, id)
	if errors.Is(err, booking.ErrNoReservation) {
		return ended, ErrNotFound
	}
	if err != nil {
		return ended, err
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, found.Room); err != nil {
			return err
		}
		stay, err := lockStay(ctx, tx, id)
		if err != nil {
			return err
		}
		if stay.root.State != booking.Done || stay.root.Extends != 0 || stay.root.Room != found.Room {
			return ErrNotMovable
		}
		ended, err = s.change(ctx, tx, stay.root, now).endStay(stay)
		failpoint.Hit("end.beginning")
		return err
	})
	failpoint.Hit("end.finished")
	return ended, err
}

// endReason is recorded of a stay that its guest ended.
const endReason = "이용 종료"

func (c *change) endStay(stay stay) (Ended, error) {
	whole := stay.root.Stay()
	if c.now.Before(whole.Start) {
		return Ended{}, ErrNotBegun
	}
	branch, err := postgres.BranchOf(c.ctx, c.tx, stay.root.Branch)
	if err != nil {
		return Ended{}, err
	}
	if !c.now.Before(whole.End) {
		early, err := postgres.EndedByGuest(c.ctx, c.tx, stay.root.ID, whole.End, endReason)
		if err == nil && !early {
			err = ErrStayEnded
		}
		return Ended{Branch: branch, FreedFrom: whole.End}, err // the request is repeated
	}
	if err := c.dropUnpaid(stay); err != nil {
		return Ended{}, err
	}
	parts := stay.confirmed()
	// Each payment of the stay keeps a time of at least one slot.
	from := later(booking.NextMark(c.now, branch.Zone), whole.Start.Add(time.Duration(len(parts))*booking.SlotLength))
	if !from.Before(whole.End) {
		return Ended{Branch: branch, FreedFrom: whole.End}, nil
	}
	room := booking.Room{ID: stay.root.Room, No: stay.root.RoomNo}
	if err := c.place(parts, stay.at(room, booking.Interval{Start: whole.Start, End: from}), "customer", endReason); err != nil {
		return Ended{}, err
	}
	return Ended{Branch: branch, FreedFrom: from}, postgres.ExtendPass(c.ctx, c.tx, c.Keys, stay.root.ID, from)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
