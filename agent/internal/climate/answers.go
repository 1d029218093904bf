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

// once runs work for the first request with an id and sends its answer. A repetition receives the cached answer; while
// work is running, repetitions are ignored.
func (a *answers[T]) once(id string, answer func(T), work func() T) {
	now := time.Now()
	a.mu.Lock()
	if e := a.entries[id]; e != nil && now.Before(e.forget) {
		known, done := e.answer, e.done
		a.mu.Unlock()
		if done {
			answer(known)
		}
		return
	}
	for other, e := range a.entries {
		if !now.Before(e.forget) {
			delete(a.entries, other)
		}
	}
	if len(a.entries) >= maxAnswers {
		a.mu.Unlock()
		return // the cloud repeats the request or gives up
	}
	if a.entries == nil {
		a.entries = make(map[string]*entry[T])
	}
	e := &entry[T]{forget: now.Add(protocol.ResultTTL)}
	a.entries[id] = e
	a.mu.Unlock()

	result := work()

	a.mu.Lock()
	e.answer, e.done = result, true
	a.mu.Unlock()
	answer(result)
}
