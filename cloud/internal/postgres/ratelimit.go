package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Allow counts one attempt of key and reports whether it is within limit for the current window, which begins with
// the first attempt. Otherwise retryAfter is the rest of the window. The count is shared by all replicas and exact
// under concurrency. A window that begins more than its length ahead was counted while the clock was wrong, and ends. Allow must not be
// called in a transaction that may roll back.
func Allow(ctx context.Context, q Querier, key string, limit int, window time.Duration, now time.Time) (ok bool, retryAfter time.Duration, err error) {
	var (
		count int
		start time.Time
	)
	// The count stops one above the limit, so it cannot overflow.
	err = q.QueryRow(ctx, `
		insert into rate_limit as r (key, window_start, count) values ($1, $2, 1)
		on conflict (key) do update set
			window_start = case when r.window_start > $3 and r.window_start <= $5 then r.window_start else $2 end,
			count        = case when r.window_start > $3 and r.window_start <= $5 then least(r.count + 1, $4 + 1) else 1 end
		returning count, window_start`,
		key, now, now.Add(-window), limit, now.Add(window)).Scan(&count, &start)
	if err != nil {
		return false, 0, err
	}
	return count <= limit, max(start.Add(window).Sub(now), 0), nil
}

// Exceeded reports whether the next attempt of key would exceed limit, and for how long, without counting one.
func Exceeded(ctx context.Context, q Querier, key string, limit int, window time.Duration, now time.Time) (exceeded bool, retryAfter time.Duration, err error) {
	var start time.Time
	err = q.QueryRow(ctx, `select window_start from rate_limit where key = $1 and count >= $2 and window_start > $3 and window_start <= $4`,
		key, limit, now.Add(-window), now.Add(window)).Scan(&start)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, 0, nil
	}
	return err == nil, start.Add(window).Sub(now), err
}

// PurgeRateLimits deletes windows that began before a time. No window may be longer than that.
func PurgeRateLimits(ctx context.Context, q Querier, before time.Time) error {
	_, err := q.Exec(ctx, `delete from rate_limit where window_start < $1`, before)
	return err
}
