package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// SecondStep is the stored state of an administrator's authenticator. Secrets are sealed with purpose "totp".
type SecondStep struct {
	Secret  []byte // empty if disabled
	Pending []byte // generated, not yet confirmed
	Step    int64  // time step of the last used code
	Passkey bool   // whether there is a passkey
}

// On reports whether a password alone is not enough to log in.
func (s SecondStep) On() bool { return len(s.Secret) > 0 || s.Passkey }

// SecondStepOf returns the authenticator of an administrator, or booking.ErrNoAdministrator.
func SecondStepOf(ctx context.Context, q Querier, loginID string) (s SecondStep, err error) {
	err = q.QueryRow(ctx, `
		select totp_secret, totp_pending, totp_step, exists (select from passkey p where p.administrator_id = a.id)
		from administrator a where login_id = $1`, loginID).Scan(&s.Secret, &s.Pending, &s.Step, &s.Passkey)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, booking.ErrNoAdministrator
	}
	return s, err
}

// BeginSecondStep stores a pending secret.
func BeginSecondStep(ctx context.Context, q Querier, loginID string, pending []byte) error {
	return changeAdministrator(q.Exec(ctx, `update administrator set totp_pending = $2 where login_id = $1`, loginID, pending))
}

// UseStep consumes the code of a time step and reports whether it was unused. confirm makes the pending secret the
// active one.
func UseStep(ctx context.Context, q Querier, loginID string, step int64, confirm bool) (bool, error) {
	tag, err := q.Exec(ctx, `
		update administrator set totp_step = $2, totp_secret = case when $3 then totp_pending else totp_secret end,
		       totp_pending = case when $3 then null else totp_pending end
		where login_id = $1 and totp_step < $2`, loginID, step, confirm)
	return tag.RowsAffected() == 1, err
}

// EndSecondStep disables an administrator's authenticator, and the recovery codes unless a passkey remains.
func EndSecondStep(ctx context.Context, q Querier, loginID string) error {
	_, err := q.Exec(ctx, `
		delete from administrator_recovery r using administrator a
		where a.login_id = $1 and r.administrator_id = a.id and not exists (select from passkey p where p.administrator_id = a.id)`, loginID)
	if err != nil {
		return err
	}
	return changeAdministrator(q.Exec(ctx, `update administrator set totp_secret = null, totp_pending = null where login_id = $1`, loginID))
}

// ReplaceRecoveryCodes stores the hashes of an administrator's recovery codes, replacing all others.
func ReplaceRecoveryCodes(ctx context.Context, q Querier, loginID string, hashes [][]byte) error {
	_, err := q.Exec(ctx, `
		with target as (select id from administrator where login_id = $1),
		replaced as (delete from administrator_recovery where administrator_id = (select id from target))
		insert into administrator_recovery (administrator_id, code_hash) select target.id, hash from target, unnest($2::bytea[]) as hash`, loginID, hashes)
	return err
}

// UseRecoveryCode consumes the recovery code that has one of the hashes, and reports whether it existed.
func UseRecoveryCode(ctx context.Context, q Querier, loginID string, hashes [][]byte) (bool, error) {
	tag, err := q.Exec(ctx, `
		delete from administrator_recovery where code_hash = any($2) and administrator_id = (select id from administrator where login_id = $1)`, loginID, hashes)
	return tag.RowsAffected() == 1, err
}
