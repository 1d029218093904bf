package light

import (
	"errors"
	"math/rand/v2"
	"time"
)

// The back-off of the real agent; see agent/internal/link.
const (
	stableTime     = time.Minute
	backoffMin     = 100 * time.Millisecond
	backoffFirst   = 200 * time.Millisecond
	quickAttempts  = 4
	failoverSpread = 2 * time.Second
	unreachableMax = 5 * time.Second
	rejectedMax    = 15 * time.Second
	takeoverFirst  = time.Second
	takeoverMax    = 30 * time.Second
)

// pacer chooses the delay before the next connection.
type pacer struct{ failures, takeovers uint8 }

// next returns the delay after a connection that was used for a while and ended with err. reached reports whether there was
// a TCP connection, pool whether the next one goes to another broker.
func (p *pacer) next(used time.Duration, reached bool, err error, pool bool) time.Duration {
	if used >= stableTime {
		*p = pacer{}
	}
	if errors.Is(err, errTakenOver) {
		p.takeovers = min(p.takeovers+1, 10)
		return min(takeoverFirst<<(p.takeovers-1), takeoverMax)
	}
	limit := rejectedMax
	if !reached {
		limit = unreachableMax
	}
	p.failures = min(p.failures+1, 20)
	limit = min(backoffFirst<<min(max(int(p.failures)-quickAttempts, 0), 10), limit)
	delay := backoffMin + rand.N(limit-backoffMin)
	if pool && used > 0 {
		delay += rand.N(failoverSpread)
	}
	return delay
}
