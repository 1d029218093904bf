package backoffice

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// RoomsToClean returns the rooms of branches that are to be cleaned now; nil is every branch.
func (s *Service) RoomsToClean(ctx context.Context, branches []string) ([]postgres.RoomToClean, error) {
	return postgres.RoomsToClean(ctx, s.DB.Pool, branches, s.DB.Now())
}

// Cleaned records that a room was cleaned.
func (s *Service) Cleaned(ctx context.Context, branch booking.Branch, room booking.Room, by string) error {
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "room.cleaned", Target: roomTarget(branch, room.No)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		return postgres.PutCleaned(ctx, tx, room.ID, now)
	})
}
