package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoOption is returned if no air conditioner has an option with that id.
var ErrNoOption = errors.New("postgres: no such air conditioner option")

// OptionByID returns an option of any branch, or ErrNoOption.
func OptionByID(ctx context.Context, q Querier, id string) (o Option, err error) {
	err = q.QueryRow(ctx, `
		select o.id, b.code, o.unit, o.path from airconditioner_option o join branch b on b.id = o.branch_id where o.id = $1`, id,
	).Scan(&o.ID, &o.Branch, &o.Unit, &o.Path)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, ErrNoOption
	}
	return o, err
}

// InsertCommand logs a command to an air conditioner and its outcome.
func InsertCommand(ctx context.Context, q Querier, o Option, by, outcome string, now time.Time) error {
	_, err := q.Exec(ctx, `
		insert into airconditioner_command (branch_id, option_id, unit, path, requested_by, at, outcome)
		select id, $2, $3, $4, $5, $6, $7 from branch where code = $1`, o.Branch, o.ID, o.Unit, o.Path, by, now, outcome)
	return err
}
