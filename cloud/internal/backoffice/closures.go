package backoffice

import (
	"context"
	"slices"
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

	// Closed limits an undo to what a closure has added, in the state that it has left. nil: no limit.
	Closed []ClosedBranch
}

// ClosedBranch is a branch as a closure has left it.
type ClosedBranch struct {
	Code     string
	Revision int64
	Kept     []booking.Date // the first days of equal closures that existed before
}

// ClosureResult is what a closure has met and changed.
type ClosureResult struct {
	Conflicts []ClosureConflict
	Closed    []ClosedBranch // none of a preview
}

// ClosureConflict is a live reservation on a day that is closed.
type ClosureConflict struct {
	Branch booking.Branch
	booking.Reservation
}

// closureGroup is the number of branches that one transaction closes. A transaction waits for the disk once, and delays the holds of its
// branches for some milliseconds. If one fails, the earlier groups stay closed, so the console sends one group per request.
const closureGroup = 50

// CloseBranches closes branches and returns the live reservations on the closed days, by branch. It cancels none of them; only holds
// without a payment are released. A hold that is taken at the same time is either among the conflicts, or rejected. It
// returns booking.ErrNoBranch, a [booking.InvalidError], or ErrChanged if a branch has changed since the closure that is undone.
func (s *Service) CloseBranches(ctx context.Context, req ClosureRequest, by string) (result ClosureResult, err error) {
	known, err := postgres.BranchesByCode(ctx, s.DB.Pool, req.Branches)
	if err != nil {
		return result, err
	}
	for _, code := range req.Branches {
		if !slices.ContainsFunc(known, func(b booking.Branch) bool { return b.Code == code }) {
			return result, booking.ErrNoBranch
		}
	}
	for codes := range slices.Chunk(req.Branches, closureGroup) {
		group, err := s.closeGroup(ctx, codes, req, by)
		if err != nil {
			return result, err
		}
		result.Conflicts = append(result.Conflicts, group.Conflicts...)
		result.Closed = append(result.Closed, group.Closed...)
	}
	return result, nil
}

func (s *Service) closeGroup(ctx context.Context, codes []string, req ClosureRequest, by string) (result ClosureResult, err error) {
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		result = ClosureResult{}
		branches, err := postgres.BranchesByCode(ctx, tx, codes)
		if err != nil {
			return err
		}
		// Holds in progress finish first, so that they are among the conflicts; later ones see the new revision.
		if !req.Preview {
			if err := postgres.LockRooms(ctx, tx, roomIDs(branches)...); err != nil {
				return err
			}
		}
		upcoming := map[booking.BranchID][]booking.Reservation{}
		list, err := postgres.Upcoming(ctx, tx, now, branchIDs(branches)...)
		if err != nil {
			return err
		}
		for _, r := range list {
			upcoming[r.Branch] = append(upcoming[r.Branch], r)
		}
		for _, b := range branches {
			closed, err := req.apply(b, now)
			if err != nil {
				return err
			}
			found := req.conflicts(b, now, upcoming[b.ID])
			for _, r := range found {
				result.Conflicts = append(result.Conflicts, ClosureConflict{b, r})
			}
			if req.Preview {
				continue
			}
			if err := closeBranch(ctx, tx, b, closed, found, by); err != nil {
				return err
			}
			after, err := postgres.BranchOf(ctx, tx, b.ID)
			if err != nil {
				return err
			}
			result.Closed = append(result.Closed, ClosedBranch{b.Code, after.Revision, req.kept(b, now)})
		}
		return nil
	})
	return result, err
}

// kept returns the first days of the closures of the rule that a branch has.
func (r ClosureRequest) kept(b booking.Branch, now time.Time) (days []booking.Date) {
	for _, c := range r.closures(b, now) {
		if slices.Contains(b.Schedule.Closures, c) {
			days = append(days, c.From)
		}
	}
	return days
}

// undone returns those closures that the closure of a branch has added, or ErrChanged if the branch has changed since.
func (r ClosureRequest) undone(b booking.Branch, closures []booking.Closure) ([]booking.Closure, error) {
	if r.Closed == nil {
		return closures, nil
	}
	i := slices.IndexFunc(r.Closed, func(c ClosedBranch) bool { return c.Code == b.Code })
	if i < 0 || r.Closed[i].Revision != b.Revision {
		return nil, ErrChanged
	}
	return slices.DeleteFunc(closures, func(c booking.Closure) bool { return slices.Contains(r.Closed[i].Kept, c.From) }), nil
}

// apply returns a branch with the closures, or without them.
func (r ClosureRequest) apply(b booking.Branch, now time.Time) (booking.Branch, error) {
	closures, schedule := r.closures(b, now), b.Schedule
	if r.Undo {
		var err error
		if closures, err = r.undone(b, closures); err != nil {
			return b, err
		}
	}
	if b.Schedule = schedule.WithClosures(closures); r.Undo {
		b.Schedule = schedule.WithoutClosures(closures)
	}
	return b, b.Validate()
}

func (r ClosureRequest) closures(b booking.Branch, now time.Time) []booking.Closure {
	return r.Rule.Closures(booking.DateOf(now, b.Zone), r.Reason)
}

// conflicts returns the reservations on the closed days, those included that an earlier closure has left there.
func (r ClosureRequest) conflicts(b booking.Branch, now time.Time, upcoming []booking.Reservation) []booking.Reservation {
	if r.Undo {
		return nil
	}
	b.Schedule.Closures = nil
	return closedOut(b, b.Schedule.WithClosures(r.closures(b, now)), upcoming)
}

func closeBranch(ctx context.Context, tx pgx.Tx, before, after booking.Branch, conflicts []booking.Reservation, by string) error {
	for _, r := range conflicts {
		if r.State != booking.Hold || r.QuarantineOf != 0 {
			continue
		}
		if _, err := postgres.SetState(ctx, tx, r.ID, booking.Hold, booking.Released); err != nil {
			return err
		}
	}
	if err := postgres.EditBranch(ctx, tx, after); err != nil {
		return err
	}
	return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Branch: before.Code, BranchID: &before.ID, Action: "settings.closure", Target: before.Code,
		Detail: settingsDetail{booking.Differences(before.Facts(), after.Facts()), len(conflicts)}})
}

func branchIDs(branches []booking.Branch) []booking.BranchID {
	ids := make([]booking.BranchID, len(branches))
	for i, b := range branches {
		ids[i] = b.ID
	}
	return ids
}
