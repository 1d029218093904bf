package reserve

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// MoveRequest changes the room and time of a confirmed reservation. The amount does not change.
type MoveRequest struct {
	ID      booking.ReservationID
	Room    int
	Times   booking.LocalInterval
	Reason  string
	By      account.Principal
	Version int  // the version that the administrator saw; 0: any
	Silent  bool // the guest receives no message

	// WholeStay: Times are those of the stay with its confirmed extensions. Otherwise they are those of the reservation, and the
	// extensions follow it with their lengths.
	WholeStay bool
}

// Stale is returned when a reservation was changed after the administrator read it.
type Stale struct{ Now booking.Reservation }

func (e *Stale) Error() string { return "reserve: the reservation was changed in between" }

// Move moves a reservation in one transaction: if it fails, the reservation keeps its room and time. A partner's booking in conflict becomes a
// stay in the room at the time.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrNotMovable, ErrNoRoom, ErrRoomDisabled, ErrTaken, ErrHeld, *Stale,
// those of booking about times.
func (s *Service) Move(ctx context.Context, req MoveRequest) error {
	found, err := postgres.Reservation(ctx, s.DB.Pool, req.ID)
	if errors.Is(err, booking.ErrNoReservation) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	branch, err := s.DB.BranchByID(ctx, found.Branch)
	if err != nil {
		return err
	}
	if !req.By.Reaches(branch.Code) {
		return account.ErrBranchForbidden
	}
	// A stay that has begun may keep its start, and that of a partner's guest its length.
	longest := max(booking.MaxLength, found.Stay().Length())
	times, err := req.Times.UpTo(longest, branch.Zone, earlier(s.now(), found.Start))
	if err != nil {
		return err
	}
	room, ok := branch.Room(req.Room)
	if !ok {
		return ErrNoRoom
	}
	m := plannedMove{MoveRequest: req, branch: branch, room: room, times: times, longest: longest}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, found.Room, room.ID); err != nil {
			return err
		}
		stay, err := lockStay(ctx, tx, req.ID)
		if err != nil {
			return err
		}
		c := s.change(ctx, tx, stay.root, now)
		switch r := stay.root; {
		case req.Version != 0 && req.Version != r.Version, r.Room != found.Room:
			return &Stale{r}
		case r.State == booking.Conflict:
			return c.moveConflict(m)
		case r.State != booking.Done, r.Extends != 0:
			return ErrNotMovable
		}
		return c.moveStay(stay, m)
	})
}

// plannedMove is a request to move a reservation, with the branch, the room and the times that it names.
type plannedMove struct {
	MoveRequest
	branch  booking.Branch
	room    booking.Room
	times   booking.Interval
	longest time.Duration // of the stay after the move
}

// moveConflict makes a partner's booking in conflict a stay in the room at the time.
func (c *change) moveConflict(m plannedMove) error {
	if err := c.resolveConflict(m.room, m.times, m.By.Actor(), m.Reason); err != nil {
		return err
	}
	if !m.Silent {
		if err := c.notifyResolved(); err != nil {
			return err
		}
	}
	return c.movedBy(m, m.times)
}

// moveStay moves a confirmed stay, notifies its guest and writes the audit entry.
func (c *change) moveStay(stay stay, m plannedMove) (err error) {
	to := stay.at(m.room, m.times)
	if !m.WholeStay {
		if to, err = stay.following(to, m.longest); err != nil {
			return err
		}
	}
	m.Silent = m.Silent || to.isAt(stay.root) // nothing changes for the guest; the audit entry names no message, either
	if err := c.moveTo(stay, m.branch, to, m.By.Actor(), m.Reason); err != nil {
		return err
	}
	if err := c.settleConflict(); err != nil {
		return err
	}
	if !m.Silent {
		if err := c.notifyMoved(); err != nil {
			return err
		}
	}
	return c.movedBy(m, to.times)
}

// movedBy writes the audit entry of a move to the times.
func (c *change) movedBy(m plannedMove, times booking.Interval) error {
	zone := m.branch.Zone
	return c.audited(m.By, "reservation.move", map[string]any{
		"room": m.room.No, "start": wallTime(times.Start, zone), "end": wallTime(times.End, zone), "reason": m.Reason, "notified": !m.Silent,
	})
}

// wallTime formats a time as in requests.
func wallTime(t time.Time, zone *time.Location) string { return t.In(zone).Format("200601021504") }

// target is the room and the time of a stay after a change, and the lengths that its confirmed reservations are to have.
type target struct {
	room    booking.Room
	times   booking.Interval
	lengths []time.Duration
}

