package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

const selectAdministrator = `
	select a.login_id, a.password_hash, a.role, a.totp_secret is not null or exists (select from passkey p where p.administrator_id = a.id), a.demo, a.disabled_at, a.created_at,
	       array(select b.code from administrator_branch ab join branch b on b.id = ab.branch_id
	             where ab.administrator_id = a.id and a.role <> 'hq' order by b.id)
	from administrator a `

func scanAdministrator(row pgx.CollectableRow) (a booking.Administrator, err error) {
	var disabled *time.Time
	err = row.Scan(&a.LoginID, &a.PasswordHash, &a.Role, &a.SecondFactor, &a.Demo, &disabled, &a.CreatedAt, &a.Branches)
	a.DisabledAt = value(disabled)
	return a, err
}

// AdministratorByLogin returns an administrator, enabled or not, or booking.ErrNoAdministrator.
func AdministratorByLogin(ctx context.Context, q Querier, loginID string) (booking.Administrator, error) {
	rows, err := q.Query(ctx, selectAdministrator+`where a.login_id = $1`, loginID)
	if err != nil {
		return booking.Administrator{}, err
	}
	a, err := pgx.CollectExactlyOneRow(rows, scanAdministrator)
	if errors.Is(err, pgx.ErrNoRows) {
		return booking.Administrator{}, booking.ErrNoAdministrator
	}
	return a, err
}

// Administrators returns all administrators by login id.
func Administrators(ctx context.Context, q Querier) ([]booking.Administrator, error) {
	rows, err := q.Query(ctx, selectAdministrator+`order by a.login_id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanAdministrator)
}

// InsertAdministrator adds an administrator with its branches. It returns booking.ErrAdministratorExists or
// ErrNoBranch.
func InsertAdministrator(ctx context.Context, tx pgx.Tx, a booking.Administrator) error {
	_, err := tx.Exec(ctx, `insert into administrator (login_id, password_hash, role, demo) values ($1, $2, $3, $4)`,
		a.LoginID, a.PasswordHash, a.Role, a.Demo)
	if IsUniqueViolation(err, "administrator_login_id_key") {
		return booking.ErrAdministratorExists
	}
	if err != nil {
		return err
	}
	return SetAdministratorBranches(ctx, tx, a.LoginID, a.Branches)
}

// SetAdministratorBranches replaces an administrator's branches. An administrator of role hq has none assigned. It
// returns ErrNoBranch for an unknown code.
func SetAdministratorBranches(ctx context.Context, tx pgx.Tx, loginID string, codes []string) error {
	var found int
	err := tx.QueryRow(ctx, `
		with target as (select id from administrator where login_id = $1),
		wanted as (select id from branch where code = any($2)),
		gone as (delete from administrator_branch where administrator_id = (select id from target)
		         and branch_id not in (select id from wanted)),
		added as (insert into administrator_branch (administrator_id, branch_id)
		          select target.id, wanted.id from target, wanted on conflict do nothing)
		select count(*) from wanted`, loginID, codes).Scan(&found)
	if err != nil {
		return err
	}
	if found != len(codes) {
		return ErrNoBranch
	}
	return nil
}

// SetPasswordHash changes an administrator's password. demo marks the password of the demo data.
func SetPasswordHash(ctx context.Context, q Querier, loginID, hash string, demo bool) error {
	return changeAdministrator(q.Exec(ctx,
		`update administrator set password_hash = $2, demo = $3, updated_at = clock_timestamp() where login_id = $1`,
		loginID, hash, demo))
}

// HasPasswordHash reports whether an administrator who is not disabled has a password's hash. It waits for a change in progress, and
// in a transaction it lets no other one begin.
func HasPasswordHash(ctx context.Context, q Querier, loginID, hash string) (has bool, err error) {
	err = q.QueryRow(ctx, `select password_hash = $2 and disabled_at is null from administrator where login_id = $1 for no key update`, loginID, hash).Scan(&has)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return has, err
}

// ReplaceHash replaces a password's hash unless the password has changed in the meantime.
func ReplaceHash(ctx context.Context, q Querier, loginID, old, hash string) error {
	_, err := q.Exec(ctx, `
		update administrator set password_hash = $3, updated_at = clock_timestamp()
		where login_id = $1 and password_hash = $2`, loginID, old, hash)
	return err
}

// SetDisabled disables an administrator from a time on, or enables the account if the time is zero.
func SetDisabled(ctx context.Context, q Querier, loginID string, since time.Time) error {
	return changeAdministrator(q.Exec(ctx,
		`update administrator set disabled_at = $2, updated_at = clock_timestamp() where login_id = $1`, loginID, null(since)))
}

// LockHeadquarters locks the accounts of the headquarters that can log in, and returns how many there are.
func LockHeadquarters(ctx context.Context, tx pgx.Tx) (n int, err error) {
	tag, err := tx.Exec(ctx, `select from administrator where role = 'hq' and disabled_at is null order by login_id for update`)
	return int(tag.RowsAffected()), err
}

// DeleteAdministrator deletes an administrator.
func DeleteAdministrator(ctx context.Context, q Querier, loginID string) error {
	return changeAdministrator(q.Exec(ctx, `delete from administrator where login_id = $1`, loginID))
}

func changeAdministrator(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return booking.ErrNoAdministrator
	}
	return err
}

// DemoAccounts returns the administrators and agents that still have the demo data's secrets and are not
// disabled, as "administrator hq" or "agent agent-gangnam". The service does not start with any of them on
// an address that is reachable from elsewhere.
func DemoAccounts(ctx context.Context, q Querier) ([]string, error) {
	rows, err := q.Query(ctx, `
		select 'administrator ' || login_id from administrator where demo and disabled_at is null
		union all
		select 'agent ' || username from agent_credential where demo and revoked_at is null
		order by 1`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
