// Package events offers the stream of changes to other programs: by reading it page by page, and by webhooks, which
// deliver it to their receivers (docs/specification.md, Events and Webhooks).
package events

import (
	"context"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Retention is the time events are kept.
const Retention = 30 * 24 * time.Hour

// ErrGone is returned for a place of the stream whose following events are no longer kept.
var ErrGone = postgres.ErrEventGone

// Event is an event as clients and receivers see it: a notification of a change, without names and keys. The client reads
// the subject if it needs more.
type Event struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Type    string    `json:"type"`
	Branch  *string   `json:"branch"`
	Subject string    `json:"subject"`
	Version int64     `json:"version"`
}

func eventOf(e postgres.Event) Event {
	return Event{ID: strconv.FormatInt(e.Place, 10), At: e.At, Type: e.Type, Branch: e.Branch, Subject: e.Subject, Version: e.Version}
}

// Service reads the stream.
type Service struct {
	DB *postgres.DB
}

// List returns up to limit events of the branches of a principal after a place, and the place to continue from. A change
// that was committed before the call is included. It returns ErrGone.
func (s *Service) List(ctx context.Context, by account.Principal, after int64, limit int) ([]Event, int64, error) {
	if err := s.DB.PlaceEvents(ctx, true); err != nil {
		return nil, 0, err
	}
	found, next, err := postgres.Events(ctx, s.DB.Pool, postgres.EventFilter{After: after, Limit: limit, Branches: by.Reach()})
	if err != nil {
		return nil, 0, err
	}
	list := make([]Event, len(found))
	for i, e := range found {
		list[i] = eventOf(e)
	}
	return list, next, nil
}
