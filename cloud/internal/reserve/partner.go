package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// States of a partner's booking.
const (
	PartnerConfirmed = "CONFIRMED"
	PartnerConflict  = "CONFLICT"
	PartnerCancelled = "CANCELLED"
)

// ErrPartnerConflict is returned when the time of a partner's booking is not available.
var ErrPartnerConflict = errors.New("reserve: the partner's booking conflicts with the calendar")

// PartnerBooking is a booking that a partner channel reports.
type PartnerBooking struct {
	channel.Booking
	Listing postgres.Listing
	// Sold means that the partner has already confirmed the booking to its customer, as with a polled calendar feed. A
	// conflict is then stored beside the reservation it overlaps, and staff resolve it. If Sold is false, the partner
	// rejects its customer after a conflict.
	Sold  bool
	Audit audit.Entry // set if an administrator enters the booking
}

// TakePartnerBooking applies a partner's new, changed or cancelled booking to the calendar. Updates may arrive in any
// order and repeatedly; an update that is not newer than the stored one returns the stored result.
//
// ErrPartnerConflict: the time is taken, held, closed or past; existing reservations are unchanged.
func (s *Service) TakePartnerBooking(ctx context.Context, b PartnerBooking) (id booking.ReservationID, err error) {
	conflict := false
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		id, conflict = 0, false
		if err := postgres.LockRooms(ctx, tx, b.Listing.Room); err != nil {
			return err
		}
		known, err := postgres.LockPartnerBooking(ctx, tx, b.Listing.Partner, b.ExternalID)
		if errors.Is(err, postgres.ErrNoPartnerBooking) {
			known = postgres.PartnerBooking{Partner: b.Listing.Partner, ExternalID: b.ExternalID, Seq: -1}
		} else if err != nil {
			return err
		}
		if b.Seq <= known.Seq && !b.Sold {
			id, conflict = known.Reservation, known.Status == PartnerConflict
			return nil
		}
		known.Seq, known.Listing = b.Seq, b.Listing.ID
		if b.Cancelled {
			err = s.dropPartner(ctx, tx, &known, b, now)
		} else {
			err = s.placePartner(ctx, tx, &known, b, now)
		}
		if err != nil {
			return err
		}
		id, conflict = known.Reservation, known.Status == PartnerConflict
		if accepted := b.Sold || !conflict; accepted && !b.Cancelled {
			if err := s.correctPartner(ctx, tx, &known, b, now); err != nil {
				return err
			}
		}
		if err := postgres.SavePartnerBooking(ctx, tx, known, now); err != nil || conflict {
			return err
		}
		return s.audit(ctx, tx, b.Audit, booking.Reservation{ID: id, Branch: b.Listing.Branch})
	})
	if err == nil && conflict {
		s.Log.ErrorContext(ctx, "a partner's booking conflicts with the calendar", "partner", b.Listing.Partner, "booking", b.ExternalID,
			"branch", b.Listing.BranchCode, "room", b.Listing.RoomNo, "start", b.Start, "sold", b.Sold)
		err = ErrPartnerConflict
	}
	return id, err
}

// dropPartner removes a booking that the partner cancelled from the calendar.
func (s *Service) dropPartner(ctx context.Context, tx pgx.Tx, known *postgres.PartnerBooking, b PartnerBooking, now time.Time) error {
	known.Status = PartnerCancelled
	if known.Start.IsZero() {
		known.Interval = booking.Interval{Start: b.Start, End: b.End}
	}
	if known.Start.IsZero() {
		known.Interval = booking.Interval{Start: now, End: now} // first reported as a cancellation, and without times
	}
	return s.endPartner(ctx, tx, known.Reservation, now)
}

func (s *Service) endPartner(ctx context.Context, tx pgx.Tx, id booking.ReservationID, now time.Time) error {
	if id == 0 {
		return nil
	}
	r, err := postgres.LockReservation(ctx, tx, id)
	if err != nil || r.State != booking.Done && r.State != booking.Conflict {
		return err
	}
	c := s.change(ctx, tx, r, now)
	if err := c.alertConflict(false); err != nil {
		return err
	}
	return c.end(0)
}

