package reserve

import (
	"context"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// A booking in conflict is one that a partner has sold although its time was taken (see placePartner). Staff give its guest a free room or
// time, which makes it a stay with a key, or drop it, because they have found another way with the guest or the partner.

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
	if err := c.alertConflict(false); err != nil {
		return err
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

// settleConflict records that staff have agreed on another room or time with the guest of a stay in conflict. The partner's booking moves it
// again only if it changes.
func (c *change) settleConflict() error {
	if settled, err := postgres.SettlePartnerBooking(c.ctx, c.tx, c.r().ID); err != nil || !settled {
		return err
	}
	return c.alertConflict(false)
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
		if err := c.alertConflict(false); err != nil {
			return err
		}
		if err := postgres.MarkCanceled(c.ctx, c.tx, req.ID, c.now); err != nil {
			return err
		}
		return c.audited(req.By, "reservation.cancel", withReason(nil, req.Reason))
	})
}
