package climate

import (
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// maxAnswers limits the number of remembered requests.
const maxAnswers = 256

// answers caches the answer to each request for as long as the cloud may repeat it.
type answers[T any] struct {
	mu      sync.Mutex
	entries map[string]*entry[T]
}

type entry[T any] struct {
	answer T
	done   bool
	forget time.Time
}

// begin returns the entry of the first request with an id, whose answer is passed to end. For a repetition it returns nil: it receives the
// cached answer; while the work is in progress, it is ignored.
func (a *answers[T]) begin(id string, answer func(T)) *entry[T] {
	now := time.Now()
	a.mu.Lock()
	if e := a.entries[id]; e != nil && now.Before(e.forget) {
		known, done := e.answer, e.done
		a.mu.Unlock()
		if done {
			answer(known)
		}
		return nil
	}
	defer a.mu.Unlock()
	for other, e := range a.entries {
		if !now.Before(e.forget) {
			delete(a.entries, other)
		}
	}
	if len(a.entries) >= maxAnswers {
		return nil // the cloud repeats the request or gives up
	}
	if a.entries == nil {
		a.entries = make(map[string]*entry[T])
	}
	e := &entry[T]{forget: now.Add(protocol.ResultTTL)}
	a.entries[id] = e
	return e
}

// end stores the answer to a request and sends it.
func (a *answers[T]) end(e *entry[T], result T, answer func(T)) {
	a.mu.Lock()
	e.answer, e.done = result, true
	a.mu.Unlock()
	answer(result)
}
