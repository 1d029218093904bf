package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A clock that is years ahead, for instance after the failure of a battery or of an NTP server, would end every retention at once, also that
// of the contacts of guests whose stay is to come, and the rows would be missing when the clock is right again.
const (
	// maxClockStep is the most that the time may differ between two sweeps. An outage looks like a clock that was set ahead.
	maxClockStep = 24 * time.Hour
	// stepDelay is how long nothing is deleted for good after a step. Guests and staff notice a wrong day within hours, because no door opens.
	stepDelay = 3 * 24 * time.Hour
)

// ClockStep is a change of the time by more than a day between two sweeps.
type ClockStep struct{ From, To time.Time }

// Until returns the time before which nothing is deleted for good.
func (s ClockStep) Until() time.Time { return s.To.Add(stepDelay) }

// stepped is the predicate that the time $1 differs by more than $2 from the last one that the row of clock_watch has.
const stepped = `($1::timestamptz not between clock_watch.seen_at - $2::interval and clock_watch.seen_at + $2::interval)`

// WatchClock stores the time, and whether it has changed by more than a day since the last call.
func WatchClock(ctx context.Context, q Querier, now time.Time) error {
	_, err := q.Exec(ctx, `
		insert into clock_watch (seen_at) values ($1)
		on conflict (one) do update set seen_at = $1,
			stepped_from = case when `+stepped+` then clock_watch.seen_at else clock_watch.stepped_from end,
			stepped_to = case when `+stepped+` then $1 else clock_watch.stepped_to end`, now, maxClockStep)
	if err != nil {
		return fmt.Errorf("watch the clock: %w", err)
	}
	return nil
}

// LastClockStep returns the last step of the clock; ok is false if it was long enough ago for rows to be deleted for good.
func LastClockStep(ctx context.Context, q Querier, now time.Time) (step ClockStep, ok bool, err error) {
	err = q.QueryRow(ctx, `
		select began, ended from (
			select case when `+stepped+` then seen_at else stepped_from end as began, case when `+stepped+` then $1 else stepped_to end as ended
			from clock_watch) last_step
		where $1 < ended + $3::interval`, now, maxClockStep, stepDelay).Scan(&step.From, &step.To)
	if errors.Is(err, pgx.ErrNoRows) {
		return ClockStep{}, false, nil
	}
	if err != nil {
		return ClockStep{}, false, fmt.Errorf("read the last step of the clock: %w", err)
	}
	return step, true, nil
}

// ClockSteady reports whether rows that have expired at a time may be deleted for good: the clock has shown it without a step of more than
// a day in the last three days. A database that no sweep has seen yet has nothing to lose.
func ClockSteady(ctx context.Context, q Querier, now time.Time) (bool, error) {
	_, found, err := LastClockStep(ctx, q, now)
	return err == nil && !found, err
}
