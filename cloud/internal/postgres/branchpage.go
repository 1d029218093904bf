package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// BranchPage returns at most limit branches whose code, name or address contains query, in the order in which they were
// added, starting after the branch with id after. more reports whether further branches follow.
func (db *DB) BranchPage(ctx context.Context, query string, after booking.BranchID, limit int) (page []booking.Branch, more bool, err error) {
	rows, err := db.Pool.Query(ctx, `
		select code, revision from branch
		where id > $1 and strpos(lower(concat_ws(' ', code, name_ko, name_en, address)), lower($2)) > 0
		order by id limit $3`, after, query, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("page of branches: %w", err)
	}
	type version struct {
		Code     string
		Revision int64
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[version])
	if err != nil {
		return nil, false, fmt.Errorf("page of branches: %w", err)
	}
	more = len(list) > limit
	for _, v := range list[:min(len(list), limit)] {
		branch, cached := db.branches.get(v.Code)
		if !cached || branch.Revision != v.Revision {
			if branch, err = db.loadBranch(ctx, v.Code); errors.Is(err, ErrNoBranch) {
				continue // deleted in the meantime
			} else if err != nil {
				return nil, false, fmt.Errorf("branch %s: %w", v.Code, err)
			}
		}
		page = append(page, branch)
	}
	return page, more, nil
}

// OccupiedRooms returns the times within a window at which rooms of branches are occupied.
func (db *DB) OccupiedRooms(ctx context.Context, branches []booking.BranchID, window booking.Interval, now time.Time) (map[booking.RoomID][]booking.Interval, error) {
	rows, err := db.Pool.Query(ctx, `
		select r.room_id, r.start_at, r.end_at from reservation r
		where r.branch_id = any($1) and r.start_at < $3 and r.start_at > $2 and r.`+liveStates+`
		  and (r.state <> 'HOLD' or r.expires_at > $4)`,
		branches, window.Start.Add(-booking.MaxLength-2*booking.Margin), window.End.Add(booking.Margin), now)
	if err != nil {
		return nil, fmt.Errorf("occupied rooms: %w", err)
	}
	occupied := map[booking.RoomID][]booking.Interval{}
	var room booking.RoomID
	var taken booking.Interval
	_, err = pgx.ForEachRow(rows, []any{&room, &taken.Start, &taken.End}, func() error {
		occupied[room] = append(occupied[room], taken)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("occupied rooms: %w", err)
	}
	return occupied, nil
}
