package agent

import (
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

const (
	diaryDelay = 250 * time.Millisecond // how long an event waits for others to be told with
	diarySize  = 32                     // as many are told at once
)

// diary gathers what happens at the doors for a moment, so that a busy branch does not send a message for each event.
type diary struct {
	tell func([]protocol.Event)

	mu     sync.Mutex
	events []protocol.Event
	timer  *time.Timer // runs while there are events
}

func (d *diary) note(e protocol.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
	switch len(d.events) {
	case 1:
		d.timer = time.AfterFunc(diaryDelay, d.flush)
	case diarySize:
		d.hand()
	}
}

// flush tells what there is.
func (d *diary) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hand()
}

// hand gives the events away, in their order: the lock is held.
func (d *diary) hand() {
	if len(d.events) > 0 {
		d.timer.Stop()
		d.tell(d.events)
		d.events = nil
	}
}
