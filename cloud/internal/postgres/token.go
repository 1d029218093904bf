package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoToken is returned for a token that does not exist or has expired.
var ErrNoToken = errors.New("postgres: no such token")

// APIToken is a token of a program, without its secret.
type APIToken struct {
	ID         int64
	Name       string
	Scopes     []string
	Branches   []string // codes; empty: all branches
	CreatedBy  string
	CreatedAt  time.Time
	LastUsedAt *time.Time
	ExpiresAt  *time.Time
}

const tokenColumns = `t.id, t.name, t.scopes, t.branches, t.created_by, t.created_at, t.last_used_at, t.expires_at`

// InsertToken stores a token by the hash of its secret and returns its id, or ErrNoBranch for an unknown branch.
func InsertToken(ctx context.Context, q Querier, t APIToken, hash []byte) (id int64, err error) {
	err = q.QueryRow(ctx, `
		insert into api_token (name, token_hash, scopes, branches, created_by, created_at, expires_at)
		select $1, $2, $3, $4, $5, $6, $7 where (select count(*) from branch where code = any($4)) = cardinality($4::text[])
		returning id`, t.Name, hash, t.Scopes, t.Branches, t.CreatedBy, t.CreatedAt, t.ExpiresAt).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNoBranch
	}
	return id, err
}

// Tokens returns all tokens, the newest first.
func Tokens(ctx context.Context, q Querier) ([]APIToken, error) {
	rows, err := q.Query(ctx, `select `+tokenColumns+` from api_token t order by t.id desc`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[APIToken])
}

// TokenByHash returns the token with a hash unless it has expired, and the codes of the branches that exist in its scope: none if
// every branch is. It returns ErrNoToken.
func TokenByHash(ctx context.Context, q Querier, hash []byte, now time.Time) (t APIToken, reach []string, err error) {
	err = q.QueryRow(ctx, `
		select `+tokenColumns+`, array(select b.code from branch b where b.code = any(t.branches) order by b.id)
		from api_token t where t.token_hash = $1 and (t.expires_at is null or t.expires_at > $2)`, hash, now).
		Scan(&t.ID, &t.Name, &t.Scopes, &t.Branches, &t.CreatedBy, &t.CreatedAt, &t.LastUsedAt, &t.ExpiresAt, &reach)
	if errors.Is(err, pgx.ErrNoRows) {
		return APIToken{}, nil, ErrNoToken
	}
	return t, reach, err
}

// NoteTokenUse records that a token was used.
func NoteTokenUse(ctx context.Context, q Querier, id int64, now time.Time) error {
	_, err := q.Exec(ctx, `update api_token set last_used_at = greatest(last_used_at, $2) where id = $1`, id, now)
	return err
}

// TokenCreator returns the actor who created the token that is an actor; empty if the actor is not a token. The audit log knows deleted tokens, too.
func TokenCreator(ctx context.Context, q Querier, actor string) (creator string, err error) {
	err = q.QueryRow(ctx, `select actor from audit where target = $1 and action = 'token.add' order by id limit 1`, actor).Scan(&creator)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return creator, err
}

// DeleteToken deletes a token and returns its name, or ErrNoToken.
func DeleteToken(ctx context.Context, q Querier, id int64) (name string, err error) {
	err = q.QueryRow(ctx, `delete from api_token where id = $1 returning name`, id).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNoToken
	}
	return name, err
}
