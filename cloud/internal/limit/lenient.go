package limit

import (
	"context"
	"sync"
	"time"
)

// maxRemembered bounds the subjects that a Lenient remembers; with more it forgives all of them.
const maxRemembered = 100_000

// Lenient is for what people do all day and only machines do too often. A replica lets a tenth of a rule's tries pass by
// its own memory, and only what is more than that is counted in the database: who behaves costs nothing. So a subject
// may do at most the rule's tries, and a tenth of them more for each replica. The zero value is ready.
type Lenient struct {
	mu    sync.Mutex
	began time.Time // of the window, by the machine's clock
	tries map[string]int
}

// Take is [Limiter.Take], with patience. One Lenient is for one rule.
func (l *Lenient) Take(ctx context.Context, limits *Limiter, rule Rule, subject string) error {
	if limits.Off || l.count(rule.key(subject), rule.Window) <= rule.Max/10 {
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
