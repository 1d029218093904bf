package reserve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// A booking in conflict is one that a partner has sold although its time was taken (see partnerChange). Staff give its guest a free room or
// time, which makes it a stay with a key, or drop it, because they have found another way with the guest or the partner. Until then the part
// of its time that is free is withheld: the partner has sold it, and it may be what the guest gets.

// beginConflict alerts staff to a booking that a partner has sold although a part of its time is taken, and withholds the rest. st is the
// booking's stay as far as it is known.
func (c *change) beginConflict(st stay, room booking.Room, times booking.Interval, partner string) error {
	if err := c.withhold(st, room, times, partner); err != nil {
		return err
	}
	return c.conflictAlert(postgres.OpenAlert)
}

// endConflict ends the alert, and returns the withheld time.
func (c *change) endConflict() error {
	extensions, err := postgres.LockExtensions(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	if err := c.returnWithheld(stay{extensions: extensions}); err != nil {
		return err
	}
	if err := postgres.EndConflict(c.ctx, c.tx, c.r().ID); err != nil {
		return err
	}
	return c.conflictAlert(postgres.EndAlert)
}

func (c *change) conflictAlert(set func(ctx context.Context, q postgres.Querier, kind, branch, subject string, at time.Time) error) error {
	branch, err := postgres.BranchOf(c.ctx, c.tx, c.r().Branch)
	if err != nil {
		return err
	}
	return set(c.ctx, c.tx, "discrepancy", branch.Code, fmt.Sprintf("reservation:%d", c.r().ID), c.now)
}

// withhold keeps a booking's time from being sold: its free part by holds, which every calendar shows. Time that becomes free later gets them
// when the booking is taken again.
func (c *change) withhold(st stay, room booking.Room, times booking.Interval, partner string) error {
	if longest := times.Start.Add(maxPartnerLength); times.End.After(longest) {
		times.End = longest
	}
	place := postgres.Place{Room: room.ID, Interval: times}
	if err := postgres.BeginConflict(c.ctx, c.tx, c.r().ID, place); err != nil {
		return err
	}
	held := st.withheld(c.now)
	free, err := postgres.FreeParts(c.ctx, c.tx, place, room.Margin(), ids(held)...)
	if err != nil {
		return err
	}
	var parts []booking.Interval
	for _, part := range free {
		part.Start = part.Start.Add(-room.Margin()) // which an extension does not occupy
		parts = append(parts, pieces(part)...)
	}
	parts = slices.DeleteFunc(parts, func(part booking.Interval) bool { return !c.now.Before(part.End) })
	if slices.EqualFunc(parts, held, func(part booking.Interval, r booking.Reservation) bool {
		return r.Room == room.ID && r.Interval.Equal(part)
	}) {
		return nil
	}
	if err := c.returnWithheld(st); err != nil {
		return err
	}
	added, err := postgres.Withhold(c.ctx, c.tx, c.r(), partner, room.ID, parts)
	if err != nil {
		return err
	}
	for _, id := range added {
		if err := c.blockTime(id); err != nil {
			return err
		}
	}
	return nil
}

func (c *change) returnWithheld(st stay) error {
	for _, held := range st.withheld(c.now) {
		if err := c.on(held).giveUp(); err != nil {
			return err
		}
	}
	return nil
}

// withheld returns the holds that keep time of a partner's booking from being sold, in order of time.
func (s stay) withheld(now time.Time) []booking.Reservation {
	return slices.DeleteFunc(slices.Clone(s.extensions), func(r booking.Reservation) bool {
		return r.State != booking.Hold || r.Source != booking.Partner || !r.Occupies(now)
	})
}

// resolveConflict makes a booking in conflict a stay in a free room at a time. If that is the time that its record shows, the whole time of
// the booking is meant, of which the record has the first part.
func (c *change) resolveConflict(room booking.Room, times booking.Interval, by, reason string) error {
	r := c.r()
	b, err := postgres.PartnerBookingOf(c.ctx, c.tx, r.ID)
	if err != nil {
		return err
	}
	if times.Equal(r.Interval) {
		times = b.Interval
	} else if !times.Start.Equal(r.Start) {
		if err := booking.CheckStart(times, c.now); err != nil {
			return err
		}
	}
	if err := c.endConflict(); err != nil {
		return err
	}
	place := postgres.Place{Room: room.ID, Interval: times}
	if err := postgres.ExpireHolds(c.ctx, c.tx, place, 0, c.now); err != nil {
		return err
	}
	free, err := postgres.RoomFree(c.ctx, c.tx, place, r.ID)
	if err != nil {
		return err
	}
	if !free {
		return c.conflict(c.ctx, c.tx, place, r.ID)
	}
	if err := postgres.ConfirmConflict(c.ctx, c.tx, r.ID, c.newKey()); err != nil {
		return err
	}
	r.State = booking.Done
	if err := c.on(r).reshape(stay{root: r}, room, times, b.Partner, by, reason); err != nil {
		return err
	}
	if err := c.on(r).issuePass(); err != nil {
		return err
	}
	b.Status = PartnerConfirmed
	return postgres.SavePartnerBooking(c.ctx, c.tx, b, c.now)
}

// settleConflict records that staff have agreed on another room or time with the guest of a stay in conflict. Only a later
// change of the partner's booking moves it again.
func (c *change) settleConflict() error {
	if settled, err := postgres.SettlePartnerBooking(c.ctx, c.tx, c.r().ID); err != nil || !settled {
		return err
	}
	return c.endConflict()
}

// notifyResolved sends the guest of a resolved conflict the key.
func (c *change) notifyResolved() error {
	r, err := postgres.Reservation(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	r.Interval = r.Stay()
	return c.notifyGuest(r, notify.ReservationConfirmed, nil)
}

// dropConflict ends a booking in conflict for an administrator. It stays dropped until the partner changes it.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrStatusMismatch for any other reservation.
func (s *Service) dropConflict(ctx context.Context, req AdminCancelRequest) error {
	return s.locked(ctx, req.ID, func(c *change) error {
		if _, err := c.reachable(req.By); err != nil {
			return err
		}
		if c.r().State != booking.Conflict {
			return ErrStatusMismatch
		}
		b, err := postgres.PartnerBookingOf(c.ctx, c.tx, req.ID)
		if err != nil {
			return err
		}
		b.Status = PartnerConfirmed
		if err := postgres.SavePartnerBooking(c.ctx, c.tx, b, c.now); err != nil {
			return err
		}
		if err := c.endConflict(); err != nil {
			return err
		}
		if err := postgres.MarkCanceled(c.ctx, c.tx, req.ID, c.now); err != nil {
			return err
		}
		return c.audited(req.By, "reservation.cancel", withReason(nil, req.Reason))
	})
}
