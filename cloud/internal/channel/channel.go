package channel

import (
	"context"
	"errors"
	"time"
)

// Names of channels, as stored with a listing. That of calendars, ical, is written by package postgres only.
const (
	NameGateway = "gateway"
	NameManual  = "manual" // maintained by staff
)

// Puller reads the bookings that were made at a channel.
type Puller interface {
	Pull(ctx context.Context, f Feed) (Pulled, error)
}

// ErrRejected is returned if the channel rejects a request permanently.
var ErrRejected = errors.New("the channel rejects the request")

// Block is a reserved time that a channel must not sell.
type Block struct {
	ID         string // our id, the same for every attempt
	ListingID  string // the channel's id of the room
	Start, End time.Time
}

// Booking is a time sold at a channel.
type Booking struct {
	ExternalID string // the channel's id, stable over the booking's lifetime
	ListingID  string // the channel's id of the room; "" if the feed implies it
	Start, End time.Time
	Cancelled  bool
	Seq        int64  // of two versions, the one with the higher number is newer
	Name       string // "" if the channel does not disclose it
	Phone      string
}

// Feed is a calendar to import.
type Feed struct {
	URL    string
	Zone   *time.Location // for times without a zone
	Cursor Cursor         // from the last successful pull; the zero value forces a full read
}

// Cursor holds the validators with which a server can answer that nothing changed.
type Cursor struct {
	ETag         string
	LastModified string
}

// Pulled is the result of reading a calendar.
type Pulled struct {
	Unchanged bool // nothing changed since the cursor; Bookings is empty
	Bookings  []Booking
	Cursor    Cursor
	// Problems lists entries that could not be parsed. A calendar with problems is incomplete: a booking missing from
	// it is not evidence of a cancellation.
	Problems []string
}

// RetryAfter returns the delay after the given number of failed attempts to reach a channel (1 for the first): 1, 4,
// 16 and 64 minutes, then hourly for a day. ok is false when it is time to alert an operator.
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
