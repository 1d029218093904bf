package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// What becomes of a partner's booking.
const (
	PartnerConfirmed = "CONFIRMED"
	PartnerConflict  = "CONFLICT"
	PartnerCancelled = "CANCELLED"
)

// ErrPartnerConflict says that the time of a partner's booking cannot be had.
var ErrPartnerConflict = errors.New("reserve: the partner's booking conflicts with the calendar")

// PartnerBooking is what a partner tells about a booking of its own.
type PartnerBooking struct {
	channel.Booking
	Listing postgres.Listing
	// Sold: the partner's customer has the booking whatever we say, as with a calendar that is read later. A conflict is
	// then kept beside what it conflicts with, for staff to see; nobody's reservation is touched. Otherwise the partner
	// refuses its customer.
	Sold  bool
	Audit audit.Entry // of an administrator who enters the booking
}

// TakePartnerBooking brings the calendar in line with a partner's booking: made, changed or cancelled, told in any
// order and any number of times. News that are not newer than what is known get the answer they had.
//
// ErrPartnerConflict: the time is taken, held, closed or over; what was there before stays.
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

// dropPartner takes a booking out of the calendar that the partner has cancelled.
func (s *Service) dropPartner(ctx context.Context, tx pgx.Tx, known *postgres.PartnerBooking, b PartnerBooking, now time.Time) error {
	known.Status = PartnerCancelled
	if known.Start.IsZero() {
		known.Interval = booking.Interval{Start: b.Start, End: b.End}
	}
	if known.Start.IsZero() {
		known.Interval = booking.Interval{Start: now, End: now} // cancelled before we heard of it, and told without times
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
	return s.change(ctx, tx, r, now).end(0)
}

// placePartner puts a booking into the calendar, or moves it there.
func (s *Service) placePartner(ctx context.Context, tx pgx.Tx, known *postgres.PartnerBooking, b PartnerBooking, now time.Time) error {
	branch, err := postgres.BranchOf(ctx, tx, b.Listing.Branch)
	if err != nil {
		return err
	}
	room, ok := branch.Room(b.Listing.RoomNo)
	if !ok {
		return ErrNoRoom
	}
	times := wholeSlots(b.Start, b.End)
	known.Interval = times
	current := booking.Reservation{}
	if known.Reservation != 0 {
		if current, err = postgres.LockReservation(ctx, tx, known.Reservation); err != nil {
			return err
		}
	}
	free, err := s.partnerFits(ctx, tx, branch, room, times, current, b, now)
	if err != nil {
		return err
	}
	known.Status = PartnerConfirmed
	switch {
	case free && current.State == booking.Done:
		return s.movePartner(ctx, tx, current, room, times, b, now)
	case free:
		if err := s.endPartner(ctx, tx, known.Reservation, now); err != nil { // a conflict that is over
			return err
		}
		return s.insertPartner(ctx, tx, known, b, room, times, booking.Done, now)
	case !b.Sold:
		known.Status = PartnerConflict
		return nil
	}
	// It is sold all the same: what we had of it is out of date, and staff see both.
	known.Status = PartnerConflict
	if err := s.endPartner(ctx, tx, known.Reservation, now); err != nil {
		return err
	}
	if times.Length() > booking.MaxLength {
		known.Reservation = 0 // too long to be shown as one
		return nil
	}
	return s.insertPartner(ctx, tx, known, b, room, times, booking.Conflict, now)
}

// partnerFits reports whether a partner's booking can be had at its time. What is sold already is not asked whether
// the branch is open.
func (s *Service) partnerFits(ctx context.Context, tx pgx.Tx, branch booking.Branch, room booking.Room, times booking.Interval, current booking.Reservation, b PartnerBooking, now time.Time) (bool, error) {
	if times.Length() > booking.MaxLength || !now.Before(times.End) {
		return false, nil
	}
	if !b.Sold && branch.Schedule.Check(times, branch.Zone) != nil {
		return false, nil //nolint:nilerr // closed: it does not fit
	}
	if err := postgres.ExpireHolds(ctx, tx, room.ID, times, 0, now); err != nil {
		return false, err
	}
	return postgres.RoomFree(ctx, tx, room.ID, times, current.ID)
}

func (s *Service) insertPartner(ctx context.Context, tx pgx.Tx, known *postgres.PartnerBooking, b PartnerBooking, room booking.Room, times booking.Interval, state booking.State, now time.Time) error {
	r := postgres.PartnerReservation{
		Branch: b.Listing.Branch, Room: room.ID, Interval: times, State: state, Partner: b.Listing.Partner, Name: b.Name, Mobile: b.Phone,
	}
	if state == booking.Done {
		r.Key = uuid.NewString()
	}
	var err error
	if known.Reservation, err = postgres.InsertPartnerReservation(ctx, tx, r, now); err != nil || state != booking.Done {
		return err
	}
	stored, err := postgres.LockReservation(ctx, tx, known.Reservation)
	if err != nil {
		return err
	}
	c := s.change(ctx, tx, stored, now)
	if err := c.block(); err != nil {
		return err
	}
	return c.notifyGuest(stored, notify.ReservationConfirmed, nil)
}

func (s *Service) movePartner(ctx context.Context, tx pgx.Tx, r booking.Reservation, room booking.Room, times booking.Interval, b PartnerBooking, now time.Time) error {
	if r.Start.Equal(times.Start) && r.End.Equal(times.End) && r.Room == room.ID {
		return nil
	}
	return s.change(ctx, tx, r, now).place(room, times, "partner:"+b.Listing.Partner, "")
}

// wholeSlots widens a time to whole slots. Offsets of time zones are whole slots everywhere we are.
func wholeSlots(start, end time.Time) booking.Interval {
	return booking.Interval{
		Start: start.UTC().Truncate(booking.SlotLength), End: end.UTC().Add(booking.SlotLength - 1).Truncate(booking.SlotLength),
	}
}
