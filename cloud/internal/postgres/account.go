package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// SetLoginCode makes a code the only one of a customer. loginID is normalised.
func SetLoginCode(ctx context.Context, q Querier, loginType booking.LoginType, loginID string, hash []byte, expires time.Time) error {
	_, err := q.Exec(ctx, `
		insert into login_code (login_type, login_id, code_hash, tries, expires_at) values ($1, $2, $3, 0, $4)
		on conflict (login_type, login_id) do update
		set code_hash = excluded.code_hash, tries = 0, expires_at = excluded.expires_at`,
		loginType, loginID, hash, expires)
	return err
}

// TryLoginCode counts a try of a customer's code and returns the code's hash to compare with, or nil when
// there is no code, it has expired or it has had maxTries tries. Counting and reading are one statement:
// guesses that come at once do not get more tries.
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

// UseLoginCode uses a code up. It returns false if it is not there any more: used at the same moment, or replaced.
func UseLoginCode(ctx context.Context, q Querier, loginType booking.LoginType, loginID string, hash []byte) (bool, error) {
	tag, err := q.Exec(ctx, `delete from login_code where login_type = $1 and login_id = $2 and code_hash = $3`,
		loginType, loginID, hash)
	return tag.RowsAffected() == 1, err
}

// PurgeLoginCodes deletes codes that have expired.
func PurgeLoginCodes(ctx context.Context, q Querier, now time.Time) error {
	_, err := q.Exec(ctx, `delete from login_code where expires_at <= $1`, now)
	return err
}
