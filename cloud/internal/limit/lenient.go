package limit

import (
	"context"
	"sync"
	"time"
)

// maxRemembered bounds the number of subjects a Lenient counts. At the bound all counts are reset.
const maxRemembered = 100_000

// Lenient wraps a Limiter for frequent, legitimate actions. Each replica counts in memory and lets a tenth of the
// rule's limit pass; only attempts beyond that are counted in the database, so well-behaved clients never reach it. A
// subject may thus exceed the limit by a tenth per replica. The zero value is ready to use.
type Lenient struct {
	mu    sync.Mutex
	began time.Time // start of the window, by the machine's clock
	tries map[string]int
}

// Take is [Limiter.Take] with the local allowance. Use one Lenient per rule.
func (l *Lenient) Take(ctx context.Context, limits *Limiter, rule Rule, subject string) error {
	if limits == nil || limits.Off || l.count(limits.key(rule, subject), rule.Window) <= rule.Max/10 {
		return nil
	}
	return limits.Take(ctx, rule, subject)
}

func (l *Lenient) count(key string, window time.Duration) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tries == nil || time.Since(l.began) >= window || len(l.tries) >= maxRemembered {
		l.began, l.tries = time.Now(), make(map[string]int)
	}
	l.tries[key]++
	return l.tries[key]
}
