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

// input is an observed contact or button.
type input struct {
	device    string
	pin       gpio.PinIn
	high, low protocol.EventKind // the events of a change; "" for none
	seen      gpio.Level         // by the latest read

	mu   sync.Mutex
	last gpio.Level // that two consecutive reads agreed on
}

// poll reads the input and returns the event of a change, or "".
func (i *input) poll() protocol.EventKind {
	level, err := read(i.pin)
	steady := err == nil && level == i.seen
	i.seen = level
	i.mu.Lock()
	defer i.mu.Unlock()
	if !steady || level == i.last {
		return ""
	}
	i.last = level
	if level == gpio.High {
		return i.high
	}
	return i.low
}

func (i *input) level() gpio.Level {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.last
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
			if kind := i.poll(); kind != "" {
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

// Leaves returns whether each door with a contact is open now.
func (c *Controller) Leaves() map[string]bool {
	open := make(map[string]bool)
	for _, i := range c.inputs {
		if i.high == protocol.EventDoorOpened {
			open[i.device] = bool(i.level())
		}
	}
	return open
}

func (c *Controller) observe(device string, pin gpio.PinIn, high, low protocol.EventKind) {
	if pin != nil {
		level, _ := read(pin)
		c.inputs = append(c.inputs, &input{device: device, pin: pin, high: high, low: low, last: level, seen: level})
	}
}
