package channel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ErrUnknownEvent is returned for an event of an unsupported type.
var ErrUnknownEvent = errors.New("channel: unknown event type")

// Limits on the fields of an event.
const (
	maxExternalID = 200 // characters
	maxName       = 50
	maxPhone      = 20
)

// ParseEvent parses an inbound event whose signature was verified: a booking created, updated or cancelled at the
// partner. An event whose Seq is not higher than the known one is outdated; the caller repeats its first answer.
func ParseEvent(body []byte) (Booking, error) {
	var w struct {
		Type       string    `json:"type"`
		ExternalID string    `json:"externalId"`
		ListingID  string    `json:"listingId"`
		Start      time.Time `json:"start"`
		End        time.Time `json:"end"`
		Seq        int64     `json:"seq"`
		Customer   struct {
			Name  string `json:"name"`
			Phone string `json:"phone"`
		} `json:"customer"`
	}
	if len(body) > MaxEventBody {
		return Booking{}, fmt.Errorf("channel: event of %d bytes is too long", len(body))
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(body, &w); {
	case errors.As(err, &wrong) && wrong.Field != "":
		return Booking{}, fmt.Errorf("channel: event: %s is a JSON %s", wrong.Field, wrong.Value)
	case errors.As(err, &wrong): // whose text describes our struct
		return Booking{}, fmt.Errorf("channel: event: a JSON %s instead of an object", wrong.Value)
	case err != nil:
		return Booking{}, fmt.Errorf("channel: event: %w", err)
	}
	b := Booking{
		ExternalID: w.ExternalID, ListingID: w.ListingID, Start: w.Start, End: w.End, Seq: w.Seq,
		Name: printable(w.Customer.Name), Phone: printable(w.Customer.Phone),
	}
	switch w.Type {
	case "booking.created", "booking.updated":
		if w.Start.IsZero() || !w.End.After(w.Start) {
			return Booking{}, errors.New("channel: event: start and end are required, and the end must be after the start")
		}
	case "booking.cancelled":
		b.Cancelled = true
	default:
		return Booking{}, ErrUnknownEvent
	}
	switch {
	case w.ExternalID == "" || utf8.RuneCountInString(w.ExternalID) > maxExternalID:
		return Booking{}, fmt.Errorf("channel: event: externalId has 1 to %d characters", maxExternalID)
	case w.ListingID == "" || utf8.RuneCountInString(w.ListingID) > maxExternalID:
		return Booking{}, fmt.Errorf("channel: event: listingId has 1 to %d characters", maxExternalID)
	case printable(w.ExternalID) != w.ExternalID || printable(w.ListingID) != w.ListingID:
		return Booking{}, errors.New("channel: event: externalId and listingId have no control characters")
	case w.Seq < 0:
		return Booking{}, errors.New("channel: event: seq is negative")
	case utf8.RuneCountInString(b.Name) > maxName || utf8.RuneCountInString(b.Phone) > maxPhone:
		return Booking{}, fmt.Errorf("channel: event: the customer's name has at most %d characters, the phone number %d", maxName, maxPhone)
	}
	return b, nil
}

// printable removes control characters: the database stores no NUL, and a terminal would execute others.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// Statuses in the answer to an event.
const (
	StatusAccepted = "ACCEPTED"
	StatusConflict = "CONFLICT" // HTTP 409: the partner must refuse its customer
)
