package broker

import (
	"sync"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// messagesWaiting is the number of messages that may wait for an agent that does not read: asks and grants of the last
	// seconds.
	messagesWaiting = 64
	// ackDelay is how long an acknowledgement waits for a message that it can go along with, like those of TCP (RFC 1122,
	// 4.2.3.2): that of a claim goes with the grant. A write costs more than all else that is done for it.
	ackDelay = 30 * time.Millisecond
	// acksGathered is how many of them wait at most as long as the agent reads.
	acksGathered = 64
	// acksWaiting is the Receive Maximum: who has more messages under way than that breaks the rules [MQTT-3.3.4-9].
	acksWaiting = 1024
)

// outbox gathers what is on its way to one agent: while one write is under way the next packets wait, and go together.
// Nobody who sends a message ever waits.
type outbox struct {
	write func([]byte) // may block

	mu       sync.Mutex
	messages waiting // which go first: somebody stands at a door
	acks     waiting
	writing  bool        // somebody writes, and will write what waits
	delay    *time.Timer // runs while nobody writes and acknowledgements wait
}

// waiting is packets of one kind, in their order.
type waiting struct {
	packets []byte
	count   int
}

func (w *waiting) add(packet ...byte) {
	w.packets = append(w.packets, packet...)
	w.count++
}

// send puts a message in. It reports false when too many wait already.
func (o *outbox) send(message []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.messages.count >= messagesWaiting {
		return false
	}
	o.messages.add(message...)
	if o.begin() {
		go o.run()
	}
	return true
}

// acknowledge puts a PUBACK in (MQTT 5.0, 3.4), which waits for a message if that is to be expected. It returns
// packets.ErrReceiveMaximum for an agent that sends and does not read, which nothing can be told. Only the read loop of
// the agent calls it, which may have to write.
func (o *outbox) acknowledge(id uint16, code packets.Code, expectMessage bool) error {
	o.mu.Lock()
	if o.acks.count >= acksWaiting {
		o.mu.Unlock()
		return packets.ErrReceiveMaximum
	}
	first := o.acks.count == 0
	if code == packets.CodeSuccess { // which is what is meant without a reason code
		o.acks.add(packets.Puback<<4, 2, byte(id>>8), byte(id))
	} else {
		o.acks.add(packets.Puback<<4, 3, byte(id>>8), byte(id), code.Code)
	}
	mine := false
	switch {
	case !expectMessage || o.acks.count >= acksGathered:
		mine = o.begin()
	case o.writing || !first:
	case o.delay == nil:
		o.delay = time.AfterFunc(ackDelay, o.flush)
	default:
		o.delay.Reset(ackDelay)
	}
	o.mu.Unlock()
	if mine {
		o.run()
	}
	return nil
}

// flush writes acknowledgements that nothing has gone along with.
func (o *outbox) flush() {
	o.mu.Lock()
	mine := o.begin()
	o.mu.Unlock()
	if mine {
		o.run()
	}
}

// begin reports whether the caller is to run: nobody else does. mu is held.
func (o *outbox) begin() bool {
	if o.writing {
		return false
	}
	o.writing = true
	if o.delay != nil {
		o.delay.Stop()
	}
	return true
}

// run writes until nothing waits.
func (o *outbox) run() {
	for {
		o.mu.Lock()
		packets := append(o.messages.packets, o.acks.packets...)
		o.messages, o.acks = waiting{}, waiting{}
		o.writing = len(packets) > 0
		o.mu.Unlock()
		if len(packets) == 0 {
			return
		}
		o.write(packets)
	}
}
