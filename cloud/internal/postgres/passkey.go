package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Passkey is a passkey as its owner sees it.
type Passkey struct {
	ID         int64
	Name       string
	CreatedAt  time.Time
	LastUsedAt *time.Time
}

// PasskeysOf returns the passkeys of an administrator, oldest first.
func PasskeysOf(ctx context.Context, q Querier, loginID string) ([]Passkey, error) {
	rows, err := q.Query(ctx, `
		select p.id, p.name, p.created_at, p.last_used_at from passkey p join administrator a on a.id = p.administrator_id
		where a.login_id = $1 order by p.id`, loginID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Passkey])
}

// PasskeyOwnerRow is an administrator with the stored form of the passkeys.
type PasskeyOwnerRow struct {
	ID          int
	LoginID     string
	Credentials [][]byte
}

const selectPasskeyOwner = `
	select a.id, a.login_id, array(select convert_to(p.credential::text, 'UTF8') from passkey p where p.administrator_id = a.id order by p.id)
	from administrator a `

func onePasskeyOwner(ctx context.Context, q Querier, where string, arg any) (PasskeyOwnerRow, error) {
	rows, err := q.Query(ctx, selectPasskeyOwner+where, arg)
	if err != nil {
		return PasskeyOwnerRow{}, err
	}
	owner, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[PasskeyOwnerRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return owner, booking.ErrNoAdministrator
	}
	return owner, err
}

// PasskeyOwner returns an administrator with the passkeys, or booking.ErrNoAdministrator.
func PasskeyOwner(ctx context.Context, q Querier, loginID string) (PasskeyOwnerRow, error) {
	return onePasskeyOwner(ctx, q, `where a.login_id = $1`, loginID)
}

// PasskeyOwnerByCredential returns the administrator who has a passkey, or booking.ErrNoAdministrator.
func PasskeyOwnerByCredential(ctx context.Context, q Querier, credentialID []byte) (PasskeyOwnerRow, error) {
	return onePasskeyOwner(ctx, q, `where a.id = (select administrator_id from passkey where credential_id = $1)`, credentialID)
}

// InsertPasskey stores a passkey and returns its id.
func InsertPasskey(ctx context.Context, q Querier, loginID, name string, credentialID, credential []byte, now time.Time) (id int64, err error) {
	err = q.QueryRow(ctx, `
		insert into passkey (administrator_id, credential_id, credential, name, created_at)
		select id, $2, $3, $4, $5 from administrator where login_id = $1 returning id`,
		loginID, credentialID, string(credential), name, now).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, booking.ErrNoAdministrator
	}
	return id, err
}

// UsePasskey stores the state of a passkey after its use and reports whether it still exists.
func UsePasskey(ctx context.Context, q Querier, credentialID, credential []byte, now time.Time) (bool, error) {
	tag, err := q.Exec(ctx, `update passkey set credential = $2, last_used_at = $3 where credential_id = $1`, credentialID, string(credential), now)
	return tag.RowsAffected() == 1, err
}

// DeletePasskey deletes a passkey of an administrator and reports whether it existed.
func DeletePasskey(ctx context.Context, q Querier, loginID string, id int64) (bool, error) {
	tag, err := q.Exec(ctx, `
		delete from passkey where id = $2 and administrator_id = (select id from administrator where login_id = $1)`, loginID, id)
	return tag.RowsAffected() == 1, err
}

// DeletePasskeys deletes all passkeys of an administrator.
func DeletePasskeys(ctx context.Context, q Querier, loginID string) error {
	_, err := q.Exec(ctx, `delete from passkey where administrator_id = (select id from administrator where login_id = $1)`, loginID)
	return err
}

// InsertCeremony stores the state of a challenge until it expires, and deletes those that have expired.
func InsertCeremony(ctx context.Context, q Querier, challengeHash, session []byte, now, expires time.Time) error {
	batch := &pgx.Batch{}
	batch.Queue(`delete from passkey_ceremony where expires_at <= $1`, now)
	batch.Queue(`insert into passkey_ceremony (challenge_hash, session, expires_at) values ($1, $2, $3)`, challengeHash, string(session), expires)
	return q.SendBatch(ctx, batch).Close()
}

// TakeCeremony deletes the state of a challenge and returns it; false if it is unknown, used or expired.
func TakeCeremony(ctx context.Context, q Querier, challengeHash []byte, now time.Time) (session []byte, found bool, err error) {
	err = q.QueryRow(ctx, `
		delete from passkey_ceremony where challenge_hash = $1 and expires_at > $2 returning convert_to(session::text, 'UTF8')`, challengeHash, now).Scan(&session)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return session, err == nil, err
}
