package limit

import (
	"sync"
	"time"
)

// A Rate allows Burst actions at once, then one for each Interval.
type Rate struct {
	Name     string
	Burst    int
	Interval time.Duration
}

// fill is the time in which an empty bucket becomes full.
func (r Rate) fill() time.Duration { return time.Duration(r.Burst) * r.Interval }

// Buckets limits a rate for each subject. It counts in the memory of one replica, so an action costs no query. One Buckets is
// for one rate. The zero value is ready to use.
type Buckets struct {
	mu    sync.Mutex
	full  map[string]time.Time // when the bucket of a subject is full again
	swept time.Time
}

// Take counts one action. It returns an [ExceededError] if the bucket of the subject is empty.
func (b *Buckets) Take(limits *Limiter, rate Rate, subject string, now time.Time) error {
	if limits == nil || limits.Off {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(rate, now)
	full := b.full[subject]
	if full.Before(now) {
		full = now
	}
	if wait := full.Add(rate.Interval).Sub(now) - rate.fill(); wait > 0 {
		return &ExceededError{Rule: rate.Name, RetryAfter: wait}
	}
	b.full[subject] = full.Add(rate.Interval)
	return nil
}

// Wait returns the time until the subject may act again; 0: now. It counts nothing.
func (b *Buckets) Wait(limits *Limiter, rate Rate, subject string, now time.Time) time.Duration {
	if limits == nil || limits.Off {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.full[subject]
	if full.Before(now) {
		full = now
	}
	return max(0, full.Add(rate.Interval).Sub(now)-rate.fill())
}

// sweep removes full buckets, at most once in the time that one takes to fill. mu is held.
func (b *Buckets) sweep(rate Rate, now time.Time) {
	if b.full == nil {
		b.full = make(map[string]time.Time)
	}
	if now.Sub(b.swept) < rate.fill() {
		return
	}
	b.swept = now
	for subject, full := range b.full {
		if full.Before(now) {
			delete(b.full, subject)
		}
	}
}
