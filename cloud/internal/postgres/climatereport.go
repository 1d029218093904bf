package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// AirCommand is a command that a unit obeyed, as far as is known.
type AirCommand struct {
	Unit string
	At   time.Time
	Off  bool // the leave option of a policy
}

// AirCommands returns the commands to the units of a branch's policies in a window, by unit and time. A command that was judged
// to have had no effect is not among them.
func AirCommands(ctx context.Context, q Querier, branch booking.BranchID, from, until time.Time) ([]AirCommand, error) {
	rows, err := q.Query(ctx, `
		with unit as (select unit, array_agg(leave_option) as off from climate_policy where branch_id = $1 group by unit)
		select c.unit, c.at, c.option_id = any(u.off) from airconditioner_command c join unit u on u.unit = c.unit
		where c.branch_id = $1 and c.outcome = 'sent' and c.at >= $2 and c.at < $3
		  and not (c.requested_by = $4 and exists (
			select from climate_intent i join climate_policy p on p.room_id = i.room_id
			where i.branch_id = $1 and p.unit = c.unit and i.option_id = c.option_id and i.state = 'no-effect' and c.at between i.at and i.judged_at))
		order by c.unit, c.at, c.id`, branch, from, until, ClimateActor)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[AirCommand])
}

// AirDay is the temperature of a location on a day, in °C.
type AirDay struct {
	Location        string
	Day             time.Time // midnight UTC of the local date
	Low, Mean, High float64
}

// AirDays returns the temperatures of the sensors of a branch's policies in a window, by day of the time zone.
func AirDays(ctx context.Context, q Querier, branch booking.BranchID, from, until time.Time, zone *time.Location) ([]AirDay, error) {
	rows, err := q.Query(ctx, `
		select s.location, (s.at at time zone $4)::date::timestamp at time zone 'UTC', min(s.celsius), avg(s.celsius), max(s.celsius) from sensor_reading s
		where s.branch_id = $1 and s.at >= $2 and s.at < $3 and s.location in (select sensor from climate_policy where branch_id = $1)
		group by 1, 2 order by 1, 2`, branch, from, until, zone.String())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[AirDay])
}

// AirFailure is the number of commands for a room that had no effect on a day.
type AirFailure struct {
	RoomNo int
	Day    time.Time // midnight UTC of the local date
	Count  int
}

// AirFailures returns the intents of a branch without effect in a window, by room and day of the time zone.
func AirFailures(ctx context.Context, q Querier, branch booking.BranchID, from, until time.Time, zone *time.Location) ([]AirFailure, error) {
	rows, err := q.Query(ctx, `
		select m.no, (i.at at time zone $4)::date::timestamp at time zone 'UTC', count(*) from climate_intent i join room m on m.id = i.room_id
		where i.branch_id = $1 and i.state = 'no-effect' and i.at >= $2 and i.at < $3 group by 1, 2`, branch, from, until, zone.String())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[AirFailure])
}
