package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// clockInterval is how often a replica compares its clock with the database's.
	clockInterval = 5 * time.Second
	clockTimeout  = 2 * time.Second
	// ClockTolerance is the difference between the clocks of a replica and the database from which operators are warned. The
	// rules follow the database's clock at any difference.
	ClockTolerance = 2 * time.Second
)

// Clock returns the time of all rules. One from [NewClock] shows the database's time, so replicas whose machines differ judge
// holds, keys, codes, sessions and deadlines at the same instant (docs/specification.md, Settings 6). It is safe for concurrent use.
//
// Between comparisons it counts by the monotonic clock: a step of the machine's clock moves no window, and reaches no agent in a
// beacon.
type Clock struct {
	machine func() time.Time
	alone   bool
	start   time.Time
	shift   atomic.Int64 // nanoseconds from the time that the machine has counted since start to the database's
}

// NewClock returns a clock that shows the machine's time until [Clock.Compare] has corrected it.
func NewClock(machine func() time.Time) *Clock { return &Clock{machine: machine, start: machine()} }

// AloneClock returns a clock that shows now and is never corrected, for tests that move the time.
func AloneClock(now func() time.Time) *Clock { return &Clock{machine: now, alone: true} }

// Now returns the time of the rules.
func (c *Clock) Now() time.Time {
	if c.alone {
		return c.machine()
	}
	return c.start.Add(c.machine().Sub(c.start) + time.Duration(c.shift.Load()))
}

// Ahead returns by how much the database's clock is ahead of the machine's clock, as last measured.
func (c *Clock) Ahead() time.Duration {
	now, machine := c.Now(), c.machine()
	return now.Round(0).Sub(machine.Round(0)).Round(time.Millisecond) // without the monotonic clock, and without the time between the two
}

// Compare measures the difference to the database's clock. The answer was given between the query and its arrival: a
// correction within these bounds stays, so delays of the network never move the clock.
func (c *Clock) Compare(ctx context.Context, pool *pgxpool.Pool) error {
	if c.alone {
		return nil
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	defer conn.Release()
	var database time.Time
	asked := c.Now()
	if err := conn.QueryRow(ctx, `select clock_timestamp()`).Scan(&database); err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	answered := c.Now()
	if least, most := database.Sub(answered), database.Sub(asked); least > 0 || most < 0 {
		c.shift.Add(int64(least + (most-least)/2))
	}
	return nil
}

func (c *Clock) compareInTime(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	return c.Compare(ctx, pool)
}

// Run compares the clocks until ctx is done, and logs when they begin and cease to differ by more than [ClockTolerance].
func (c *Clock) Run(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	if c.alone {
		return nil
	}
	tick := time.NewTicker(clockInterval)
	defer tick.Stop()
	for wrong := false; ; {
		if err := c.compareInTime(ctx, pool); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "the clocks were not compared", "error", err)
		}
		if ahead := c.Ahead(); wrong != (ahead.Abs() > ClockTolerance) {
			if wrong = !wrong; wrong {
				log.ErrorContext(ctx, "the clocks of this machine and the database differ: the database's decides; run NTP on both", "database_ahead", ahead.Round(time.Millisecond))
			} else {
				log.InfoContext(ctx, "the clocks of this machine and the database agree again")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
