package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// LiveState is a snapshot of a branch. The difference between two snapshots shows what has changed.
type LiveState struct {
	Revision     int64                                 // of the branch and its rooms
	Reservations map[booking.ReservationID]LiveVersion // the live ones of the day; ended ones are missing
	Doors        time.Time                             // time of the latest door event of the last day
	Door         string                                // door of the latest event
	Agent        string                                // version and connection of the agent; empty if there never was one
	Settings     string                                // of the settings of the branch's agents, and what these report about them
	Sensors      time.Time                             // when a sensor last reported within a day
	Ledger       int64                                 // id of the latest entry of any day; 0 if there is no recent one
	Refunds      string                                // the number of open refunds and their latest change
}

// LiveVersion is a reservation's state and version.
type LiveVersion struct {
	State   booking.State
	Version int
}

// liveWindow is the age up to which events and readings are updates. They are found in one or two partitions.
const liveWindow = 24 * time.Hour

// Live reads a snapshot of a branch and one of its days in one round trip, using indexes only. It returns ErrNoBranch.
func Live(ctx context.Context, q Querier, branch string, day booking.Interval, now time.Time) (LiveState, error) {
	state := LiveState{Reservations: map[booking.ReservationID]LiveVersion{}}
	batch := new(pgx.Batch)
	found := false
	batch.Queue(`select revision from branch where code = $1`, branch).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			found = true
			if err := rows.Scan(&state.Revision); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	batch.Queue(`
		select r.id, r.state, r.version from reservation r join branch b on b.id = r.branch_id
		where b.code = $1 and `+overlaps("r", "$2", "$3")+`
		  and (r.state <> 'HOLD' or r.expires_at > $4) and r.`+liveStates, branch, day.Start, day.End, now).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var (
				id booking.ReservationID
				v  LiveVersion
			)
			if err := rows.Scan(&id, &v.State, &v.Version); err != nil {
				return err
			}
			state.Reservations[id] = v
		}
		return rows.Err()
	})
	batch.Queue(`
		select at, device from (
			(select e.at, e.device from door_event e join branch b on b.id = e.branch_id where b.code = $1 and e.at > $3 and e.at < $4 order by e.at desc limit 1)
			union all
			(select greatest(d.created_at, d.finished_at), d.device from door_request d join branch b on b.id = d.branch_id
			 where b.code = $1 and d.created_at > $2 order by 1 desc limit 1)
		) latest order by at desc limit 1`, branch, now.Add(-time.Minute), now.Add(-liveWindow), now.Add(liveWindow)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&state.Doors, &state.Door); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	batch.Queue(`
		select i.online::text || ' ' || i.version || ' ' || i.started_at,
		       coalesce((select max(latest.at) from jsonb_array_elements_text(coalesce(nullif(i.inventory -> 'sensors', 'null'), '[]')) location,
		                 lateral (select s.at from sensor_reading s where s.branch_id = i.branch_id and s.location = location.value
		                          and s.at > $2 and s.at < $3 order by s.at desc limit 1) latest), 'epoch')
		from agent_inventory i join branch b on b.id = i.branch_id where b.code = $1`, branch, now.Add(-liveWindow), now.Add(liveWindow)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&state.Agent, &state.Sensors); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	batch.Queue(`
		select coalesce(string_agg(concat_ws(' ', a.username, a.online, a.report -> 'settings', s.version, s.state), ',' order by a.username), '')
		from agent_credential a join branch b on b.id = a.branch_id
		     left join lateral (select version, state from agent_settings where username = a.username order by version desc limit 1) s on true
		where b.code = $1 and a.revoked_at is null`, branch).QueryRow(func(row pgx.Row) error { return row.Scan(&state.Settings) })
	batch.Queue(`
		select coalesce((select max(l.id) from (select id, reservation_id from ledger order by id desc limit 50) l
		                 join reservation r on r.id = l.reservation_id where r.branch_id = b.id), 0),
		       (select concat(count(*), ' ', max(f.updated_at)) from refund f join reservation r on r.id = f.reservation_id
		        where r.branch_id = b.id and f.state not in ('COMPLETED', 'REFUSED'))
		from branch b where b.code = $1`, branch).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&state.Ledger, &state.Refunds)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err := q.SendBatch(ctx, batch).Close(); err != nil {
		return LiveState{}, err
	}
	if !found {
		return LiveState{}, ErrNoBranch
	}
	return state, nil
}
