package channel

import (
	"context"
	"errors"
	"time"
)

// Channel is one way of talking to booking channels.
type Channel interface {
	// Name is ical, gateway or manual.
	Name() string
	// Block makes a time unavailable at the channel and returns the channel's reference.
	// Repeating it with the same Block.ID is harmless. An error that is [ErrRejected] will
	// not go away by itself; after any other the call is repeated.
	Block(ctx context.Context, b Block) (ref string, err error)
	// Unblock takes a block away. One that is not there is no error.
	Unblock(ctx context.Context, ref string) error
	// Pull reads what was booked at the channel. A channel that tells us by itself has
	// nothing to pull and answers with Unchanged.
	Pull(ctx context.Context, f Feed) (Pulled, error)
}

// ErrRejected marks an answer by which a channel refuses a request for good.
var ErrRejected = errors.New("the channel rejects the request")

// Block is a time of ours that a channel may not sell.
type Block struct {
	ID         string // ours, the same whenever the block is sent
	ListingID  string // the channel's name for the room
	Start, End time.Time
}

// Booking is a time sold at a channel.
type Booking struct {
	ExternalID string // the channel's, stable while the booking lives
	ListingID  string // the channel's name for the room; "" where the feed says it
	Start, End time.Time
	Cancelled  bool
	Seq        int64  // of two versions the higher one is newer
	Name       string // "" where the channel does not tell
	Phone      string
}

// Feed is a calendar to read.
type Feed struct {
	URL    string
	Zone   *time.Location // of times without a zone
	Cursor Cursor         // of the last successful pull; the zero value reads everything
}

// Cursor is what lets a server answer that nothing changed.
type Cursor struct {
	ETag         string
	LastModified string
}

// Pulled is a calendar as it was read.
type Pulled struct {
	Unchanged bool // nothing new since the cursor: Bookings is empty and means nothing
	Bookings  []Booking
	Cursor    Cursor
	// Problems lists entries that could not be understood. A calendar with problems is
	// not complete: what is missing from it proves nothing.
	Problems []string
}

// RetryAfter is the pause after the given number of failed attempts to reach a channel
// (1 for the first): 1, 4, 16, 64 minutes, then hourly for a day. ok is false when it is
// time to tell a person.
func RetryAfter(failures int) (pause time.Duration, ok bool) {
	const quick, hourly = 4, 24
	switch {
	case failures < 1:
		return 0, true
	case failures <= quick:
		return time.Minute << (2 * (failures - 1)), true
	case failures <= quick+hourly:
		return time.Hour, true
	}
	return 0, false
}

// Manual is the channel that a person serves.
type Manual struct{}

// Name implements [Channel].
func (Manual) Name() string { return "manual" }

// Block implements [Channel]: there is nobody to tell.
func (Manual) Block(_ context.Context, b Block) (string, error) { return b.ID, nil }

// Unblock implements [Channel].
func (Manual) Unblock(context.Context, string) error { return nil }

// Pull implements [Channel].
func (Manual) Pull(context.Context, Feed) (Pulled, error) { return Pulled{Unchanged: true}, nil }
