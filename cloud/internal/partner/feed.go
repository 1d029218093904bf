package partner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Each calendar is read every two to five minutes. A random part for each one spreads the load on partners: calendars that were read
// together are not due together. A calendar in quarantine is read every hour.
const (
	feedInterval       = 2 * time.Minute
	feedJitter         = 3 * time.Minute
	quarantineInterval = time.Hour
)

// feedReaders is the number of calendars that are read at the same time: a server that does not answer delays its own for ten seconds.
const feedReaders = 16

// ImportFeeds imports the calendars that are due.
func (s *Service) ImportFeeds(ctx context.Context) error {
	now := s.DB.Now()
	feeds, err := postgres.Feeds(ctx, s.DB.Pool, now.Add(-feedInterval), feedJitter, now.Add(-quarantineInterval), sweepLimit)
	if err != nil {
		return fmt.Errorf("find due calendars: %w", err)
	}
	var readers errgroup.Group
	readers.SetLimit(feedReaders)
	failures := make([]error, len(feeds))
	for i, listing := range feeds {
		readers.Go(func() error {
			failures[i] = s.Import(ctx, listing)
			return nil
		})
	}
	_ = readers.Wait() // the failures are those of all calendars, not only the first one
	return errors.Join(failures...)
}

// FollowConflicts tries the bookings in conflict again, without the calendar: the conflicting reservation may have ended since that was read,
// and it may not be readable now.
func (s *Service) FollowConflicts(ctx context.Context) error {
	now := s.DB.Now()
	listings, err := postgres.ConflictListings(ctx, s.DB.Pool, now, sweepLimit)
	if err != nil {
		return fmt.Errorf("find bookings in conflict: %w", err)
	}
	for _, listing := range listings {
		stored, readErr := postgres.PartnerBookings(ctx, s.DB.Pool, listing.ID, now)
		err = errors.Join(err, readErr)
		for _, b := range stored {
			if b.Status != reserve.PartnerConflict || b.Missed > 0 {
				continue
			}
			if failed := s.takeSold(ctx, listing, again(b)); failed != nil {
				err = errors.Join(err, fmt.Errorf("take booking %s again: %w", b.ExternalID, failed))
			}
		}
	}
	return err
}

// again returns a booking as it was reported last.
func again(b postgres.PartnerBooking) channel.Booking {
	return channel.Booking{ExternalID: b.ExternalID, Start: b.Start, End: b.End, Seq: b.Seq}
}

// Import reads a listing's calendar and updates ours. A calendar that cannot be read, or that is unreliable, changes
// nothing.
func (s *Service) Import(ctx context.Context, listing postgres.Listing) error {
	if err := s.importCalendar(ctx, listing); err != nil {
		return fmt.Errorf("import the calendar of listing %d: %w", listing.ID, err)
	}
	return nil
}

func (s *Service) importCalendar(ctx context.Context, listing postgres.Listing) error {
	branch, err := s.DB.BranchByID(ctx, listing.Branch)
	if err != nil {
		return err
	}
	address, err := listing.URL(s.Keys.Open)
	if err != nil {
		return err
	}
	if err := postgres.BeginFetch(ctx, s.DB.Pool, listing.ID, s.DB.Now()); err != nil {
		return err
	}
	pulled, err := s.ICal.Pull(ctx, channel.Feed{
		URL: address, Zone: branch.Zone, Cursor: channel.Cursor{ETag: listing.FeedETag, LastModified: listing.FeedSince},
	})
	now := s.DB.Now()
	if err != nil {
		failed := postgres.Fetch{Problem: err.Error(), Quarantine: errors.Is(err, channel.ErrOverBudget)}
		s.Log.ErrorContext(ctx, "reading a calendar failed", "listing", listing.ID, "quarantine", failed.Quarantine, "error", err)
		return postgres.EndFetch(ctx, s.DB.Pool, listing.ID, failed, now)
	}
	stored, err := postgres.PartnerBookings(ctx, s.DB.Pool, listing.ID, now)
	if err != nil {
		return err
	}
	byID := map[string]postgres.PartnerBooking{}
	known := make([]channel.Known, 0, len(stored))
	for _, b := range stored {
		byID[b.ExternalID] = b
		known = append(known, channel.Known{ExternalID: b.ExternalID, Start: b.Start, End: b.End, Missed: b.Missed})
	}
	plan := channel.Reconcile(known, pulled, now)
	if plan.Suspicious || len(pulled.Problems) > 0 {
		s.Log.ErrorContext(ctx, "calendar is unreliable", "listing", listing.ID, "suspicious", plan.Suspicious, "problems", pulled.Problems)
	}
	failed, failure := s.carryOut(ctx, listing, plan, byID)
	if err := postgres.CountMissed(ctx, s.DB.Pool, listing.ID, plan.Seen, plan.Miss, now); err != nil {
		return err
	}
	if failure != nil { // without the place in the calendar, the next reading tries them again
		s.Log.ErrorContext(ctx, "bookings of a calendar were not imported", "listing", listing.ID, "bookings", failed, "error", failure)
		return postgres.EndFetch(ctx, s.DB.Pool, listing.ID, postgres.Fetch{Unreliable: fmt.Sprintf("%d bookings could not be imported", failed)}, now)
	}
	read := postgres.Fetch{ETag: plan.Cursor.ETag, Since: plan.Cursor.LastModified, Unreliable: unreliable(pulled, plan)}
	return postgres.EndFetch(ctx, s.DB.Pool, listing.ID, read, now)
}

