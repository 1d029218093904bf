package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// DoctorCheck is the last result of a check of the installation.
type DoctorCheck struct {
	Name, State string    // ok, warn or fail
	At          time.Time // of the check
}

// PutDoctorChecks stores the results of a run and removes those of checks that no longer exist.
func PutDoctorChecks(ctx context.Context, q Querier, states map[string]string, now time.Time) error {
	var names, values []string
	for name, state := range states {
		names, values = append(names, name), append(values, state)
	}
	_, err := q.Exec(ctx, `
		with obsolete as (delete from doctor_check where name <> all($1))
		insert into doctor_check (name, state, since, at) select name, state, $3, $3 from unnest($1::text[], $2::text[]) as given (name, state)
		on conflict (name) do update set state = excluded.state, at = excluded.at,
			since = case when doctor_check.state = excluded.state then doctor_check.since else excluded.since end`, names, values, now)
	if err != nil {
		return fmt.Errorf("store the results of doctor: %w", err)
	}
	return nil
}

// DoctorChecks returns the last result of each check.
func DoctorChecks(ctx context.Context, q Querier) ([]DoctorCheck, error) {
	rows, err := q.Query(ctx, `select name, state, at from doctor_check order by name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[DoctorCheck])
}
