package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Errors of a repeated Idempotency-Key.
var (
	ErrKeyReused  = errors.New("postgres: the idempotency key belongs to another request")
	ErrKeyPending = errors.New("postgres: the first request with the idempotency key has no answer")
)

// IdempotencyTTL is the time an Idempotency-Key and its answer are kept.
const IdempotencyTTL = 24 * time.Hour

// BeginIdempotent claims a key for a request. It returns nil if the request is the first one, or the sealed answer of the
// first one, ErrKeyReused or ErrKeyPending. The first hash is stored; the stored one of the same request is any of them.
func BeginIdempotent(ctx context.Context, q Querier, principal, key string, hashes [][]byte, now time.Time) (answer []byte, err error) {
	tag, err := q.Exec(ctx, `
		insert into idempotent_request (principal, key, request_hash, created_at) values ($1, $2, $3, $4)
		on conflict (principal, key) do update set request_hash = $3, answer = null, created_at = $4
		where idempotent_request.created_at < $5`, principal, key, hashes[0], now, now.Add(-IdempotencyTTL))
	if err != nil || tag.RowsAffected() == 1 {
		return nil, err
	}
	var first []byte
	err = q.QueryRow(ctx, `select request_hash, answer from idempotent_request where principal = $1 and key = $2`, principal, key).Scan(&first, &answer)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // the first request failed at this moment
		return nil, ErrKeyPending
	case err != nil:
		return nil, err
	case !slices.ContainsFunc(hashes, func(hash []byte) bool { return bytes.Equal(first, hash) }):
		return nil, ErrKeyReused
	case answer == nil:
		return nil, ErrKeyPending
	}
	return answer, nil
}

// FinishIdempotent stores the sealed answer of a request. Without an answer the request changed nothing and its key may be
// used again.
func FinishIdempotent(ctx context.Context, q Querier, principal, key string, answer []byte) (err error) {
	if answer == nil {
		_, err = q.Exec(ctx, `delete from idempotent_request where principal = $1 and key = $2 and answer is null`, principal, key)
		return err
	}
	_, err = q.Exec(ctx, `update idempotent_request set answer = $3 where principal = $1 and key = $2`, principal, key, answer)
	return err
}

// PurgeIdempotent deletes the keys of requests before a time.
func PurgeIdempotent(ctx context.Context, q Querier, before time.Time) error {
	_, err := q.Exec(ctx, `delete from idempotent_request where created_at < $1`, before)
	return err
}
