package agent

import (
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

const (
	eventDelay        = 250 * time.Millisecond // how long an event waits for further events to share its message
	maxBufferedEvents = 32                     // events per message
)

// eventBuffer collects door events for a moment, so that a busy branch does not send one message per event.
type eventBuffer struct {
	send func([]protocol.Event)

	mu     sync.Mutex
	events []protocol.Event
	timer  *time.Timer // runs while events are buffered
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

// flush sends the buffered events.
func (b *eventBuffer) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flushLocked()
}

// flushLocked sends the buffered events in order. The caller holds mu.
func (b *eventBuffer) flushLocked() {
	if len(b.events) > 0 {
		b.timer.Stop()
		b.send(b.events)
		b.events = nil
	}
}
