package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// SensorReading is a reading of a sensor.
type SensorReading struct {
	At       time.Time
	Celsius  float64
	Humidity float64 // percent
}

// recentReadings is the age up to which the last reading of a location is found in one or two partitions.
const recentReadings = day

// LatestReadings returns the last reading of each location. Locations without one are not in the map. Only for locations whose sensor has
// been silent for a day, every partition is read.
func LatestReadings(ctx context.Context, q Querier, branch booking.BranchID, locations []string, now time.Time) (map[string]SensorReading, error) {
	latest := map[string]SensorReading{}
	recent := booking.Interval{Start: now.Add(-recentReadings), End: now.Add(recentReadings)}
	for _, span := range []booking.Interval{recent, {End: now.Add(partitionLead)}} {
		silent := slices.DeleteFunc(slices.Clone(locations), func(l string) bool { _, ok := latest[l]; return ok })
		if len(silent) == 0 {
			break
		}
		rows, err := q.Query(ctx, `
			select location, latest.at, latest.celsius, latest.humidity from unnest($2::text[]) location,
			       lateral (select at, celsius, humidity from sensor_reading s where s.branch_id = $1 and s.location = location.location
			                and s.at > $3 and s.at < $4 order by at desc limit 1) latest`, branch, silent, span.Start, span.End)
		if err != nil {
			return nil, err
		}
		var location string
		var r SensorReading
		if _, err := pgx.ForEachRow(rows, []any{&location, &r.At, &r.Celsius, &r.Humidity}, func() error {
			latest[location] = r
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return latest, nil
}

// Readings returns the readings of a sensor since a time, oldest first, averaged over step.
func Readings(ctx context.Context, q Querier, branch booking.BranchID, location string, since time.Time, step time.Duration) ([]SensorReading, error) {
	rows, err := q.Query(ctx, `
		select date_bin($4, at, 'epoch') as bin, avg(celsius), avg(humidity) from sensor_reading
		where branch_id = $1 and location = $2 and at >= $3 group by bin order by bin`, branch, location, since, step)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[SensorReading])
}

// ClimateCommand is a command that was sent to an air conditioner.
type ClimateCommand struct {
	At      time.Time
	Unit    string
	Path    []string
	By      string
	Outcome string
}

// ClimateCommands returns the latest commands of a branch, newest first.
func ClimateCommands(ctx context.Context, q Querier, branch booking.BranchID, limit int) ([]ClimateCommand, error) {
	rows, err := q.Query(ctx, `
		select at, unit, path, requested_by, outcome from airconditioner_command where branch_id = $1 order by id desc limit $2`, branch, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[ClimateCommand])
}
