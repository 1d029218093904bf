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
	conflict, status := false, "" // the latter is the previous one
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
		c := &partnerChange{change: s.change(ctx, tx, booking.Reservation{}, now), b: b, known: known, before: known}
		c.known.Seq, c.known.Listing = b.Seq, b.Listing.ID
		if b.Cancelled {
			err = c.drop()
		} else {
			err = c.enter(present)
		}
		if err != nil {
			return err
		}
		id, conflict = c.known.Reservation, c.known.Status == PartnerConflict
		if accepted := b.Sold || !conflict; accepted && !b.Cancelled {
			if err := c.correctPhone(); err != nil {
				return err
			}
		}
		if err := postgres.SavePartnerBooking(ctx, tx, c.known, now); err != nil || conflict {
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

// partnerChange is a transaction on a partner's booking. Its reservation is the stay of the booking, whose row is locked; zero if there is none.
type partnerChange struct {
	*change
	b      PartnerBooking          // as the partner reports it
	known  postgres.PartnerBooking // as it is stored afterwards
	before postgres.PartnerBooking
	stay   stay
}

// drop removes a booking that the partner cancelled from the calendar.
func (c *partnerChange) drop() error {
	c.known.Status = PartnerCancelled
	if c.known.Start.IsZero() {
		c.known.Interval = booking.Interval{Start: c.b.Start, End: c.b.End}
	}
	if c.known.Start.IsZero() {
		c.known.Interval = booking.Interval{Start: c.now, End: c.now} // first reported as a cancellation, and without times
	}
	return c.endPartner()
}

// endPartner ends the stay of the booking, if it has one.
func (c *partnerChange) endPartner() error {
	if c.known.Reservation == 0 {
		return nil
	}
	r, err := postgres.LockReservation(c.ctx, c.tx, c.known.Reservation)
	if err != nil || r.State != booking.Done && r.State != booking.Conflict {
		return err
	}
	stay := c.on(r)
	if err := stay.endConflict(); err != nil {
		return err
	}
	return stay.end(0)
}

// errMovedMeanwhile is returned if the stay of a booking came to another room before that was locked. Taking the booking again helps.
var errMovedMeanwhile = errors.New("reserve: the stay was moved meanwhile")

// enter adds the booking to the calendar, or moves its stay to its new time. present is the room of the stay, which the caller has locked.
func (c *partnerChange) enter(present booking.RoomID) error {
	branch, err := postgres.BranchOf(c.ctx, c.tx, c.b.Listing.Branch)
	if err != nil {
		return err
	}
	listed, ok := branch.Room(c.b.Listing.RoomNo)
	if !ok {
		return ErrNoRoom
	}
	c.known.Interval = wholeSlots(c.b.Start, c.b.End, branch.Zone)
	if c.known.Reservation != 0 {
		if c.stay, err = lockStay(c.ctx, c.tx, c.known.Reservation); err != nil {
			return err
		}
		if c.stay.root.Room != present {
			return errMovedMeanwhile
		}
		c.change = c.on(c.stay.root)
	}
	if r := c.r(); !c.here() && c.b.Audit.Action != "" && (r.State == booking.Done || r.State == booking.Conflict) {
		return &booking.InvalidError{Field: "externalId", Problem: "another branch has a booking of this partner with it"}
	}
	room, times := c.destination(branch, listed)
	// On time that the stay has left while an agent is offline, no pass but its own opens, so it may return there.
	own, err := postgres.OwnQuarantines(c.ctx, c.tx, c.r().ID, room.ID)
	if err != nil {
		return err
	}
	taken := within(own, times)
	free, err := c.fits(branch, room, times, taken)
	if err != nil {
		return err
	}
	if c.leftEarly() {
		c.known.Status = PartnerConfirmed
		return c.endConflict()
	}
	if free {
		c.known.Status = PartnerConfirmed
		return c.placeFree(room, times, taken)
	}
	c.known.Status = PartnerConflict
	if !c.b.Sold {
		if c.r().State == booking.Done { // a refused change: the booking keeps its room and times
			c.known.Listing, c.known.Interval = c.before.Listing, c.before.Interval
		}
		return nil
	}
	waits := false // only for the end of a quarantine that reaches beyond its time
	if len(own) > len(taken) {
		if waits, err = c.fits(branch, room, times, ids(own)); err != nil {
			return err
		}
	}
	elsewhere := c.r().Room == room.ID && room.ID != listed.ID // staff have moved it
	return c.placeConflict(room, times, waits || elsewhere)
}

// here reports whether the stay is in the branch of the booking. It belongs to its branch for good: one that a partner moves to another ends.
func (c *partnerChange) here() bool { return c.r().Branch == c.b.Listing.Branch }

// leftEarly reports whether the guest has ended the stay early.
func (c *partnerChange) leftEarly() bool {
	r := c.r()
	return r.State == booking.Done && !c.now.Before(r.Stay().End) && r.Stay().End.Before(c.before.End)
}

// destination returns the room and the times of the booking. A stay that staff have moved keeps its room, and a bound that the partner
// has not changed.
func (c *partnerChange) destination(branch booking.Branch, listed booking.Room) (booking.Room, booking.Interval) {
	r, room, times := c.r(), listed, c.known.Interval
	if r.State != booking.Done || c.before.Listing != c.b.Listing.ID {
		return room, times
	}
	if present, ok := branch.Room(r.RoomNo); ok {
		room = present
	}
	if c.before.Status == PartnerConfirmed || !c.b.Sold { // a change that was refused changed nothing
		times = changed(r.Stay(), c.before.Interval, times)
	}
	return room, times
}

// placeFree gives the booking a room and times that are free, apart from quarantines of its own.
func (c *partnerChange) placeFree(room booking.Room, times booking.Interval, quarantines []booking.ReservationID) error {
	r := c.r()
	if r.State == booking.Done && r.Room == room.ID && r.Stay().Equal(times) {
		return c.endConflict()
	}
	if r.State == booking.Done && c.here() {
		if err := c.endConflict(); err != nil {
			return err
		}
		if err := postgres.ReleaseQuarantines(c.ctx, c.tx, quarantines); err != nil {
			return err
		}
		return c.movePartner(c.stay, room, times, c.b.Listing.Partner)
	}
	if err := c.endPartner(); err != nil { // a resolved conflict, or a stay in another branch
		return err
	}
	return c.insert(room, times, booking.Done)
}

// placeConflict stores a booking that the partner has sold although its time is not free. The guest of a stay keeps the key if the stay
// cannot follow, because a quarantine of its own has to end first, or staff have moved it to a room that is not the partner's.
func (c *partnerChange) placeConflict(room booking.Room, times booking.Interval, stays bool) error {
	r, partner := c.r(), c.b.Listing.Partner
	if r.State == booking.Conflict && r.Room == room.ID && r.Interval.Equal(pieces(times)[0]) {
		return c.withhold(c.stay, room, times, partner) // as before, apart from the time that has become free since
	}
	inside := !c.now.Before(r.Start)
	if r.State == booking.Done && c.here() && (stays || inside || r.Room == room.ID && r.Stay().Overlaps(times)) {
		return c.beginConflict(c.stay, room, times, partner) // the part that it has of its new time stays occupied
	}
	// The stored booking is outdated. Staff see the new one beside the conflicting one.
	if err := c.endPartner(); err != nil {
		return err
	}
	return c.insert(room, times, booking.Conflict)
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
	if !times.Start.Before(times.End) { // staff have moved the stay away from the other bound: it becomes longer or shorter by the same time
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

// fits reports whether a time is available for the booking, apart from its own stay and some quarantines. A booking that is already
// sold skips the check of the branch's opening hours, and may be longer than a reservation.
func (c *partnerChange) fits(branch booking.Branch, room booking.Room, times booking.Interval, quarantines []booking.ReservationID) (bool, error) {
	if times.Length() > maxPartnerLength || !c.b.Sold && times.Length() > booking.MaxLength || !c.now.Before(times.End) {
		return false, nil
	}
	if !c.b.Sold && branch.Schedule.Check(times, branch.Zone) != nil {
		return false, nil //nolint:nilerr // closed: it does not fit
	}
	place := postgres.Place{Room: room.ID, Interval: times}
	if err := postgres.ExpireHolds(c.ctx, c.tx, place, 0, c.now); err != nil {
		return false, err
	}
	return postgres.RoomFree(c.ctx, c.tx, place, slices.Concat(ids(c.stay.extensions), []booking.ReservationID{c.r().ID}, quarantines)...)
}

// insert adds a reservation for the booking. The parts of one that is longer than a reservation follow the first one as its
// extensions. One in conflict is stored with its first part.
func (c *partnerChange) insert(room booking.Room, times booking.Interval, state booking.State) error {
	parts := pieces(times)
	r := postgres.PartnerReservation{
		Branch: c.b.Listing.Branch, Room: room.ID, Interval: parts[0], State: state, Partner: c.b.Listing.Partner, Name: c.b.Name, Mobile: c.b.Phone,
	}
	if state == booking.Done {
		r.Key = c.newKey()
	}
	var err error
	if c.known.Reservation, err = postgres.InsertPartnerReservation(c.ctx, c.tx, r, c.now); err != nil {
		return err
	}
	if state != booking.Done {
		inserted := c.on(booking.Reservation{ID: c.known.Reservation, Branch: c.b.Listing.Branch})
		return inserted.beginConflict(stay{}, room, times, c.b.Listing.Partner)
	}
	r.Extends = c.known.Reservation
	for _, r.Interval = range parts[1:] {
		id, err := postgres.InsertPartnerReservation(c.ctx, c.tx, r, c.now)
		if err != nil {
			return err
		}
		if err := c.on(booking.Reservation{ID: id}).block(); err != nil {
			return err
		}
	}
	stored, err := postgres.LockReservation(c.ctx, c.tx, c.known.Reservation)
	if err != nil {
		return err
	}
	inserted := c.on(stored)
	if err := inserted.issuePass(); err != nil {
		return err
	}
	if err := inserted.block(); err != nil {
		return err
	}
	stored.Interval = times
	return inserted.notifyGuest(stored, notify.ReservationConfirmed, nil)
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

// correctPhone gives the key to another phone number if the partner reports one, under the conditions under which a guest can correct
// it. A number that staff corrected stays until the partner reports a different one.
func (c *partnerChange) correctPhone() error {
	phone, before := c.b.Phone, c.known.Mobile
	if phone == "" || phone == before || c.known.Reservation == 0 {
		return nil
	}
	r, err := postgres.LockReservation(c.ctx, c.tx, c.known.Reservation)
	same := booking.NormalizePhone(r.Mobile) == booking.NormalizePhone(phone)
	if err != nil || !same && before == "" && r.Mobile != "" {
		return err // staff have entered the number, and that of the partner may have been erased
	}
	c.known.Mobile = phone
	if same {
		return nil
	}
	if ok, err := correctable(c.ctx, c.tx, r, c.now); err != nil || !ok {
		return err
	}
	correction := ContactCorrection{Mobile: &phone, Reason: "외부 채널에서 고침"}
	if c.b.Name != "" {
		correction.Name = &c.b.Name
	}
	return c.on(r).correctContact(correction, "partner:"+c.b.Listing.Partner)
}

// wholeSlots widens a time to whole slots of the branch.
func wholeSlots(start, end time.Time, zone *time.Location) booking.Interval {
	return booking.Interval{Start: booking.LastMark(start, zone).UTC(), End: booking.NextMark(end.Add(-1), zone).UTC()}
}
