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

// ErrBranchCode is returned for a code that cannot identify a branch.
var ErrBranchCode = errors.New("backoffice: the code of a branch is 1 to 40 of a-z, 0-9 and '-'")

// NewBranch is a branch to be added.
type NewBranch struct {
	Code           string
	NameKo, NameEn string
	Address, Phone string
	Like           booking.Branch // hours, rules, rooms and prices are copied from it; zero: open day and night, no rooms
}

// AddBranch adds a branch. Its rooms are disabled until their doors are proven, as rooms that are added one by one, so guests
// do not see the branch yet. It returns ErrBranchCode, a [booking.InvalidError] or ErrBranchExists.
func (s *Service) AddBranch(ctx context.Context, n NewBranch, by string) error {
	if !booking.ValidBranchCode(n.Code) {
		return ErrBranchCode
	}
	b := booking.DefaultBranch()
	if n.Like.Code != "" {
		b = n.Like
	}
	b.Code, b.NameKo, b.NameEn, b.Address, b.Phone, b.Location, b.LegalEntity = n.Code, n.NameKo, n.NameEn, n.Address, n.Phone, nil, ""
	if err := b.Validate(); err != nil {
		return err
	}
	entry := audit.Entry{Actor: by, Branch: n.Code, Action: "branch.add", Target: n.Code, Detail: map[string]any{"copyOf": n.Like.Code, "rooms": len(n.Like.Rooms)}}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		id, err := postgres.AddBranch(ctx, tx, b)
		if err != nil {
			return err
		}
		for _, room := range n.Like.Rooms {
			room.TurnoverMinutes = int(room.Margin() / time.Minute)
			room.Lock = nextLock(booking.Room{}, false, room.Lock == booking.LockNone)
			if err := postgres.EditRoom(ctx, tx, id, room); err != nil {
				return err
			}
			if err := postgres.SetRoomPrices(ctx, tx, n.Code, room.No, room.PriceRules); err != nil {
				return err
			}
		}
		return nil
	})
}
