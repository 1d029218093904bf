package gallery

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Bounds of what a room shows.
const (
	MaxPhotos      = 6
	MaxDescription = 500 // characters
	MaxAmenities   = 12
	MaxAmenity     = 30  // characters
	MaxAlt         = 100 // characters
)

// Errors of the changes.
var (
	ErrFull    = errors.New("gallery: the room has the maximum number of photos")
	ErrNoPhoto = errors.New("gallery: the room has no such photo")
)

// Service reads and changes what rooms show.
type Service struct {
	DB *postgres.DB
}

// Prefix and Suffix of the paths of the files.
const (
	Prefix = "/photos/"
	Suffix = ".jpg"
)

// Path returns the path of a file on the pages. It contains the hash of the content, so browsers may keep the file.
func Path(f booking.PhotoFile) string { return Prefix + f.Name + Suffix }

// ValidName reports whether name can be that of a file.
func ValidName(name string) bool {
	sum, err := hex.DecodeString(name)
	return err == nil && len(sum) == nameBytes
}

// Rooms returns what the rooms of a branch show, by number.
func (s *Service) Rooms(ctx context.Context, branch booking.BranchID) ([]booking.RoomProfile, error) {
	return postgres.RoomProfiles(ctx, s.DB.Pool, branch)
}

// Covers returns the first photo of each branch that has one.
func (s *Service) Covers(ctx context.Context, branches []booking.BranchID) (map[booking.BranchID]booking.Photo, error) {
	return postgres.BranchCovers(ctx, s.DB.Pool, branches)
}

// Cover returns the first photo of a room, or nil.
func (s *Service) Cover(ctx context.Context, room booking.RoomID) (*booking.Photo, error) {
	return postgres.RoomCover(ctx, s.DB.Pool, room)
}

// Media types of the files.
const (
	JPEG = "image/jpeg"
	WebP = "image/webp"
	AVIF = "image/avif"
)

// File returns a stored file in the smallest format that the client accepts, and its media type. data is nil if there is none
// with that name.
func (s *Service) File(ctx context.Context, name, accept string) (data []byte, mediaType string, err error) {
	data, webp, avif, err := postgres.PhotoFile(ctx, s.DB.Pool, name, strings.Contains(accept, WebP), strings.Contains(accept, AVIF))
	switch {
	case avif:
		mediaType = AVIF
	case webp:
		mediaType = WebP
	default:
		mediaType = JPEG
	}
	return data, mediaType, err
}

// Describe replaces description and amenities of a room. It returns a [booking.InvalidError].
func (s *Service) Describe(ctx context.Context, branch booking.Branch, room booking.Room, p booking.RoomProfile, by string) error {
	if len(p.Amenities) > MaxAmenities {
		return &booking.InvalidError{Field: "amenities", Problem: fmt.Sprintf("%d; at most %d", len(p.Amenities), MaxAmenities)}
	}
	for _, a := range p.Amenities {
		for _, text := range []string{a.Ko, a.En} {
			if n := utf8.RuneCountInString(text); n == 0 || n > MaxAmenity {
				return &booking.InvalidError{Field: "amenities", Problem: fmt.Sprintf("a text has %d characters; expected 1 to %d in both languages", n, MaxAmenity)}
			}
		}
	}
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "room.describe", Target: target(branch, room),
		Detail: map[string]any{"descriptionKo": p.Description.Ko, "descriptionEn": p.Description.En, "amenities": p.Amenities}}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.PutRoomProfile(ctx, tx, room.ID, p); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, entry)
	})
}

// AddPhoto stores an uploaded photo after those of the room. It returns ErrPhoto or ErrFull.
func (s *Service) AddPhoto(ctx context.Context, branch booking.Branch, room booking.Room, data []byte, alt booking.Bilingual, by string) (id int64, err error) {
	files, err := encodeAll(ctx, data, widths...)
	if err != nil {
		return 0, err
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.LockRooms(ctx, tx, room.ID); err != nil {
			return err
		}
		n, err := postgres.CountPhotos(ctx, tx, room.ID)
		if err != nil {
			return err
		}
		if n >= MaxPhotos {
			return ErrFull
		}
		if id, err = postgres.AddPhoto(ctx, tx, room.ID, alt); err != nil {
			return err
		}
		for _, f := range files {
			if err := postgres.AddPhotoFile(ctx, tx, id, postgres.StoredPhoto(f)); err != nil {
				return err
			}
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Branch: branch.Code, Action: "room.photo-add", Target: target(branch, room),
			Detail: map[string]any{"photo": id, "name": files[len(files)-1].Name}})
	})
	return id, err
}

// RemovePhoto deletes a photo of a room with its files. It returns ErrNoPhoto.
func (s *Service) RemovePhoto(ctx context.Context, branch booking.Branch, room booking.Room, id int64, by string) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		found, err := postgres.DeletePhoto(ctx, tx, room.ID, id)
		if err != nil {
			return err
		}
		if !found {
			return ErrNoPhoto
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Branch: branch.Code, Action: "room.photo-remove", Target: target(branch, room),
			Detail: map[string]any{"photo": id}})
	})
}

func target(branch booking.Branch, room booking.Room) string {
	return branch.Code + "/" + strconv.Itoa(room.No)
}
