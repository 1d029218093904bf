package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// FoundBranch is a branch with its distance from the place of a search.
type FoundBranch struct {
	booking.Branch
	Distance *int // meters; nil: unknown
	Online   bool // its agent is connected
}

// BranchPage returns a page of the branches with rooms on sale. more reports whether further branches follow.
func (db *DB) BranchPage(ctx context.Context, search booking.BranchSearch) (page []FoundBranch, more bool, err error) {
	after, skip := search.After, 0
	if search.Near != nil {
		after, skip = 0, search.After
	}
	lat, lon := coordinates(search.Near)
	// The distance on a sphere with the mean radius of the earth (haversine).
	rows, err := db.Pool.Query(ctx, `
		select code, revision, distance, coalesce(i.online, false) from branch b left join agent_inventory i on i.branch_id = b.id, lateral (
			select case when b.latitude is not null and b.longitude is not null and $4::float8 is not null then round(2 * 6371000 * asin(least(1, sqrt(
				sin(radians(b.latitude - $4) / 2) ^ 2 + cos(radians($4)) * cos(radians(b.latitude)) * sin(radians(b.longitude - $5) / 2) ^ 2))))::integer end as distance
		) d
		where b.id > $1 and exists (select from room r where r.branch_id = b.id and r.enabled) and strpos(lower(concat_ws(' ', code, name_ko, name_en, address)), lower($2)) > 0
		order by distance nulls last, b.id offset $6 limit $3`, after, search.Text, search.Limit+1, lat, lon, skip)
	if err != nil {
		return nil, false, fmt.Errorf("page of branches: %w", err)
	}
	type found struct {
		branchVersion
		distance *int
		online   bool
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
		err = row.Scan(&f.Code, &f.Revision, &f.distance, &f.online)
		return f, err
	})
	if err != nil {
		return nil, false, fmt.Errorf("page of branches: %w", err)
	}
	if more = len(list) > search.Limit; more {
		list = list[:search.Limit]
	}
	versions := make([]branchVersion, len(list))
	for i, f := range list {
		versions[i] = f.branchVersion
	}
	current, err := db.currentBranches(ctx, versions)
	if err != nil {
		return nil, false, fmt.Errorf("page of branches: %w", err)
	}
	for _, f := range list {
		if b, ok := current[f.Code]; ok { // one that was deleted meanwhile is not
			page = append(page, FoundBranch{b, f.distance, f.online})
		}
	}
	return page, more, nil
}

// OccupiedRooms returns the times within a window at which rooms of branches are occupied.
func (db *DB) OccupiedRooms(ctx context.Context, branches []booking.BranchID, window booking.Interval, now time.Time) (map[booking.RoomID][]booking.Interval, error) {
	rows, err := db.Pool.Query(ctx, `
		select r.room_id, r.start_at, r.end_at from reservation r
		where r.branch_id = any($1) and r.start_at < $3 and r.start_at > $2 and r.`+liveStates+`
		  and (r.state <> 'HOLD' or r.expires_at > $4)`,
		branches, window.Start.Add(-booking.MaxLength-booking.MaxMargin), window.End.Add(booking.MaxMargin), now)
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
