package backoffice

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Listings returns the rooms of a branch that partners offer.
func (s *Service) Listings(ctx context.Context, branch booking.BranchID) ([]postgres.ListingState, error) {
	return postgres.ListingsOf(ctx, s.DB.Pool, branch)
}

// ChangeSettings stores the settings of a branch, its rooms aside, if its revision is still the one given. It returns a
// [booking.InvalidError] or ErrChanged.
func (s *Service) ChangeSettings(ctx context.Context, b booking.Branch, by string) error {
	if err := b.Validate(); err != nil {
		return err
	}
	entry := audit.Entry{Actor: by, Branch: b.Code, Action: "settings.change", Target: b.Code}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		old, err := postgres.BranchOf(ctx, tx, b.ID)
		if err != nil {
			return err
		}
		entry.Detail = map[string]any{"changes": booking.Differences(old.Facts(), b.Facts())}
		return postgres.EditBranch(ctx, tx, b)
	})
}

// ChangeRoom stores machine, grade and prices of a room; a number that does not exist becomes a room. It returns a
// [booking.InvalidError].
func (s *Service) ChangeRoom(ctx context.Context, branch booking.Branch, room booking.Room, by string) error {
	if err := room.Validate(); err != nil {
		return err
	}
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "room.change", Target: branch.Code + "/" + strconv.Itoa(room.No)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		before, err := postgres.BranchOf(ctx, tx, branch.ID)
		if err != nil {
			return err
		}
		entry.Detail = map[string]any{"changes": roomChanges(before, room)}
		return postgres.EditRoom(ctx, tx, branch.ID, room)
	})
}

// roomChanges describes how a room differs from the one with its number, or the whole room if there is none.
func roomChanges(branch booking.Branch, room booking.Room) []string {
	old, exists := branch.Room(room.No)
	if !exists {
		return []string{"new room: " + booking.Sentence(room.Facts())}
	}
	room.Enabled = old.Enabled
	return booking.Differences(old.Facts(), room.Facts())
}

// NewListing is a room to be offered on a partner's calendar.
type NewListing struct {
	Partner string
	Room    booking.Room
	FeedURL string // of the partner's calendar; empty: there is none
}

// AddListing offers a room on a partner's calendar. It returns a [booking.InvalidError] or ErrListingExists.
func (s *Service) AddListing(ctx context.Context, branch string, l NewListing, by string) error {
	if l.FeedURL != "" {
		if err := channel.CheckFeedURL(l.FeedURL); err != nil {
			return &booking.InvalidError{Field: "feedUrl", Problem: err.Error()}
		}
	}
	entry := audit.Entry{Actor: by, Branch: branch, Action: "channel.add", Target: l.Partner, Detail: map[string]any{"room": l.Room.No}}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.AddListing(ctx, tx, l.Room.ID, l.Partner, branch+"-"+strconv.Itoa(l.Room.No), l.FeedURL)
	})
}

// SwitchListing switches a listing of a branch on or off. It returns ErrNoListing.
func (s *Service) SwitchListing(ctx context.Context, branch booking.Branch, id int, enabled bool, by string) error {
	entry := audit.Entry{
		Actor: by, Branch: branch.Code, Action: "channel.switch", Target: strconv.Itoa(id), Detail: map[string]any{"enabled": enabled},
	}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.SwitchListing(ctx, tx, branch.ID, id, enabled)
	})
}

// NewExport gives a listing a new link at which the partner reads our reservations, and returns its room and the token
// of the link. Links made before stop working. It returns ErrNoListing.
func (s *Service) NewExport(ctx context.Context, branch booking.Branch, id int, by string) (room int, token string, err error) {
	token = rand.Text()
	hash := sha256.Sum256([]byte(token))
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "channel.export", Target: strconv.Itoa(id)}
	err = s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
		room, err = postgres.SetExportToken(ctx, tx, branch.ID, id, hash[:])
		return err
	})
	return room, token, err
}
