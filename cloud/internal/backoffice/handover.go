package backoffice

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	handoverShown = 14 * 24 * time.Hour // after they were done
	maxHandovers  = 200
)

// Handovers returns the notes for the next shift of a branch: open ones, and those done in the last two weeks.
func (s *Service) Handovers(ctx context.Context, branch booking.Branch) ([]postgres.Handover, error) {
	return postgres.HandoversOf(ctx, s.DB.Pool, branch.ID, s.DB.Now().Add(-handoverShown), maxHandovers)
}

// AddHandover adds a note for the next shift and returns its id.
func (s *Service) AddHandover(ctx context.Context, branch booking.Branch, text, by string) (id int64, err error) {
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "handover.add"}
	err = s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
		id, err = postgres.AddHandover(ctx, tx, branch.ID, text, by, now)
		entry.Target = strconv.FormatInt(id, 10)
		return err
	})
	return id, err
}

// SetHandover records that a note is done, or opens it again. Errors: ErrNoNote.
func (s *Service) SetHandover(ctx context.Context, branch booking.Branch, id int64, done bool, by string) error {
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "handover.done", Target: strconv.FormatInt(id, 10), Detail: map[string]any{"done": done}}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		doer := ""
		if done {
			doer = by
		}
		found, err := postgres.SetHandoverDone(ctx, tx, branch.ID, id, doer, now)
		if err == nil && !found {
			err = ErrNoNote
		}
		return err
	})
}
