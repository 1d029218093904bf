package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// SetLoginCode replaces a customer's login code. loginID is normalised.
func SetLoginCode(ctx context.Context, q Querier, loginType booking.LoginType, loginID string, hash []byte, expires time.Time) error {
	_, err := q.Exec(ctx, `
		insert into login_code (login_type, login_id, code_hash, tries, expires_at) values ($1, $2, $3, 0, $4)
		on conflict (login_type, login_id) do update
		set code_hash = excluded.code_hash, tries = 0, expires_at = excluded.expires_at`,
		loginType, loginID, hash, expires)
	return err
}

// TryLoginCode counts an attempt and returns the hash of the customer's code, or nil if there is no code, it has
// expired or it has reached maxTries attempts. Counting and reading are one statement, so concurrent guesses get no
// extra attempts.
func TryLoginCode(ctx context.Context, q Querier, loginType booking.LoginType, loginID string, maxTries int, now time.Time) (hash []byte, err error) {
	err = q.QueryRow(ctx, `
		update login_code set tries = tries + 1
		where login_type = $1 and login_id = $2 and tries < $3 and expires_at > $4
		returning code_hash`, loginType, loginID, maxTries, now).Scan(&hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return hash, err
}

// UseLoginCode consumes a code. It returns false if the code was used or replaced in the meantime.
func UseLoginCode(ctx context.Context, q Querier, loginType booking.LoginType, loginID string, hash []byte) (bool, error) {
	tag, err := q.Exec(ctx, `delete from login_code where login_type = $1 and login_id = $2 and code_hash = $3`,
		loginType, loginID, hash)
	return tag.RowsAffected() == 1, err
}

// PurgeLoginCodes deletes expired codes.
func PurgeLoginCodes(ctx context.Context, q Querier, now time.Time) error {
	_, err := q.Exec(ctx, `delete from login_code where expires_at <= $1`, now)
	return err
}
