package backoffice

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// ChangePriceRules replaces the price rules of a room, if they are the expected ones; nil: any. Holds and reservations keep their price.
//
// Errors: reserve.ErrNoRoom, [booking.InvalidError], ErrChanged.
func (s *Service) ChangePriceRules(ctx context.Context, branch booking.Branch, no int, expected, rules []booking.PriceRule, by string) error {
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "room.prices", Target: roomTarget(branch, no)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		read, _ := branch.Room(no)
		if err := postgres.LockRooms(ctx, tx, read.ID); err != nil {
			return err
		}
		before, err := postgres.BranchOf(ctx, tx, branch.ID)
		if err != nil {
			return err
		}
		old, ok := before.Room(no)
		if !ok {
			return reserve.ErrNoRoom
		}
		room := old
		if room.PriceRules = expected; expected != nil && len(booking.Differences(old.Facts(), room.Facts())) > 0 {
			return ErrChanged
		}
		room.PriceRules = rules
		if err := room.Validate(); err != nil {
			return err
		}
		entry.Detail = map[string]any{"changes": booking.Differences(old.Facts(), room.Facts())}
		return postgres.SetRoomPrices(ctx, tx, branch.Code, no, rules)
	})
}
