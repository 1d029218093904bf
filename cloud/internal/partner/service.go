package partner

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Service is the traffic with partner channels. Every field is required but those that say otherwise.
type Service struct {
	DB      *postgres.DB
	Reserve *reserve.Service
	Gateway *channel.Gateway // nil: there is none
	Partner string           // the gateway's partner
	ICal    channel.Channel  // reads calendars
	Domain  string           // ours, in the calendars we publish
	Log     *slog.Logger
}

const (
	// blockLease is how long telling a partner may take; the gateway gives up after 10 seconds.
	blockLease = 30 * time.Second
	// firstRetry comes before the pauses of channel.RetryAfter, quickRetries times: most failures are a moment's.
	firstRetry   = 5 * time.Second
	quickRetries = 4
	// giveUpPause is how often a partner is tried that did not take a block for a day.
	giveUpPause = 24 * time.Hour

	sweepLimit = 200
)

// Prepare has the gateway's partner offer every room, also those that were made since.
func (s *Service) Prepare(ctx context.Context) error {
	if s.Gateway == nil {
		return nil
	}
	return postgres.EnsureListings(ctx, s.DB.Pool, s.Gateway.Name(), s.Partner)
}

// SyncBlock tells the partner about a block, if there is something to tell now. What the partner could not be told is
// tried again; only an error of our own is returned.
func (s *Service) SyncBlock(ctx context.Context, id int64) error {
	for {
		b, err := postgres.ClaimBlock(ctx, s.DB.Pool, id, s.DB.Now(), blockLease)
		if errors.Is(err, postgres.ErrNoBlock) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.tell(ctx, b); err != nil {
			return err
		}
		// It may have been taken back while the partner was being told: look again.
	}
}

func (s *Service) tell(ctx context.Context, b postgres.Block) error {
	if err := s.send(ctx, b); err != nil {
		pause, ok := firstRetry, true
		if b.Attempt > quickRetries {
			pause, ok = channel.RetryAfter(b.Attempt - quickRetries)
		}
		if !ok || errors.Is(err, channel.ErrRejected) {
			s.Log.ErrorContext(ctx, "the partner does not take a block", "block", b.ID, "state", b.State, "attempt", b.Attempt, "error", err)
			pause = giveUpPause
		} else {
			s.Log.WarnContext(ctx, "the partner could not be told about a block", "block", b.ID, "state", b.State, "attempt", b.Attempt, "error", err)
		}
		note, cancel := context.WithTimeout(context.WithoutCancel(ctx), firstRetry)
		defer cancel()
		return postgres.RetryBlock(note, s.DB.Pool, b, err.Error(), s.DB.Now().Add(pause))
	}
	return postgres.FinishBlock(ctx, s.DB.Pool, b)
}

var errNoGateway = errors.New("partner: no gateway is configured")

func (s *Service) send(ctx context.Context, b postgres.Block) error {
	if s.Gateway == nil || b.Partner != s.Partner {
		return errNoGateway
	}
	if b.State == postgres.BlockUnwanted {
		return s.Gateway.Unblock(ctx, ref(b.ID))
	}
	_, err := s.Gateway.Block(ctx, channel.Block{ID: ref(b.ID), ListingID: b.ExternalID, Start: b.Start, End: b.End})
	return err
}

// ref is a block's name at the partner. The gateway keeps ours, so a block can be taken away whose answer was lost.
func ref(id int64) string { return "yeolda-" + strconv.FormatInt(id, 10) }

// Sweep compares the blocks with the reservations and tells partners what they are due to be told.
func (s *Service) Sweep(ctx context.Context) error {
	if s.Gateway == nil {
		return nil
	}
	if err := errors.Join(s.Prepare(ctx), postgres.AlignBlocks(ctx, s.DB.Pool, s.DB.Now())); err != nil {
		return err
	}
	ids, err := postgres.DueBlocks(ctx, s.DB.Pool, s.DB.Now(), sweepLimit)
	for _, id := range ids {
		err = errors.Join(err, s.SyncBlock(ctx, id))
	}
	return err
}

// Entry is a booking that a person has read at a partner's.
type Entry struct {
	Partner    string
	ExternalID string // the partner's name for it; entered again it changes the booking
	Branch     string
	Room       int
	booking.Interval
	Name, Mobile string
}

// Enter puts a booking into the calendar that a person has read at a partner's: the manual channel. Nobody is told of
// our reservations there; a person is.
//
// Errors: postgres.ErrNoListing (no such room), reserve.ErrPartnerConflict.
func (s *Service) Enter(ctx context.Context, e Entry) (booking.ReservationID, error) {
	if err := postgres.EnsureListings(ctx, s.DB.Pool, channel.Manual{}.Name(), e.Partner); err != nil {
		return 0, err
	}
	listing, err := postgres.ListingOf(ctx, s.DB.Pool, e.Partner, e.Branch+"-"+strconv.Itoa(e.Room))
	if err != nil {
		return 0, err
	}
	return s.Reserve.TakePartnerBooking(ctx, reserve.PartnerBooking{Listing: listing, Booking: channel.Booking{
		ExternalID: e.ExternalID, Start: e.Start, End: e.End, Name: e.Name, Phone: e.Mobile,
		Seq: s.DB.Now().UnixMilli(), // what a person says now is newer than what was known
	}})
}
