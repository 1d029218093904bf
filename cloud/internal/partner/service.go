package partner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Service exchanges bookings with partner channels. All fields are required unless noted.
type Service struct {
	DB      *postgres.DB
	Reserve *reserve.Service
	Keys    *seal.Keyring
	Gateway *channel.Gateway // nil if there is no gateway
	Partner string           // name of the gateway's partner
	ICal    channel.Puller   // reads calendars
	Domain  string           // our domain in published calendars
	Log     *slog.Logger

	sweeps int // until the next comparison of the blocks with the reservations
}

const (
	// blockLease is how long one attempt to notify a partner may take; the gateway times out after 10 seconds.
	blockLease = 30 * time.Second
	// The first quickRetries retries follow after firstRetry, because most failures are brief; then
	// channel.RetryAfter applies.
	firstRetry   = 5 * time.Second
	quickRetries = 4
	// lateCreation is the time after which a removal is repeated if the outcome of an earlier attempt is unclear: the partner may create
	// a block after it has accepted the removal.
	lateCreation = time.Minute
	// giveUpInterval is the interval between attempts for a block that a partner has not accepted for a day.
	giveUpInterval = 24 * time.Hour

	sweepLimit = 200

	// alignEvery sweeps are a minute by default. Transactions keep the blocks in line with the reservations; the comparison, which
	// reads all rooms and all coming reservations, is for rooms that were added and for rows that were changed by hand.
	alignEvery = 12
)

// Prepare lists every room at the gateway's partner, including rooms created since the last call.
func (s *Service) Prepare(ctx context.Context) error {
	if s.Gateway == nil {
		return nil
	}
	if err := postgres.EnsureListings(ctx, s.DB.Pool, channel.NameGateway, s.Partner); err != nil {
		return fmt.Errorf("list all rooms at partner %s: %w", s.Partner, err)
	}
	return nil
}

// SyncBlock notifies the partner of a block if a notification is due. A failed notification is rescheduled; only
// internal errors are returned.
func (s *Service) SyncBlock(ctx context.Context, id int64) error {
	for {
		b, err := postgres.ClaimBlock(ctx, s.DB.Pool, id, s.DB.Now(), blockLease)
		if errors.Is(err, postgres.ErrNoBlock) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("claim block %d: %w", id, err)
		}
		if err := s.notifyPartner(ctx, b); err != nil {
			return fmt.Errorf("record the outcome of block %d at partner %s: %w", id, b.Partner, err)
		}
		// The block may have been withdrawn during the request: check again.
	}
}

func (s *Service) notifyPartner(ctx context.Context, b postgres.Block) error {
	if err := s.send(ctx, b); err != nil {
		pause, ok := firstRetry, true
		if b.Attempt > quickRetries {
			pause, ok = channel.RetryAfter(b.Attempt - quickRetries)
		}
		if !ok || errors.Is(err, channel.ErrRejected) {
			s.Log.ErrorContext(ctx, "partner rejected a block", "block", b.ID, "state", b.State, "attempt", b.Attempt, "error", err)
			pause = giveUpInterval
		} else {
			s.Log.WarnContext(ctx, "notifying the partner of a block failed", "block", b.ID, "state", b.State, "attempt", b.Attempt, "error", err)
		}
		note, cancel := context.WithTimeout(context.WithoutCancel(ctx), firstRetry)
		defer cancel()
		return postgres.RetryBlock(note, s.DB.Pool, b, err.Error(), s.DB.Now().Add(pause))
	}
	return postgres.FinishBlock(ctx, s.DB.Pool, b, s.DB.Now().Add(lateCreation))
}

var errNoGateway = errors.New("partner: no gateway is configured")

func (s *Service) send(ctx context.Context, b postgres.Block) error {
	if s.Gateway == nil || b.Partner != s.Partner {
		return errNoGateway
	}
	if b.State == postgres.BlockUnwanted {
		return s.Gateway.Unblock(ctx, ref(b.ID))
	}
	return s.Gateway.Block(ctx, channel.Block{ID: ref(b.ID), ListingID: b.ExternalID, Start: b.Start, End: b.End})
}

// ref returns a block's id at the partner. The gateway keeps our id, so a block can be removed even if the response
// to its creation was lost.
func ref(id int64) string { return "yeolda-" + strconv.FormatInt(id, 10) }

// Sweep sends the notifications that are due. The first sweep and each alignEvery-th one after it also compare the blocks with the
// reservations. Sweeps are not concurrent.
func (s *Service) Sweep(ctx context.Context) error {
	if s.Gateway == nil {
		return nil
	}
	if err := s.align(ctx); err != nil {
		return err
	}
	ids, err := postgres.DueBlocks(ctx, s.DB.Pool, s.DB.Now(), sweepLimit)
	if err != nil {
		return fmt.Errorf("find due blocks: %w", err)
	}
	for _, id := range ids {
		err = errors.Join(err, s.SyncBlock(ctx, id))
	}
	return err
}

func (s *Service) align(ctx context.Context) error {
	if s.sweeps > 0 {
		s.sweeps--
		return nil
	}
	if err := s.Prepare(ctx); err != nil {
		return err
	}
	complete, err := postgres.AlignBlocks(ctx, s.DB.Pool, s.DB.Now())
	if err != nil {
		return fmt.Errorf("align blocks with reservations: %w", err)
	}
	if complete {
		s.sweeps = alignEvery - 1
	}
	return nil
}

// Entry is a booking that staff copied from a partner.
type Entry struct {
	Partner    string
	ExternalID string // the partner's id; entering it again changes the booking
	Branch     string
	Room       int
	booking.Interval
	Name, Mobile string
	By           string // actor of the audit log
}

// Enter imports a booking that staff copied from a partner (the manual channel). The partner is not notified of our
// reservations; staff have to do it. A partner that reports its bookings of the room itself is rejected: the next calendar, which lacks the
// id, would cancel the stay, and later events of the partner would count as outdated.
//
// Errors: postgres.ErrNoListing (no such room), reserve.ErrPartnerConflict, [booking.InvalidError].
func (s *Service) Enter(ctx context.Context, e Entry) (booking.ReservationID, error) {
	wrap := func(err error) error {
		return fmt.Errorf("enter booking %q of partner %s in room %d of %s: %w", e.ExternalID, e.Partner, e.Room, e.Branch, err)
	}
	if err := postgres.EnsureListings(ctx, s.DB.Pool, channel.NameManual, e.Partner); err != nil {
		return 0, wrap(err)
	}
	listing, err := postgres.ListingOf(ctx, s.DB.Pool, e.Partner, e.Branch+"-"+strconv.Itoa(e.Room))
	if err != nil {
		return 0, wrap(err)
	}
	if s.Gateway != nil && listing.Channel == channel.NameGateway || listing.HasAddress() {
		return 0, wrap(&booking.InvalidError{Field: "partner", Problem: "the partner reports its bookings of the room itself"})
	}
	id, err := s.Reserve.TakePartnerBooking(ctx, reserve.PartnerBooking{Listing: listing, Booking: channel.Booking{
		ExternalID: e.ExternalID, Start: e.Start, End: e.End, Name: e.Name, Phone: e.Mobile,
		Seq: s.DB.Now().UnixMilli(), // manual input is newer than anything known
	}, Audit: audit.Entry{
		Actor: e.By, Action: "partner-booking.enter", Detail: map[string]any{"partner": e.Partner},
	}})
	if err != nil {
		return 0, wrap(err)
	}
	return id, nil
}
