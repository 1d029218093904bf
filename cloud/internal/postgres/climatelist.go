package postgres

import (
	"context"
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

// LatestReadings returns the last reading of each location. Locations without one are not in the map.
func LatestReadings(ctx context.Context, q Querier, branch booking.BranchID, locations []string) (map[string]SensorReading, error) {
	rows, err := q.Query(ctx, `
		select location, latest.at, latest.celsius, latest.humidity from unnest($2::text[]) location,
		       lateral (select at, celsius, humidity from sensor_reading s where s.branch_id = $1 and s.location = location.location
		                order by at desc limit 1) latest`, branch, locations)
	if err != nil {
		return nil, err
	}
	latest := map[string]SensorReading{}
	var location string
	var r SensorReading
	_, err = pgx.ForEachRow(rows, []any{&location, &r.At, &r.Celsius, &r.Humidity}, func() error {
		latest[location] = r
		return nil
	})
	return latest, err
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
