package broker

import (
	"cmp"
	"sync"

	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// messagesWaiting is the maximum number of queued messages for an agent that does not read: asks and grants of the last
	// seconds.
	messagesWaiting = 64
	// acksWaiting is the Receive Maximum: an agent with more unacknowledged messages violates the protocol [MQTT-3.3.4-9].
	acksWaiting = 1024
)

// outbox queues packets to one agent: packets that arrive during a write share the next one. Senders never block.
type outbox struct {
	write func([]byte) // may block
	limit int          // of queued messages; 0: messagesWaiting

	mu       sync.Mutex
	messages waiting // written first: a guest may be waiting for them
	acks     waiting
	writing  bool // a goroutine is writing and will write what is queued
}

// waiting is a queue of encoded packets.
type waiting struct {
	packets []byte
	count   int
}

func (w *waiting) add(packet ...byte) {
	w.packets = append(w.packets, packet...)
	w.count++
}

// send queues a message. It reports false if the queue is full.
func (o *outbox) send(message []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.messages.count >= cmp.Or(o.limit, messagesWaiting) {
		return false
	}
	o.messages.add(message...)
	if o.begin() {
		go o.run()
	}
	return true
}

// acknowledge queues a PUBACK (MQTT 5.0, 3.4). It returns packets.ErrReceiveMaximum for an agent that sends and does not
// read. Only the agent's read loop calls it; the call may block in a write.
func (o *outbox) acknowledge(id uint16, code packets.Code) error {
	o.mu.Lock()
	if o.acks.count >= acksWaiting {
		o.mu.Unlock()
		return packets.ErrReceiveMaximum
	}
	if code == packets.CodeSuccess { // success is encoded without a reason code
		o.acks.add(packets.Puback<<4, 2, byte(id>>8), byte(id))
	} else {
		o.acks.add(packets.Puback<<4, 3, byte(id>>8), byte(id), code.Code)
	}
	mine := o.begin()
	o.mu.Unlock()
	if mine {
		o.run()
	}
	return nil
}

// begin reports whether the caller must call run, because no other goroutine is writing. mu is held.
func (o *outbox) begin() bool {
	if o.writing {
		return false
	}
	o.writing = true
	return true
}

// run writes until the queues are empty.
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
