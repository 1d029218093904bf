package backoffice

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// ClosureRequest closes branches on certain days.
type ClosureRequest struct {
	Branches []string // codes
	Rule     booking.ClosureRule
	Reason   string
	Preview  bool // nothing changes
	Undo     bool // removes the closures of the same rule and reason
}

// ClosureConflict is a live reservation on a day that is closed.
type ClosureConflict struct {
	Branch booking.Branch
	booking.Reservation
}

// CloseBranches closes branches and returns the live reservations on the closed days. It cancels none of them; only holds
// without a payment are released. A hold that is taken at the same time is either among the conflicts, or rejected. It
// returns booking.ErrNoBranch, ErrChanged or a [booking.InvalidError].
func (s *Service) CloseBranches(ctx context.Context, req ClosureRequest, by string) ([]ClosureConflict, error) {
	branches := make([]booking.Branch, len(req.Branches))
	for i, code := range req.Branches {
		var err error
		if branches[i], err = s.DB.Branch(ctx, code); err != nil {
			return nil, err
		}
	}
	conflicts := []ClosureConflict{}
	for _, b := range branches {
		found, err := s.closeBranch(ctx, b, req, by)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			conflicts = append(conflicts, ClosureConflict{b, r})
		}
	}
	return conflicts, nil
}

func (s *Service) closeBranch(ctx context.Context, b booking.Branch, req ClosureRequest, by string) (conflicts []booking.Reservation, err error) {
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		current, err := postgres.BranchOf(ctx, tx, b.ID)
		if err != nil {
			return err
		}
		// Holds in progress finish first, so that they are among the conflicts; later ones see the new revision.
		if !req.Preview {
			if err := postgres.LockRooms(ctx, tx, roomIDs(current)...); err != nil {
				return err
			}
		}
		closures := req.Rule.Closures(booking.DateOf(now, current.Zone), req.Reason)
		next := current
		if next.Schedule = current.Schedule.WithClosures(closures); req.Undo {
			next.Schedule = current.Schedule.WithoutClosures(closures)
		}
		if err := next.Validate(); err != nil {
			return err
		}
		if conflicts, err = closedOut(ctx, tx, current, next.Schedule, now); err != nil || req.Preview {
			return err
		}
		for _, r := range conflicts {
			if r.State != booking.Hold || r.QuarantineOf != 0 {
				continue
			}
			if _, err := postgres.SetState(ctx, tx, r.ID, booking.Hold, booking.Released); err != nil {
				return err
			}
		}
		if err := postgres.EditBranch(ctx, tx, next); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Branch: b.Code, BranchID: &b.ID, Action: "settings.closure", Target: b.Code,
			Detail: settingsDetail{booking.Differences(current.Facts(), next.Facts()), len(conflicts)}})
	})
	return conflicts, err
}
