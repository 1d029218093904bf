package link

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// outboxSize limits the messages that wait for a connection; an unlock of one door produces four messages.
const outboxSize = 256

// outboxItem is a message for the cloud.
type outboxItem struct {
	kind            protocol.Kind
	payload         []byte
	telemetry       *protocol.Telemetry // whose age the payload does not have yet; nil: another kind
	queued          time.Time
	correlationData []byte
	expires         time.Time
	offered         bool // see Link.Offer
}

// aged returns an item whose payload contains the time that it has waited.
func (p outboxItem) aged(now time.Time) outboxItem {
	if p.telemetry == nil {
		return p
	}
	// The same message was encoded by Send. If its age makes it too large, it is sent without.
	if payload, err := protocol.Encode(p.telemetry.Aged(now.Sub(p.queued))); err == nil {
		p.payload = payload
	}
	return p
}

// outbox holds the messages that the broker has not acknowledged.
type outbox struct {
	waiting   chan outboxItem
	telemetry *sequence
	open      atomic.Int64 // items that are neither delivered nor lost
	offered   atomic.Int64 // of these, offered ones
}

func newOutbox() *outbox {
	o := &outbox{waiting: make(chan outboxItem, outboxSize)}
	o.telemetry = &sequence{outbox: o, added: make(chan struct{}, 1)}
	return o
}

// count counts an item as open, or as delivered or lost.
func (o *outbox) count(p outboxItem, n int64) {
	o.open.Add(n)
	if p.offered {
		o.offered.Add(n)
	}
}

// put never blocks: if the outbox is full, it drops the oldest item.
func (o *outbox) put(p outboxItem) {
	o.count(p, 1)
	if p.telemetry != nil {
		o.telemetry.put(p)
		return
	}
	for {
		select {
		case o.waiting <- p:
			return
		default:
		}
		select {
		case oldest := <-o.waiting:
			o.count(oldest, -1)
		default:
		}
	}
}

// take waits for an item that has not expired; the caller must call done. ok is false when ctx is done.
func (o *outbox) take(ctx context.Context) (p outboxItem, ok bool) {
	for {
		select {
		case <-ctx.Done():
			return outboxItem{}, false
		case p = <-o.waiting:
		}
		if time.Now().Before(p.expires) {
			return p, true
		}
		o.count(p, -1)
	}
}

// done reports whether an item was delivered. An undelivered item returns to the end of the outbox.
func (o *outbox) done(p outboxItem, delivered bool) {
	if !delivered {
		o.put(p)
	}
	o.count(p, -1)
}

// drain waits until every item is delivered or lost, or ctx is done.
func (o *outbox) drain(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for o.open.Load() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sequence holds telemetry, which is delivered in order, one message after the other: the cloud explains the opening of a door by
// the events before it. One goroutine at a time uses take and done.
type sequence struct {
	outbox *outbox
	added  chan struct{} // holds a token if items were added

	mu    sync.Mutex
	items []outboxItem
	taken bool // the first item is being sent
}

// put adds an item. If the sequence is full, the oldest item that is not being sent is lost.
func (q *sequence) put(p outboxItem) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.items = append(q.items, p); len(q.items) > outboxSize {
		oldest := 0
		if q.taken {
			oldest = 1
		}
		q.outbox.count(q.items[oldest], -1)
		q.items = slices.Delete(q.items, oldest, oldest+1)
	}
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// take waits for the first item that has not expired; the caller must call done. ok is false when ctx is done.
func (q *sequence) take(ctx context.Context) (p outboxItem, ok bool) {
	for {
		if ctx.Err() != nil {
			return outboxItem{}, false
		}
		if p, ok = q.first(); ok {
			return p, true
		}
		select {
		case <-ctx.Done():
		case <-q.added:
		}
	}
}

func (q *sequence) first() (p outboxItem, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) > 0 {
		if p = q.items[0]; time.Now().Before(p.expires) {
			q.taken = true
			return p, true
		}
		q.outbox.count(p, -1)
		q.items = slices.Delete(q.items, 0, 1)
	}
	return outboxItem{}, false
}

// done reports whether the item that was taken was delivered. An undelivered item remains the first.
func (q *sequence) done(delivered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken = false; delivered {
		q.outbox.count(q.items[0], -1)
		q.items = slices.Delete(q.items, 0, 1)
	}
}