// at returns the target of a stay in a room at a time, at which its reservations are to keep their lengths.
func (s stay) at(room booking.Room, times booking.Interval) target {
	to := target{room: room, times: times}
	for _, r := range s.confirmed() {
		to.lengths = append(to.lengths, r.Length())
	}
	return to
}

// isAt reports whether a stay is in the room and at the time of a target already.
func (to target) isAt(root booking.Reservation) bool {
	return root.Room == to.room.ID && root.Stay().Equal(to.times)
}

// following returns the target of a stay whose own reservation has the times of a target and whose extensions follow it.
// booking.ErrTooLong: together they exceed longest.
func (s stay) following(own target, longest time.Duration) (target, error) {
	own.lengths[0] = own.times.Length()
	for _, length := range own.lengths[1:] {
		own.times.End = own.times.End.Add(length)
	}
	if own.times.Length() > longest {
		return own, booking.ErrTooLong
	}
	return own, nil
}

// moveTo moves a stay with its confirmed extensions; its unpaid ones end. It sends no message: see notifyMoved.
func (c *change) moveTo(stay stay, branch booking.Branch, to target, by, reason string) error {
	r, times := c.r(), to.times
	// A reservation that has begun may keep its start and change its end.
	if !times.Start.Equal(r.Start) {
		if err := booking.CheckStart(times, c.now); err != nil {
			return err
		}
	}
	// The time that it has stays its own if the branch was closed later, or if a partner sold it outside the opening hours.
	if present := r.Stay(); times.Start.Before(present.Start) || times.End.After(present.End) {
		if err := branch.Schedule.Check(times, branch.Zone); err != nil {
			return err
		}
	}
	if err := c.dropUnpaid(stay); err != nil {
		return err
	}
	parts := stay.confirmed()
	place := postgres.Place{Room: to.room.ID, Interval: times}
	if err := postgres.ExpireHolds(c.ctx, c.tx, place, r.ID, c.now); err != nil {
		return err
	}
	own, err := postgres.OwnQuarantines(c.ctx, c.tx, r.ID, to.room.ID)
	if err != nil {
		return err
	}
	taken := within(own, times)
	mine := slices.Concat(ids(parts), taken)
	free, err := postgres.RoomForSale(c.ctx, c.tx, place, mine...)
	if err != nil {
		return err
	}
	if !free {
		return c.conflict(c.ctx, c.tx, place, mine...)
	}
	if err := postgres.ReleaseQuarantines(c.ctx, c.tx, taken); err != nil {
		return err
	}
	if err := c.place(parts, to, by, reason); err != nil {
		return err
	}
	return c.passAt(to.room, times)
}

// within returns the quarantines that a stay has left and takes back with its new times: no pass but its own opens there. One that
// reaches beyond them remains, because the agent may hold a pass for the rest.
func within(own []booking.Reservation, times booking.Interval) []booking.ReservationID {
	return ids(slices.DeleteFunc(slices.Clone(own), func(q booking.Reservation) bool { return q.Start.Before(times.Start) || q.End.After(times.End) }))
}

// passAt gives a stay that was moved a pass for its room and time. If only its end is another one, the PIN stays: the guest may be at the
// door with it.
func (c *change) passAt(room booking.Room, times booking.Interval) error {
	before := c.r()
	if before.Room == room.ID && before.Start.Equal(times.Start) {
		return postgres.ExtendPass(c.ctx, c.tx, c.Keys, before.ID, times.End)
	}
	return c.issuePass()
}

// notifyMoved notifies the guest of the new room and time of a stay.
func (c *change) notifyMoved() error { return c.notifyPlace(notify.ReservationMoved) }

// notifyPlace sends the guest a message with the room and time that a stay has now.
func (c *change) notifyPlace(template notify.Template) error {
	moved, err := postgres.Reservation(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	moved.Interval = moved.Stay()
	return c.renotifyGuest(moved, template, nil)
}

// place moves the confirmed reservations of a stay, the root first, to a free room and time, and updates the partner
// channels. Each has its length as far as that of the stay allows; see booking.Divide.
func (c *change) place(parts []booking.Reservation, to target, by, reason string) error {
	targets, ok := booking.Divide(to.times, to.lengths)
	if !ok {
		return ErrNotMovable
	}
	for _, r := range parts {
		if err := c.on(r).unblock(); err != nil {
			return err
		}
	}
	if err := postgres.MoveStay(c.ctx, c.tx, parts, to.room, targets, by, reason); err != nil {
		return err
	}
	for _, r := range parts {
		if err := c.on(r).block(); err != nil {
			return err
		}
		if err := c.on(r).blockQuarantines(); err != nil {
			return err
		}
	}
	return nil
}
