package door

import (
	"context"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/protocol"
)

// watchInterval is the polling interval of the inputs. A change counts when two consecutive reads agree, so a contact that
// bounces for up to one interval produces one event. The inputs are polled because GPIO drivers differ, and fail, in edge
// detection.
const watchInterval = 50 * time.Millisecond

// input is an observed contact, button or sense line.
type input struct {
	device    string
	pin       gpio.PinIn
	high, low protocol.EventKind // the events of a change; "" for none
	seen      gpio.Level         // by the latest read

	mu    sync.Mutex
	known bool       // it could be read since the start
	last  gpio.Level // that two consecutive reads agreed on
	since time.Time  // of last
}

// poll reads the input and returns the event of a change, or "". While it cannot be read, the level before remains. The first level of one
// that could not be read at the start is no change.
func (i *input) poll() protocol.EventKind {
	level, err := readInput(i.pin)
	if err != nil {
		return ""
	}
	steady := level == i.seen
	i.seen = level
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.known
	if !steady || known && level == i.last {
		return ""
	}
	i.known, i.last, i.since = true, level, time.Now()
	if !known {
		return ""
	}
	if level == gpio.High {
		return i.high
	}
	return i.low
}

// contact returns the level of a door contact. known is false if it could not be read since the start.
func (i *input) contact() (c protocol.Contact, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return protocol.Contact{Device: i.device, Open: bool(i.last), ForMs: uint64(time.Since(i.since) / time.Millisecond)}, i.known
}

// Watch reports changes of the door contacts and exit buttons, and checks idle relay lines, until ctx is done. It decides
// nothing: an exit button opens its door in hardware.
func (c *Controller) Watch(ctx context.Context) {
	for _, d := range c.order {
		go every(ctx, checkInterval, d.check) // not waited for: a driver may hang
	}
	if len(c.inputs) == 0 {
		return
	}
	every(ctx, watchInterval, func() {
		for _, i := range c.inputs {
			kind := i.poll()
			if kind == protocol.EventLockReleased && c.doors[i.device].inUse() {
				continue // released by the relay
			}
			if kind != "" {
				c.config.Event(protocol.Event{Kind: kind, Device: i.device})
			}
		}
	})
}

func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// Contacts returns the level of each door contact that is known.
func (c *Controller) Contacts() []protocol.Contact {
	var contacts []protocol.Contact
	for _, i := range c.inputs {
		if i.high != protocol.EventDoorOpened {
			continue
		}
		if contact, known := i.contact(); known {
			contacts = append(contacts, contact)
		}
	}
	return contacts
}

func (c *Controller) observe(device string, pin gpio.PinIn, high, low protocol.EventKind) {
	if pin != nil {
		level, err := readInput(pin)
		c.inputs = append(c.inputs, &input{device: device, pin: pin, high: high, low: low, known: err == nil, last: level, seen: level, since: time.Now()})
	}
}
