package reserve

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// SwitchRoom turns a room on or off. Off needs a room without reservations: *RoomBusy lists what stands in the way.
// The room's lock makes a hold taken at the same moment wait, so a room that is off never has one.
func (s *Service) SwitchRoom(ctx context.Context, code string, no int, enabled bool, by string) error {
	branch, room, err := s.room(ctx, code, no)
	if err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, room.ID); err != nil {
			return err
		}
		if !enabled {
			conflicts, err := postgres.Blocking(ctx, tx, room.ID, now)
			if err != nil {
				return err
			}
			if len(conflicts) > 0 {
				return &RoomBusy{branch.Zone, conflicts}
			}
		}
		if err := postgres.SetRoomEnabled(ctx, tx, room.ID, enabled); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: by, Branch: code, Action: "room.switch", Target: fmt.Sprintf("%s/%d", code, no), Detail: map[string]any{"enabled": enabled},
		})
	})
}