// alertConflict begins or ends the alert about a booking that a partner has sold although its time is taken.
func (c *change) alertConflict(begins bool) error {
	branch, err := postgres.BranchOf(c.ctx, c.tx, c.r().Branch)
	if err != nil {
		return err
	}
	subject := fmt.Sprintf("reservation:%d", c.r().ID)
	if begins {
		return postgres.OpenAlert(c.ctx, c.tx, "discrepancy", branch.Code, subject, c.now)
	}
	return postgres.EndAlert(c.ctx, c.tx, "discrepancy", branch.Code, subject, c.now)
}

// placePartner adds a booking to the calendar, or moves it to its new time.
func (s *Service) placePartner(ctx context.Context, tx pgx.Tx, known *postgres.PartnerBooking, b PartnerBooking, now time.Time) error {
	branch, err := postgres.BranchOf(ctx, tx, b.Listing.Branch)
	if err != nil {
		return err
	}
	room, ok := branch.Room(b.Listing.RoomNo)
	if !ok {
		return ErrNoRoom
	}
	times := wholeSlots(b.Start, b.End, branch.Zone)
	known.Interval = times
	current := booking.Reservation{}
	if known.Reservation != 0 {
		if current, err = postgres.LockReservation(ctx, tx, known.Reservation); err != nil {
			return err
		}
	}
	parts, err := postgres.LockExtensions(ctx, tx, current.ID)
	if err != nil {
		return err
	}
	free, err := s.partnerFits(ctx, tx, branch, room, times, append(ids(parts), current.ID), b, now)
	if err != nil {
		return err
	}
	split, c := pieces(times), s.change(ctx, tx, current, now)
	known.Status = PartnerConfirmed
	switch {
	case free && current.State == booking.Done && current.Room == room.ID && current.Start.Equal(times.Start) &&
		(current.End.Equal(times.End) || current.Stay().End.Equal(times.End)):
		return c.alertConflict(false) // its time is as before
	case free && current.State == booking.Done && len(parts) == 0 && len(split) == 1:
		if err := c.alertConflict(false); err != nil {
			return err
		}
		return s.movePartner(ctx, tx, current, room, times, b, now)
	case !free && b.Sold && current.State == booking.Conflict && current.Room == room.ID && current.Start.Equal(split[0].Start) && current.End.Equal(split[0].End):
		known.Status = PartnerConflict // as before
		return nil
	case !free && b.Sold && current.State == booking.Done && (!now.Before(current.Start) || current.Room == room.ID && current.Stay().Overlaps(times)):
		// The part that it has of its new time stays occupied; a guest who is inside keeps the key.
		known.Status = PartnerConflict
		return c.alertConflict(true)
	case free:
		if err := s.endPartner(ctx, tx, known.Reservation, now); err != nil { // a resolved conflict
			return err
		}
		return s.insertPartner(ctx, tx, known, b, room, times, booking.Done, now)
	case !b.Sold:
		known.Status = PartnerConflict
		return nil
	}
	// The partner has sold this time, so the stored booking is outdated. Staff see the new one beside the conflicting one.
	known.Status = PartnerConflict
	if err := s.endPartner(ctx, tx, known.Reservation, now); err != nil {
		return err
	}
	return s.insertPartner(ctx, tx, known, b, room, times, booking.Conflict, now)
}

// maxPartnerLength bounds a booking of a calendar: a room that a partner blocks for longer is to be closed by staff.
const maxPartnerLength = 31 * 24 * time.Hour

// pieces divides the time of a booking, which a calendar may give as whole days, into lengths of reservations.
func pieces(times booking.Interval) []booking.Interval {
	var list []booking.Interval
	for start := times.Start; start.Before(times.End) || list == nil; start = start.Add(booking.MaxLength) {
		end := start.Add(booking.MaxLength)
		if end.After(times.End) {
			end = times.End
		}
		list = append(list, booking.Interval{Start: start, End: end})
	}
	return list
}

