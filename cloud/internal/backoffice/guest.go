package backoffice

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

var (
	// ErrNoGuest is returned for a reservation without a phone number.
	ErrNoGuest = errors.New("backoffice: the reservation has no phone number")
	// ErrNoNote is returned for a note that does not exist.
	ErrNoNote = errors.New("backoffice: no such note")
)

// maxStays is the number of reservations on the page of a guest.
const maxStays = 100

// Guest is what is known about the phone number of a reservation.
type Guest struct {
	Mobile string
	Name   string // of the latest reservation that has one
	Stays  []Found
	Notes  []postgres.GuestNote
	Block  postgres.GuestBlock
}

// mobileOf returns the normalised phone number of a reservation, or ErrNoGuest.
func mobileOf(r Record) (string, error) {
	if mobile := booking.NormalizePhone(r.Mobile); mobile != "" {
		return mobile, nil
	}
	return "", ErrNoGuest
}

// Guest returns the guest of a reservation as the administrator of branches may see it, and records the view.
func (s *Service) Guest(ctx context.Context, r Record, branches []string, by string) (Guest, error) {
	mobile, err := mobileOf(r)
	if err != nil {
		return Guest{}, err
	}
	g := Guest{Mobile: r.Mobile}
	stays, err := postgres.StaysOfGuest(ctx, s.DB.Pool, branches, mobile, maxStays)
	if err != nil {
		return g, err
	}
	for _, stay := range stays {
		branch, err := s.DB.BranchByID(ctx, stay.Branch)
		if err != nil {
			return g, err
		}
		g.Stays = append(g.Stays, Found{branch, stay})
		if g.Name == "" {
			g.Name = stay.Name
		}
	}
	if g.Notes, err = postgres.GuestNotes(ctx, s.DB.Pool, branches, mobile); err != nil {
		return g, err
	}
	if g.Block, err = postgres.BlockOfGuest(ctx, s.DB.Pool, mobile); err != nil {
		return g, err
	}
	return g, s.Viewed(ctx, by, "guest.view", target(r.ID), r.Branch.ID)
}

// changeGuest changes what is kept about the guest of a reservation. The audit log names the reservation, not the number.
func (s *Service) changeGuest(ctx context.Context, r Record, by, action string, change func(context.Context, pgx.Tx, string, time.Time) error) error {
	mobile, err := mobileOf(r)
	if err != nil {
		return err
	}
	entry := audit.Entry{Actor: by, Branch: r.Branch.Code, Action: action, Target: target(r.ID)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		return change(ctx, tx, mobile, now)
	})
}

// NoteGuest adds a note about the guest of a reservation and returns its id.
func (s *Service) NoteGuest(ctx context.Context, r Record, text, by string) (id int64, err error) {
	err = s.changeGuest(ctx, r, by, "guest.note", func(ctx context.Context, tx pgx.Tx, mobile string, now time.Time) (err error) {
		id, err = postgres.AddGuestNote(ctx, tx, r.Branch.ID, mobile, postgres.GuestNote{Text: text, By: by, At: now})
		return err
	})
	return id, err
}

// RemoveNote removes a note of branches about the guest of a reservation. Errors: ErrNoNote.
func (s *Service) RemoveNote(ctx context.Context, r Record, branches []string, note int64, by string) error {
	return s.changeGuest(ctx, r, by, "guest.note-removed", func(ctx context.Context, tx pgx.Tx, mobile string, _ time.Time) error {
		removed, err := postgres.RemoveGuestNote(ctx, tx, branches, mobile, note)
		if err == nil && !removed {
			err = ErrNoNote
		}
		return err
	})
}

// BlockGuest keeps the phone number of a reservation from reserving in any branch.
func (s *Service) BlockGuest(ctx context.Context, r Record, reason, by string) error {
	return s.changeGuest(ctx, r, by, "guest.block", func(ctx context.Context, tx pgx.Tx, mobile string, now time.Time) error {
		return postgres.BlockGuest(ctx, tx, mobile, postgres.GuestBlock{Reason: reason, By: by, At: now})
	})
}

// UnblockGuest lets the phone number of a reservation reserve again.
func (s *Service) UnblockGuest(ctx context.Context, r Record, by string) error {
	return s.changeGuest(ctx, r, by, "guest.unblock", func(ctx context.Context, tx pgx.Tx, mobile string, _ time.Time) error {
		return postgres.UnblockGuest(ctx, tx, mobile)
	})
}
