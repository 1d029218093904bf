package backoffice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Overview returns a page of branches (codes; nil: all), the worst first, that begins behind a branch given by its severity
// and id.
func (s *Service) Overview(ctx context.Context, branches []string, afterSeverity, afterID, limit int) ([]postgres.BranchOverview, error) {
	var severe []string
	for _, kind := range alert.Kinds() {
		severe = append(severe, string(kind))
	}
	return postgres.Overview(ctx, s.DB.Pool, postgres.OverviewQuery{
		Branches: branches, Severe: severe, AfterSeverity: afterSeverity, AfterID: afterID, Limit: limit,
	}, s.DB.Now())
}

// DoorLevels returns the service of the doors of branches (codes; nil: all) over some days, the worst first.
func (s *Service) DoorLevels(ctx context.Context, branches []string, days int) ([]door.Level, error) {
	levels, err := postgres.DoorLevels(ctx, s.DB.Pool, branches, days, s.DB.Now())
	order := []door.Verdict{door.Failing, door.Watch, door.TooFew, door.Good}
	slices.SortStableFunc(levels, func(a, b door.Level) int {
		return cmp.Compare(slices.Index(order, a.Verdict()), slices.Index(order, b.Verdict()))
	})
	return levels, err
}

// Grouping is how the rows of an occupancy report are formed.
type Grouping string

// The groupings.
const (
	ByRoom    Grouping = "room"
	ByWeekday Grouping = "weekday"
	ByHour    Grouping = "hour"
	ByDay     Grouping = "day"
)

// Valid reports whether g is one of the groupings.
func (g Grouping) Valid() bool {
	return slices.Contains([]Grouping{ByRoom, ByWeekday, ByHour, ByDay}, g)
}

// OccupancyRow is a row of an occupancy report.
type OccupancyRow struct {
	Key             string // room number, weekday (1 is Monday), hour (00 to 23) or date
	SoldMinutes     int
	SellableMinutes int // of rooms on sale within opening hours
	Amount          int // won, of the stays that begin here
}

// Occupancy reports sold and sellable time of a branch on the days from a date to another one, both included, in the order of
// the keys. Today's schedule and rooms are applied to all days.
func (s *Service) Occupancy(ctx context.Context, b booking.Branch, from, to booking.Date, by Grouping) ([]OccupancyRow, error) {
	start, end := from.At(0, b.Zone), to.AddDays(1).At(0, b.Zone)
	sold, err := postgres.SoldTimes(ctx, s.DB.Pool, int(b.ID), start, end)
	if err != nil {
		return nil, err
	}
	report := occupancy{zone: b.Zone, by: by, rows: map[string]*OccupancyRow{}}
	var onSale []int
	for _, room := range b.Rooms {
		if room.Enabled {
			onSale = append(onSale, room.No)
		}
	}
	for slot := start; slot.Before(end); slot = slot.Add(booking.SlotLength) {
		if b.Schedule.Check(booking.Interval{Start: slot, End: slot.Add(booking.SlotLength)}, b.Zone) != nil {
			continue
		}
		if by != ByRoom {
			report.row(slot, 0).SellableMinutes += len(onSale) * int(booking.SlotLength/time.Minute)
			continue
		}
		for _, no := range onSale {
			report.row(slot, no).SellableMinutes += int(booking.SlotLength / time.Minute)
		}
	}
	for _, stay := range sold {
		if !stay.Start.Before(start) {
			report.row(stay.Start, stay.Room).Amount += stay.Amount
		}
		for at := stay.Start; at.Before(stay.End); at = at.Add(booking.SlotLength) {
			if !at.Before(start) && at.Before(end) {
				report.row(at, stay.Room).SoldMinutes += int(booking.SlotLength / time.Minute)
			}
		}
	}
	return report.sorted(), nil
}

// occupancy collects the rows of a report.
type occupancy struct {
	zone *time.Location
	by   Grouping
	rows map[string]*OccupancyRow
}

func (o occupancy) row(at time.Time, room int) *OccupancyRow {
	local := at.In(o.zone)
	var key string
	switch o.by {
	case ByRoom:
		key = fmt.Sprintf("%04d", room)
	case ByWeekday:
		key = strconv.Itoa((int(local.Weekday())+6)%7 + 1)
	case ByHour:
		key = local.Format("15")
	case ByDay:
		key = local.Format(time.DateOnly)
	}
	row, ok := o.rows[key]
	if !ok {
		row = &OccupancyRow{Key: key}
		o.rows[key] = row
	}
	return row
}

func (o occupancy) sorted() []OccupancyRow {
	list := make([]OccupancyRow, 0, len(o.rows))
	for _, row := range o.rows {
		list = append(list, *row)
	}
	slices.SortFunc(list, func(a, b OccupancyRow) int { return cmp.Compare(a.Key, b.Key) })
	if o.by == ByRoom {
		for i := range list {
			no, _ := strconv.Atoi(list[i].Key) // it was formed from a number
			list[i].Key = strconv.Itoa(no)
		}
	}
	return list
}

// SumOccupancy adds reports of several branches by key. The keys of rooms are branch/number, and their numbers are in numeric order.
func SumOccupancy(reports ...[]OccupancyRow) []OccupancyRow {
	rows := map[string]*OccupancyRow{}
	var order []string
	for _, report := range reports {
		for _, r := range report {
			row, ok := rows[r.Key]
			if !ok {
				row = &OccupancyRow{Key: r.Key}
				rows[r.Key], order = row, append(order, r.Key)
			}
			row.SoldMinutes += r.SoldMinutes
			row.SellableMinutes += r.SellableMinutes
			row.Amount += r.Amount
		}
	}
	slices.SortFunc(order, func(a, b string) int {
		a, aNo, _ := strings.Cut(a, "/")
		b, bNo, _ := strings.Cut(b, "/")
		return cmp.Or(cmp.Compare(a, b), cmp.Compare(len(aNo), len(bNo)), cmp.Compare(aNo, bNo))
	})
	list := make([]OccupancyRow, 0, len(order))
	for _, key := range order {
		list = append(list, *rows[key])
	}
	return list
}
