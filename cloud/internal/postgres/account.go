package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// SetLoginCode replaces a customer's login code. loginID is normalised; browser is the hash of the secret of the browser
// that requested the code.
func SetLoginCode(ctx context.Context, q Querier, loginType booking.LoginType, loginID string, hash, browser []byte, expires time.Time) error {
	_, err := q.Exec(ctx, `
		insert into login_code (login_type, login_id, code_hash, browser_hash, tries, expires_at) values ($1, $2, $3, $4, 0, $5)
		on conflict (login_type, login_id) do update
		set code_hash = excluded.code_hash, browser_hash = excluded.browser_hash, tries = 0, foreign_tries = 0, expires_at = excluded.expires_at`,
		loginType, loginID, hash, browser, expires)
	return err
}

// TryLoginCode counts an attempt and returns the hash of the customer's code. It returns nil if there is no code, or if the
// code has expired or reached maxTries attempts. The attempts of the browser that requested the code are counted separately
// from those of other browsers. Counting and reading are one statement, so concurrent guesses get no extra attempts.
func TryLoginCode(ctx context.Context, q Querier, loginType booking.LoginType, loginID string, browser []byte, maxTries int, now time.Time) (hash []byte, err error) {
	err = q.QueryRow(ctx, `
		update login_code set tries = tries + case when browser_hash = $3 then 1 else 0 end,
		       foreign_tries = foreign_tries + case when browser_hash = $3 then 0 else 1 end
		where login_type = $1 and login_id = $2 and case when browser_hash = $3 then tries else foreign_tries end < $4 and expires_at > $5
		returning code_hash`, loginType, loginID, browser, maxTries, now).Scan(&hash)
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
