package postgres

import (
	"sync"
	"time"
)

const (
	// maxWait is the mean wait for a connection above which a pool is overloaded. A request takes up to six connections one after
	// the other, and then it waits for them six of its fifteen seconds.
	maxWait = time.Second

	// loadInterval is the time over which the mean is taken. It takes two to be overloaded: the queue that a stall of the
	// database has left is gone by then.
	loadInterval = time.Second
)

// waits are the connections taken from a pool since it was opened, and how long their callers waited in total.
type waits struct {
	taken  int64
	waited time.Duration
}

// overload judges by the waits for connections whether a pool is overloaded. It is safe for concurrent use.
type overload struct {
	mu      sync.Mutex
	read    time.Time // when last was read
	last    waits
	long    bool // whether the mean of the last interval was too long
	reached bool // whether those of the last two were
}

// judge reports whether the pool has been overloaded for two intervals, and whether the answer before was another one. Intervals end
// with calls, so rare calls make long ones.
func (o *overload) judge(read func() waits) (overloaded, changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if now.Sub(o.read) < loadInterval {
		return o.reached, false
	}
	next := read()
	taken, waited := next.taken-o.last.taken, next.waited-o.last.waited
	long := taken > 0 && waited/time.Duration(taken) > maxWait
	overloaded = long && o.long
	changed = overloaded != o.reached
	o.read, o.last, o.long, o.reached = now, next, long, overloaded
	return overloaded, changed
}

// Overloaded reports whether statements have waited so long for a connection, for so long a time, that new work would only
// keep the work in progress from ending in time. Doors have connections of their own, which do not count.
func (db *DB) Overloaded() bool {
	overloaded, changed := db.load.judge(func() waits {
		stat := db.Pool.Stat()
		return waits{taken: stat.AcquireCount(), waited: stat.EmptyAcquireWaitTime()}
	})
	switch {
	case changed && overloaded:
		db.Logger.Warn("database overloaded: rejecting new requests", "longest_mean_wait", maxWait)
	case changed:
		db.Logger.Info("database no longer overloaded")
	}
	return overloaded
}
