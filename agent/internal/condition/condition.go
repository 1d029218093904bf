// Package condition logs lasting failures without flooding the log: an SD card must survive any failure that lasts for weeks.
package condition

import (
	"log/slog"
	"sync"
	"time"
)

// The delay of the first reminder, and the longest delay: each reminder doubles it.
const (
	firstReminder = time.Minute
	maxReminder   = time.Hour
)

// Condition is a failure that may last or recur. It is logged when it begins, after a minute, then at doubling intervals of
// up to an hour, and when it ends. A failure that recurs counts as the same one: a loose contact does not fill the log
// either. The zero value needs Log and Name.
type Condition struct {
	Log  *slog.Logger
	Name string // "relay line", with the attributes of Log

	mu       sync.Mutex
	since    time.Time // zero: works
	ended    time.Time
	logged   bool      // the current failure was logged
	reminder time.Time // when to log next
	delay    time.Duration
}

// Set records the state: err is the failure, or nil if there is none. It returns how long the failure has lasted.
func (c *Condition) Set(err error) time.Duration {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if !c.since.IsZero() {
			c.end(now)
		}
		return 0
	}
	if c.since.IsZero() {
		c.since = now
		if now.Sub(c.ended) > maxReminder {
			c.reminder, c.delay = now, firstReminder/2
		}
	}
	lasted := now.Sub(c.since)
	if !now.Before(c.reminder) {
		c.delay = min(2*c.delay, maxReminder)
		c.logged, c.reminder = true, now.Add(c.delay)
		c.Log.Error(c.Name+" fails", "error", err, "since", lasted.Round(time.Second))
	}
	return lasted
}

func (c *Condition) end(now time.Time) {
	if c.logged {
		c.Log.Info(c.Name+" works again", "after", now.Sub(c.since).Round(time.Second))
	}
	c.since, c.ended, c.logged = time.Time{}, now, false
}