// unreliable returns why a calendar that was read may lack bookings that the partner has sold; empty: it is complete.
func unreliable(pulled channel.Pulled, plan channel.Plan) string {
	switch {
	case len(pulled.Problems) > 0:
		return fmt.Sprintf("%d entries could not be read, such as %s", len(pulled.Problems), pulled.Problems[0])
	case plan.Suspicious:
		return "most bookings are missing at once; none of them was cancelled"
	}
	return ""
}

// carryOut applies the changes, those that free a time before those that occupy one. It returns the number of bookings that failed, each of
// which leaves the others alone, with the last reason.
func (s *Service) carryOut(ctx context.Context, listing postgres.Listing, plan channel.Plan, known map[string]postgres.PartnerBooking) (failed int, failure error) {
	take := func(b channel.Booking) {
		if ctx.Err() != nil {
			return
		}
		if err := s.takeSold(ctx, listing, b); err != nil {
			failed, failure = failed+1, fmt.Errorf("booking %s: %w", b.ExternalID, err)
		}
	}
	for _, id := range plan.Cancel {
		b := known[id]
		take(channel.Booking{ExternalID: id, Start: b.Start, End: b.End, Seq: b.Seq, Cancelled: true})
	}
	for _, b := range append(plan.Change, plan.Add...) {
		take(b)
	}
	for _, id := range plan.Seen {
		if b := known[id]; b.Status == reserve.PartnerConflict { // the conflicting reservation may have ended
			take(again(b))
		}
	}
	return failed, failure
}

// takeSold imports a booking that the partner has already sold. A conflict is stored and reported, and is not an
// error.
func (s *Service) takeSold(ctx context.Context, listing postgres.Listing, b channel.Booking) error {
	_, err := s.Reserve.TakePartnerBooking(ctx, reserve.PartnerBooking{Booking: b, Listing: listing, Sold: true})
	if errors.Is(err, reserve.ErrPartnerConflict) {
		return nil
	}
	return err
}

// The period covered by a published calendar.
const (
	exportPast   = 24 * time.Hour
	exportFuture = 180 * 24 * time.Hour
)

// Calendar returns a room's calendar for a partner: reservations with their margins and the closed hours, without
// personal data. The partner's own bookings are left out.
func (s *Service) Calendar(ctx context.Context, listing postgres.Listing) (channel.Calendar, error) {
	branch, err := s.DB.BranchByID(ctx, listing.Branch)
	if err != nil {
		return channel.Calendar{}, err
	}
	now := s.DB.Now()
	span := booking.Interval{Start: booking.LastMark(now.Add(-exportPast), branch.Zone), End: booking.LastMark(now.Add(exportFuture), branch.Zone)}
	calendar := channel.Calendar{Name: branch.NameKo + " " + strconv.Itoa(listing.RoomNo), Domain: s.Domain}
	room, ok := branch.Room(listing.RoomNo)
	if ok && !room.Enabled {
		calendar.Busy = []channel.Busy{{ID: "off-" + strconv.Itoa(listing.RoomNo), Start: span.Start, End: span.End, Modified: span.Start}}
		return calendar, nil
	}
	times, err := postgres.BusyTimes(ctx, s.DB.Pool, listing.Room, span, listing.Partner, now)
	if err != nil {
		return channel.Calendar{}, err
	}
	for _, b := range times {
		id := strconv.Itoa(int(b.ID))
		if b.Part { // it follows the partner's own times, too, so other times are another entry
			id += "-" + b.Start.UTC().Format("200601021504") + "-" + b.End.UTC().Format("200601021504")
		}
		calendar.Busy = append(calendar.Busy, channel.Busy{
			ID: id, Start: b.Start.Add(-b.Margin), End: b.End.Add(b.Margin), Modified: b.ModifiedAt, Sequence: int64(b.Version),
		})
	}
	closed := append(branch.Schedule.ClosedSlots(span, branch.Zone), branch.Schedule.BreakSlots(span, branch.Zone)...)
	for _, i := range mergeSlots(closed) {
		// The start is the revision too, so the same closed hours produce the same entry on every read.
		// Other hours are another entry: an entry with the same revision must not change its times.
		id := "closed-" + i.Start.UTC().Format("200601021504") + "-" + i.End.UTC().Format("200601021504")
		calendar.Busy = append(calendar.Busy, channel.Busy{ID: id, Start: i.Start, End: i.End, Modified: i.Start})
	}
	return calendar, nil
}
