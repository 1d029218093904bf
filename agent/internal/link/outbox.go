package link

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// outboxSize bounds what waits for a connection; an unlock of one door makes four messages.
const outboxSize = 256

// outboxItem is a message on its way to the cloud.
type outboxItem struct {
	kind            protocol.Kind
	payload         []byte
	correlationData []byte
	until           time.Time // worthless afterwards
}

// outbox holds what the broker has not acknowledged.
type outbox struct {
	waiting chan outboxItem
	open    atomic.Int64 // parcels put and neither delivered nor lost
}

func newOutbox() *outbox { return &outbox{waiting: make(chan outboxItem, outboxSize)} }

// put never blocks: the oldest outboxItem makes room.
func (o *outbox) put(p outboxItem) {
	o.open.Add(1)
	for {
		select {
		case o.waiting <- p:
			return
		default:
		}
		select {
		case <-o.waiting:
			o.open.Add(-1)
		default:
		}
	}
}

// take waits for a outboxItem that is still worth sending; done must follow. It is not ok when the context is done.
func (o *outbox) take(ctx context.Context) (p outboxItem, ok bool) {
	for {
		select {
		case <-ctx.Done():
			return outboxItem{}, false
		case p = <-o.waiting:
		}
		if time.Now().Before(p.until) {
			return p, true
		}
		o.open.Add(-1)
	}
}

// done says whether a outboxItem that was taken has arrived. If not it goes back, behind the others.
func (o *outbox) done(p outboxItem, delivered bool) {
	if !delivered {
		o.put(p)
	}
	o.open.Add(-1)
}

// drain waits until everything has arrived or is lost, or the context is done.
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
