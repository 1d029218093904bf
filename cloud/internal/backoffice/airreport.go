package backoffice

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// airLookBack is how long before a report a unit can have been switched on.
const airLookBack = 7 * 24 * time.Hour

// AirRow is the air of a room with a climate policy on a day.
type AirRow struct {
	RoomNo          int
	Unit            string
	Date            booking.Date
	RunMinutes      int // from a command to the one that switched the unit off; nothing measures the unit itself
	IdleMinutes     int // of these, without a stay in any room of the unit
	Cost            *int
	Low, Mean, High *float64 // °C; nil: the sensor did not report
	NoEffect        int      // commands that were judged to have had no effect
}

// Air reports the running time, the cost and the temperature of the rooms of a branch on the days from a date to another one,
// both included, by room and day. The policies of today are applied to all days.
func (s *Service) Air(ctx context.Context, b booking.Branch, from, to booking.Date) ([]AirRow, error) {
	start, end := from.At(0, b.Zone), to.AddDays(1).At(0, b.Zone)
	policies, err := postgres.ClimatePolicies(ctx, s.DB.Pool, b.ID)
	if err != nil {
		return nil, err
	}
	commands, err := postgres.AirCommands(ctx, s.DB.Pool, b.ID, start.Add(-airLookBack), end)
	if err != nil {
		return nil, err
	}
	stays, err := postgres.SoldTimes(ctx, s.DB.Pool, int(b.ID), start, end)
	if err != nil {
		return nil, err
	}
	temperatures, err := postgres.AirDays(ctx, s.DB.Pool, b.ID, start, end, b.Zone)
	if err != nil {
		return nil, err
	}
	failures, err := postgres.AirFailures(ctx, s.DB.Pool, b.ID, start, end, b.Zone)
	if err != nil {
		return nil, err
	}
	until := s.DB.Now()
	if end.Before(until) {
		until = end
	}
	var rows []AirRow
	for _, p := range policies {
		runs, uses := runsOf(p.Unit, commands, until), usesOf(p.Unit, policies, stays)
		for day := from; !to.Before(day); day = day.AddDays(1) {
			row := airRow(p, day, b.Zone, runs, uses)
			midnight := day.At(0, time.UTC)
			for _, t := range temperatures {
				if p.Sensor != nil && t.Location == *p.Sensor && t.Day.Equal(midnight) {
					row.Low, row.Mean, row.High = tenths(t.Low), tenths(t.Mean), tenths(t.High)
				}
			}
			for _, f := range failures {
				if f.RoomNo == p.RoomNo && f.Day.Equal(midnight) {
					row.NoEffect = f.Count
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// airRow returns the running time of a room's unit on a day, and its cost. runs are the times at which the unit was on, uses those at which any of
// its rooms had a stay.
func airRow(p postgres.ClimatePolicy, date booking.Date, zone *time.Location, runs, uses []booking.Interval) AirRow {
	day := []booking.Interval{{Start: date.At(0, zone), End: date.AddDays(1).At(0, zone)}}
	running := overlap(day, runs)
	run := length(running)
	row := AirRow{RoomNo: p.RoomNo, Unit: p.Unit, Date: date, RunMinutes: minutes(run), IdleMinutes: minutes(run - length(overlap(running, uses)))}
	if p.HourlyCost != nil {
		row.Cost = new(int(math.Round(float64(*p.HourlyCost) * run.Hours())))
	}
	return row
}

func tenths(v float64) *float64 { return new(math.Round(v*10) / 10) }

func minutes(d time.Duration) int { return int(math.Round(d.Minutes())) }

// runsOf returns the times at which a unit was on, by its commands.
func runsOf(unit string, commands []postgres.AirCommand, until time.Time) (runs []booking.Interval) {
	var on *time.Time
	for _, c := range commands {
		switch {
		case c.Unit != unit:
		case !c.Off && on == nil:
			on = &c.At
		case c.Off && on != nil:
			runs, on = append(runs, booking.Interval{Start: *on, End: c.At}), nil
		}
	}
	if on != nil && on.Before(until) {
		runs = append(runs, booking.Interval{Start: *on, End: until})
	}
	return runs
}

// usesOf returns the times at which any room of a unit had a stay, without overlaps.
func usesOf(unit string, policies []postgres.ClimatePolicy, stays []postgres.SoldTime) (uses []booking.Interval) {
	var times []booking.Interval
	for _, stay := range stays {
		if slices.ContainsFunc(policies, func(p postgres.ClimatePolicy) bool { return p.RoomNo == stay.Room && p.Unit == unit }) {
			times = append(times, booking.Interval{Start: stay.Start, End: stay.End})
		}
	}
	slices.SortFunc(times, func(a, b booking.Interval) int { return a.Start.Compare(b.Start) })
	for _, t := range times {
		if n := len(uses); n > 0 && !t.Start.After(uses[n-1].End) {
			if t.End.After(uses[n-1].End) {
				uses[n-1].End = t.End
			}
			continue
		}
		uses = append(uses, t)
	}
	return uses
}

// overlap returns the parts of a that are also in b.
func overlap(a, b []booking.Interval) (parts []booking.Interval) {
	for _, x := range a {
		for _, y := range b {
			part := booking.Interval{Start: x.Start, End: x.End}
			if y.Start.After(part.Start) {
				part.Start = y.Start
			}
			if y.End.Before(part.End) {
				part.End = y.End
			}
			if part.Start.Before(part.End) {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

func length(list []booking.Interval) (sum time.Duration) {
	for _, i := range list {
		sum += i.End.Sub(i.Start)
	}
	return sum
}
