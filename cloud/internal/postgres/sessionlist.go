package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// AdministratorSession describes one login of an administrator.
type AdministratorSession struct {
	ID        string // not the token, so it grants no access
	StartedAt *string
	Address   *string
	Agent     *string // the browser's User-Agent
	ExpiresAt time.Time
}

// AdministratorSessions returns the live sessions of an administrator, latest first.
func AdministratorSessions(ctx context.Context, q Querier, loginID string, now time.Time) ([]AdministratorSession, error) {
	rows, err := q.Query(ctx, `
		select coalesce(data ->> 'sid', ''), data ->> 'startedAt', data ->> 'address', data ->> 'agent', expires_at from session
		where data ? 'adminLoginId' and data ->> 'adminLoginId' = $1 and expires_at > $2 order by expires_at desc`, loginID, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[AdministratorSession])
}

// EndAdministratorSession ends one session of an administrator and reports whether it existed.
func EndAdministratorSession(ctx context.Context, q Querier, loginID, id string) (bool, error) {
	tag, err := q.Exec(ctx, `
		delete from session where data ? 'adminLoginId' and data ->> 'adminLoginId' = $1 and data ->> 'sid' = $2`, loginID, id)
	return tag.RowsAffected() > 0, err
}

// AdministratorState is an administrator as listed in the console.
type AdministratorState struct {
	LoginID    string
	Role       string
	Branches   []string
	Disabled   bool
	Demo       bool
	SecondStep bool
	Sessions   int
}

// AdministratorStates returns all administrators by login id.
func AdministratorStates(ctx context.Context, q Querier, now time.Time) ([]AdministratorState, error) {
	rows, err := q.Query(ctx, `
		select a.login_id, a.role, array(select b.code from branch b join administrator_branch ab on ab.branch_id = b.id
		                                 where ab.administrator_id = a.id order by b.id),
		       a.disabled_at is not null, a.demo, a.totp_secret is not null,
		       (select count(*) from session s where s.data ? 'adminLoginId' and s.data ->> 'adminLoginId' = a.login_id and s.expires_at > $1)
		from administrator a order by a.login_id`, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[AdministratorState])
}

// SetRole changes an administrator's role.
func SetRole(ctx context.Context, q Querier, loginID, role string) error {
	return changeAdministrator(q.Exec(ctx, `update administrator set role = $2, updated_at = clock_timestamp() where login_id = $1`, loginID, role))
}
