package agent

import (
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

const (
	eventDelay        = 250 * time.Millisecond // how long an event waits for others to be told with
	maxBufferedEvents = 32                     // as many are told at once
)

// diary gathers what happens at the doors for a moment, so that a busy branch does not send a message for each event.
type eventBuffer struct {
	send func([]protocol.Event)

	mu     sync.Mutex
	events []protocol.Event
	timer  *time.Timer // runs while there are events
}

func (b *eventBuffer) add(e protocol.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
	switch len(b.events) {
	case 1:
		b.timer = time.AfterFunc(eventDelay, b.flush)
	case maxBufferedEvents:
		b.flushLocked()
	}
}

// flush tells what there is.
func (b *eventBuffer) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flushLocked()
}

// hand gives the events away, in their order: the lock is held.
func (b *eventBuffer) flushLocked() {
	if len(b.events) > 0 {
		b.timer.Stop()
		b.send(b.events)
		b.events = nil
	}
}
