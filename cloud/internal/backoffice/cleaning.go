package backoffice

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/gallery"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// RoomsToClean returns the rooms of branches that are to be cleaned now; nil is every branch.
func (s *Service) RoomsToClean(ctx context.Context, branches []string) ([]postgres.RoomToClean, error) {
	return postgres.RoomsToClean(ctx, s.DB.Pool, branches, s.DB.Now())
}

// ErrNothingToPhotograph is returned for a photo of a room in which no stay has ended in the last days.
var ErrNothingToPhotograph = errors.New("backoffice: no stay has ended in the room")

// Cleaned records that a room was cleaned, with a photo of it unless upload is empty. The photo is encoded again, so nothing
// but its pixels is kept. Errors: ErrNothingToPhotograph, gallery.ErrPhoto.
func (s *Service) Cleaned(ctx context.Context, branch booking.Branch, room booking.Room, upload []byte, by string) error {
	var photo []byte
	if len(upload) > 0 {
		files, err := gallery.Encode(ctx, upload, gallery.Card)
		if err != nil {
			return err
		}
		photo = files[0].Data
	}
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "room.cleaned", Target: roomTarget(branch, room.No),
		Detail: map[string]any{"photo": photo != nil}}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if photo != nil {
			stored, err := postgres.PutCleaningPhoto(ctx, tx, room.ID, postgres.CleaningPhoto{TakenAt: now, TakenBy: by, Data: photo})
			if err != nil {
				return err
			}
			if !stored {
				return ErrNothingToPhotograph
			}
		}
		return postgres.PutCleaned(ctx, tx, room.ID, now)
	})
}
