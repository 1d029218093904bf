package reserve

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
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
// ErrPartnerConflict: the time is taken, held, closed or past; existing reservations are unchanged. [booking.InvalidError]: an administrator
// enters a booking that is live in another branch.
func (s *Service) TakePartnerBooking(ctx context.Context, b PartnerBooking) (id booking.ReservationID, err error) {
	for range maxOvertaken {
		if id, err = s.takePartnerBooking(ctx, b); !errors.Is(err, errMovedMeanwhile) {
			break
		}
	}
	return id, err
}

func (s *Service) takePartnerBooking(ctx context.Context, b PartnerBooking) (id booking.ReservationID, err error) {
	conflict, status := false, "" // the latter is the one before
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		id, conflict = 0, false
		present, err := postgres.PartnerRoom(ctx, tx, b.Listing.Partner, b.ExternalID)
		if err != nil {
			return err
		}
		if err := postgres.LockRooms(ctx, tx, b.Listing.Room, present); err != nil {
			return err
		}
		known, err := postgres.LockPartnerBooking(ctx, tx, b.Listing.Partner, b.ExternalID)
		if errors.Is(err, postgres.ErrNoPartnerBooking) {
			known = postgres.PartnerBooking{Partner: b.Listing.Partner, ExternalID: b.ExternalID, Seq: -1}
		} else if err != nil {
			return err
		}
		status = known.Status
		if b.Seq <= known.Seq && !b.Sold {
			id, conflict = known.Reservation, known.Status == PartnerConflict
			return nil
		}
		before := known
		known.Seq, known.Listing = b.Seq, b.Listing.ID
		if b.Cancelled {
			err = s.dropPartner(ctx, tx, &known, b, now)
		} else {
			err = s.placePartner(ctx, tx, &known, before, present, b, now)
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
		if status != PartnerConflict { // not again at each reading of a calendar
			s.Log.ErrorContext(ctx, "a partner's booking conflicts with the calendar", "partner", b.Listing.Partner, "booking", b.ExternalID,
				"branch", b.Listing.BranchCode, "room", b.Listing.RoomNo, "start", b.Start, "sold", b.Sold)
		}
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
	if err := c.endConflict(); err != nil {
		return err
	}
	return c.end(0)
}

// errMovedMeanwhile is returned if the stay of a booking came to another room before that was locked. Taking the booking again helps.
var errMovedMeanwhile = errors.New("reserve: the stay was moved meanwhile")

// placePartner adds a booking to the calendar, or moves its stay to its new time. before is what the partner reported last, present the
// room of the stay, which the caller has locked.
func (s *Service) placePartner(ctx context.Context, tx pgx.Tx, known *postgres.PartnerBooking, before postgres.PartnerBooking, present booking.RoomID, b PartnerBooking, now time.Time) error {
	branch, err := postgres.BranchOf(ctx, tx, b.Listing.Branch)
	if err != nil {
		return err
	}
	listed, ok := branch.Room(b.Listing.RoomNo)
	if !ok {
		return ErrNoRoom
	}
	known.Interval = wholeSlots(b.Start, b.End, branch.Zone)
	st := stay{}
	if known.Reservation != 0 {
		if st, err = lockStay(ctx, tx, known.Reservation); err != nil {
			return err
		}
		if st.root.Room != present {
			return errMovedMeanwhile
		}
	}
	current, c := st.root, s.change(ctx, tx, st.root, now)
	here := current.Branch == b.Listing.Branch // a stay belongs to its branch for good: one that a partner moves to another ends
	if !here && b.Audit.Action != "" && (current.State == booking.Done || current.State == booking.Conflict) {
		return &booking.InvalidError{Field: "externalId", Problem: "another branch has a booking of this partner with it"}
	}
	room, times := listed, known.Interval
	if current.State == booking.Done && before.Listing == b.Listing.ID {
		if present, ok := branch.Room(current.RoomNo); ok {
			room = present // staff may have moved the stay
		}
		if before.Status == PartnerConfirmed || !b.Sold { // a change that was refused changed nothing
			times = changed(current.Stay(), before.Interval, known.Interval)
		}
	}
	// On time that the stay has left while an agent is offline, no pass but its own opens, so it may return there.
	own, err := postgres.OwnQuarantines(ctx, tx, current.ID, room.ID)
	if err != nil {
		return err
	}
	taken := within(own, times)
	parts := append(ids(st.extensions), current.ID)
	free, err := s.partnerFits(ctx, tx, branch, room, times, slices.Concat(parts, taken), b, now)
	if err != nil {
		return err
	}
	waits := false // only for the end of a quarantine that reaches beyond its time
	if !free && len(own) > len(taken) {
		if waits, err = s.partnerFits(ctx, tx, branch, room, times, slices.Concat(parts, ids(own)), b, now); err != nil {
			return err
		}
	}
	known.Status = PartnerConfirmed
	switch {
	case current.State == booking.Done && !now.Before(current.Stay().End) && current.Stay().End.Before(before.End):
		return c.endConflict() // its guest has left early
	case free && current.State == booking.Done && current.Room == room.ID && current.Stay().Equal(times):
		return c.endConflict() // its time is as before
	case free && current.State == booking.Done && here:
		if err := c.endConflict(); err != nil {
			return err
		}
		if err := postgres.ReleaseQuarantines(ctx, tx, taken); err != nil {
			return err
		}
		return c.movePartner(st, room, times, b.Listing.Partner)
	case !free && b.Sold && current.State == booking.Conflict && current.Room == room.ID && current.Interval.Equal(pieces(times)[0]):
		known.Status = PartnerConflict // as before, apart from the time that has become free since
		return c.withhold(st, room, times, b.Listing.Partner)
	case !free && b.Sold && current.State == booking.Done && here &&
		(waits || !now.Before(current.Start) || current.Room == room.ID && (room.ID != listed.ID || current.Stay().Overlaps(times))):
		// The part that it has of its new time stays occupied; a guest who is inside keeps the key, and so does one whom staff have
		// moved to another room than the partner's, or who waits for a quarantine of its own.
		known.Status = PartnerConflict
		return c.beginConflict(st, room, times, b.Listing.Partner)
	case free:
		if err := s.endPartner(ctx, tx, known.Reservation, now); err != nil { // a resolved conflict, or a stay in another branch
			return err
		}
		return s.insertPartner(ctx, tx, known, b, room, times, booking.Done, now)
	case !b.Sold:
		known.Status = PartnerConflict
		if current.State == booking.Done { // a refused change: the booking has the room and the times before
			known.Listing, known.Interval = before.Listing, before.Interval
		}
		return nil
	}
	// The partner has sold this time, so the stored booking is outdated. Staff see the new one beside the conflicting one.
	known.Status = PartnerConflict
	if err := s.endPartner(ctx, tx, known.Reservation, now); err != nil {
		return err
	}
	return s.insertPartner(ctx, tx, known, b, room, times, booking.Conflict, now)
}

// changed returns the times of a stay after the partner has changed its booking from one interval to another: a bound that it has not
// changed stays as staff, a compensation or the guest have made it, and a stay that was ended early gets no longer by an earlier end.
func changed(stay, from, to booking.Interval) booking.Interval {
	times := to
	if to.Start.Equal(from.Start) {
		times.Start = stay.Start
	}
	if to.End.Equal(from.End) || stay.End.Before(to.End) && to.End.Before(from.End) {
		times.End = stay.End
	}
	if !times.Start.Before(times.End) { // staff have moved the stay away from the other bound: it gets as much longer or shorter
		times = booking.Interval{Start: stay.Start.Add(to.Start.Sub(from.Start)), End: stay.End.Add(to.End.Sub(from.End))}
	}
	if !times.Start.Before(times.End) {
		return stay
	}
	return times
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
		c := s.change(ctx, tx, booking.Reservation{ID: known.Reservation, Branch: b.Listing.Branch}, now)
		return c.beginConflict(stay{}, room, times, b.Listing.Partner)
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

// movePartner moves a stay to a free room and time. It keeps its key, and its PIN if only its end is another one.
func (c *change) movePartner(st stay, room booking.Room, times booking.Interval, partner string) error {
	if err := c.dropUnpaid(st); err != nil {
		return err
	}
	if err := c.reshape(st, room, times, partner, "partner:"+partner, ""); err != nil {
		return err
	}
	if err := c.passAt(room, times); err != nil {
		return err
	}
	r := st.root
	r.Room, r.RoomNo, r.Interval = room.ID, room.No, times
	return c.renotifyGuest(r, notify.ReservationMoved, nil)
}

// reshape moves the parts of a partner's stay to a free room and time, adds further ones, and ends those that are not needed any more.
func (c *change) reshape(st stay, room booking.Room, times booking.Interval, partner, by, reason string) error {
	r, parts, split := st.root, st.confirmed(), pieces(times)
	surplus := parts[min(len(parts), len(split)):]
	parts = parts[:len(parts)-len(surplus)]
	added := postgres.PartnerReservation{
		Branch: r.Branch, Room: room.ID, State: booking.Done, Extends: r.ID, Vacant: true, Partner: partner, Name: r.Name, Mobile: r.Mobile,
	}
	for _, added.Interval = range split[len(parts):] {
		id, err := postgres.InsertPartnerReservation(c.ctx, c.tx, added, c.now)
		if err != nil {
			return err
		}
		part, err := postgres.LockReservation(c.ctx, c.tx, id)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	// The time of a part that ends may be needed by another one. It is freed afterwards, so that no quarantine is put on it.
	if err := postgres.Vacate(c.ctx, c.tx, ids(surplus)...); err != nil {
		return err
	}
	to := target{room: room, times: times}
	for _, part := range split {
		to.lengths = append(to.lengths, part.Length())
	}
	if err := c.place(parts, to, by, reason); err != nil {
		return err
	}
	return c.endEach(surplus, cancellation{by: rule.ByStay, reason: "이용 변경", forced: true})
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
