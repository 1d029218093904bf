package account

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/limit"
)

// A hashingQueue bounds the password comparisons that run and wait at the same time, so that guesses take neither all
// processors nor all memory.
type hashingQueue struct {
	slots chan struct{}
	most  int // clients' waiting comparisons in all
	each  int // and of one client

	mu      sync.Mutex
	total   int
	waiting map[string]int
}

func newHashingQueue(slots, most, each int) *hashingQueue {
	return &hashingQueue{slots: make(chan struct{}, slots), most: most, each: each, waiting: map[string]int{}}
}

// Recognised devices have a queue of their own, so that a flood of guesses does not delay them.
var (
	unknownDevices    = newHashingQueue(max(1, runtime.NumCPU()/4), 64, 32)
	recognisedDevices = newHashingQueue(max(1, runtime.NumCPU()/4), 64, 32)
)

// errBusy asks the client to come back, because too many comparisons are waiting.
var errBusy = &limit.ExceededError{Rule: "admin-login-queue", RetryAfter: time.Second}

// acquire waits for a slot; release frees it. It returns a [limit.ExceededError] if the queue is full.
func (q *hashingQueue) acquire(ctx context.Context, client string) (release func(), err error) {
	if !q.enter(client) {
		return nil, errBusy
	}
	defer q.leave(client)
	select {
	case q.slots <- struct{}{}:
		return func() { <-q.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *hashingQueue) enter(client string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.total >= q.most || q.waiting[client] >= q.each {
		return false
	}
	q.total++
	q.waiting[client]++
	return true
}

func (q *hashingQueue) leave(client string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.total--
	if q.waiting[client]--; q.waiting[client] == 0 {
		delete(q.waiting, client)
	}
}