// partnerFits reports whether the time of a partner's booking is available, except for the booking itself. A booking that is already
// sold skips the check of the branch's opening hours, and may be longer than a reservation.
func (s *Service) partnerFits(ctx context.Context, tx pgx.Tx, branch booking.Branch, room booking.Room, times booking.Interval, except []booking.ReservationID, b PartnerBooking, now time.Time) (bool, error) {
	if times.Length() > maxPartnerLength || !b.Sold && times.Length() > booking.MaxLength || !now.Before(times.End) {
		return false, nil
	}
	if !b.Sold && branch.Schedule.Check(times, branch.Zone) != nil {
		return false, nil //nolint:nilerr // closed: it does not fit
	}
	place := postgres.Place{Room: room.ID, Interval: times}
	if err := postgres.ExpireHolds(ctx, tx, place, 0, now); err != nil {
		return false, err
	}
	return postgres.RoomFree(ctx, tx, place, except...)
}

// insertPartner adds a booking to the calendar. The parts of one that is longer than a reservation follow the first one as its
// extensions. One in conflict is stored with its first part.
func (s *Service) insertPartner(ctx context.Context, tx pgx.Tx, known *postgres.PartnerBooking, b PartnerBooking, room booking.Room, times booking.Interval, state booking.State, now time.Time) error {
	parts := pieces(times)
	r := postgres.PartnerReservation{
		Branch: b.Listing.Branch, Room: room.ID, Interval: parts[0], State: state, Partner: b.Listing.Partner, Name: b.Name, Mobile: b.Phone,
	}
	if state == booking.Done {
		r.Key = s.newKey()
	}
	var err error
	if known.Reservation, err = postgres.InsertPartnerReservation(ctx, tx, r, now); err != nil {
		return err
	}
	if state != booking.Done {
		return s.change(ctx, tx, booking.Reservation{ID: known.Reservation, Branch: b.Listing.Branch}, now).alertConflict(true)
	}
	r.Extends = known.Reservation
	for _, r.Interval = range parts[1:] {
		id, err := postgres.InsertPartnerReservation(ctx, tx, r, now)
		if err != nil {
			return err
		}
		if err := s.change(ctx, tx, booking.Reservation{ID: id}, now).block(); err != nil {
			return err
		}
	}
	stored, err := postgres.LockReservation(ctx, tx, known.Reservation)
	if err != nil {
		return err
	}
	c := s.change(ctx, tx, stored, now)
	if err := c.issuePass(); err != nil {
		return err
	}
	if err := c.block(); err != nil {
		return err
	}
	stored.Interval = times
	return c.notifyGuest(stored, notify.ReservationConfirmed, nil)
}

func (s *Service) movePartner(ctx context.Context, tx pgx.Tx, r booking.Reservation, room booking.Room, times booking.Interval, b PartnerBooking, now time.Time) error {
	c := s.change(ctx, tx, r, now)
	if err := c.place([]booking.Reservation{r}, stay{root: r}.at(room, times), "partner:"+b.Listing.Partner, ""); err != nil {
		return err
	}
	if err := c.issuePass(); err != nil {
		return err
	}
	r.Room, r.RoomNo, r.Interval = room.ID, room.No, times
	return c.renotifyGuest(r, notify.ReservationMoved, nil)
}

// correctPartner gives the key to another phone number if the partner reports one, under the conditions under which a guest can correct
// it. A number that staff corrected stays until the partner reports another one than before.
func (s *Service) correctPartner(ctx context.Context, tx pgx.Tx, known *postgres.PartnerBooking, b PartnerBooking, now time.Time) error {
	if b.Phone == "" || b.Phone == known.Mobile || known.Reservation == 0 {
		return nil
	}
	before := known.Mobile
	known.Mobile = b.Phone
	r, err := postgres.LockReservation(ctx, tx, known.Reservation)
	if err != nil || booking.NormalizePhone(r.Mobile) == booking.NormalizePhone(b.Phone) || before == "" && r.Mobile != "" {
		return err
	}
	if ok, err := correctable(ctx, tx, r, now); err != nil || !ok {
		return err
	}
	correction := ContactCorrection{Mobile: &b.Phone, Reason: "외부 채널에서 고침"}
	if b.Name != "" {
		correction.Name = &b.Name
	}
	return s.change(ctx, tx, r, now).correctContact(correction, "partner:"+b.Listing.Partner)
}

// wholeSlots widens a time to whole slots of the branch.
func wholeSlots(start, end time.Time, zone *time.Location) booking.Interval {
	return booking.Interval{Start: booking.LastMark(start, zone).UTC(), End: booking.NextMark(end.Add(-1), zone).UTC()}
}
