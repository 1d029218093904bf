package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sessions is the store of the session manager (scs.CtxStore). Tokens are hashed by the caller.
type Sessions struct{ DB *DB }

// FindCtx returns the data of a session that has not expired.
func (s Sessions) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = s.DB.Pool.QueryRow(ctx, `select data from session where token = $1 and expires_at > $2`, token, s.DB.Now()).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// creation is the key of a context in which CommitCtx creates a session.
type creation struct{}

// WithNewSession returns a context in which [Sessions.CommitCtx] creates a session.
func WithNewSession(ctx context.Context) context.Context {
	return context.WithValue(ctx, creation{}, true)
}

// CommitCtx stores a session. Unless the context is one of [WithNewSession], a session that has ended since it was read, here or at
// another replica, stays ended.
func (s Sessions) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	statement := `update session set data = $2, expires_at = $3 where token = $1`
	if ctx.Value(creation{}) != nil {
		statement = `insert into session (token, data, expires_at) values ($1, $2, $3)`
	}
	_, err := s.DB.Pool.Exec(ctx, statement, token, json.RawMessage(data), expiry)
	return err
}

// DeleteCtx ends a session. An unknown token is not an error.
func (s Sessions) DeleteCtx(ctx context.Context, token string) error {
	_, err := s.DB.Pool.Exec(ctx, `delete from session where token = $1`, token)
	return err
}

// Find, Commit and Delete complete the interface; the session manager calls the variants with a context.

// Find is FindCtx.
func (s Sessions) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit is CommitCtx.
func (s Sessions) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

// Delete is DeleteCtx.
func (s Sessions) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// EndAdministratorSessions ends every session of an administrator and returns their number.
func EndAdministratorSessions(ctx context.Context, q Querier, loginID string) (int64, error) {
	tag, err := q.Exec(ctx, `delete from session where data ? 'adminLoginId' and data ->> 'adminLoginId' = $1`, loginID)
	return tag.RowsAffected(), err
}

// PurgeSessions deletes expired sessions.
func PurgeSessions(ctx context.Context, q Querier, now time.Time) error {
	_, err := q.Exec(ctx, `delete from session where expires_at <= $1`, now)
	return err
}
