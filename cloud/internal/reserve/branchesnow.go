package reserve

import (
	"context"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// BranchNow is a branch with its availability until the end of tomorrow.
type BranchNow struct {
	booking.Branch
	Today     booking.DayStatus
	FreeRooms int       // rooms that can be reserved from the current slot on
	NextFree  time.Time // the first available start today or tomorrow, which may be now; zero: none
	Distance  *int      // meters; nil: the search or the branch has no location
	Online    bool      // its agent is connected, so that doors open by the key's page
}

// BranchesNow returns a page of branches with their current availability. The number of database queries does not depend on
// the number of branches.
func (s *Service) BranchesNow(ctx context.Context, search booking.BranchSearch) (page []BranchNow, more bool, err error) {
	branches, more, err := s.DB.BranchPage(ctx, search)
	if err != nil {
		return nil, false, err
	}
	now := s.now()
	ids := make([]booking.BranchID, 0, len(branches))
	for _, b := range branches {
		ids = append(ids, b.ID)
	}
	// Tomorrow ends within 49 hours, on the day on which clocks are set back, and the longest minimum length reaches an hour further.
	window := booking.Interval{Start: now.Truncate(booking.SlotLength), End: now.Add(50 * time.Hour)}
	occupied, err := s.DB.OccupiedRooms(ctx, ids, window, now)
	if err != nil {
		return nil, false, err
	}
	for _, b := range branches {
		view := branchNow(b.Branch, occupied, now)
		view.Distance, view.Online = b.Distance, b.Online
		page = append(page, view)
	}
	return page, more, nil
}

func branchNow(b booking.Branch, occupied map[booking.RoomID][]booking.Interval, now time.Time) BranchNow {
	today := booking.DateOf(now, b.Zone)
	view := BranchNow{Branch: b, Today: b.Schedule.Day(today)}
	current, end := booking.LastMark(now, b.Zone), today.AddDays(2).At(0, b.Zone)
	for start := current; start.Before(end); start = start.Add(booking.SlotLength) {
		if b.Schedule.Check(booking.Interval{Start: start, End: start.Add(booking.SlotLength)}, b.Zone) != nil {
			continue // in one step for all rooms: a night has many closed slots
		}
		for _, room := range b.Rooms {
			stay := booking.Interval{Start: start, End: start.Add(b.PriceAt(room, start).Shortest())}
			if room.Enabled && stay.End.After(start) && booking.CheckStart(stay, now) == nil && b.Schedule.Check(stay, b.Zone) == nil && vacant(stay, occupied[room.ID], room.Margin()) {
				view.FreeRooms++
			}
		}
		if view.FreeRooms > 0 {
			view.NextFree = start
			if start.After(current) {
				view.FreeRooms = 0
			}
			return view
		}
	}
	return view
}

// vacant reports whether a stay keeps the margin to all taken times.
func vacant(stay booking.Interval, taken []booking.Interval, margin time.Duration) bool {
	for _, other := range taken {
		if stay.Occupied(margin).Overlaps(other.Occupied(margin)) {
			return false
		}
	}
	return true
}
