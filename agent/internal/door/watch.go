package door

import (
	"context"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/protocol"
)

// watchInterval is how often the inputs are looked at. A change counts when two looks in a row agree, so a contact that
// bounces for up to one interval gives one event. Looking is done on purpose: waiting for edges is where the GPIO
// drivers differ and fail.
const watchInterval = 50 * time.Millisecond

// input is a contact or a button that is observed.
type input struct {
	device     string
	pin        gpio.PinIn
	high, low  protocol.EventKind // what a change means; "" is not worth an event
	last, seen gpio.Level
}

// look reports what has happened since the last look, "" for nothing.
func (i *input) look() protocol.EventKind {
	level, err := read(i.pin)
	steady := err == nil && level == i.seen
	i.seen = level
	if !steady || level == i.last {
		return ""
	}
	i.last = level
	if level == gpio.High {
		return i.high
	}
	return i.low
}

// Watch reports door leaves that open and close and exit buttons that are pressed, until the context is done. It decides
// nothing: an exit button opens its door in hardware.
func (c *Controller) Watch(ctx context.Context) {
	inputs := c.inputs()
	if len(inputs) == 0 {
		return
	}
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, i := range inputs {
			if kind := i.look(); kind != "" {
				c.config.Event(protocol.Event{Kind: kind, Device: i.device})
			}
		}
	}
}

func (c *Controller) inputs() []*input {
	var inputs []*input
	add := func(device string, pin gpio.PinIn, high, low protocol.EventKind) {
		if pin != nil {
			level, _ := read(pin)
			inputs = append(inputs, &input{device: device, pin: pin, high: high, low: low, last: level, seen: level})
		}
	}
	for _, d := range c.order {
		add(d.lock.Device, d.lock.Contact, protocol.EventDoorOpened, protocol.EventDoorClosed)
		add(d.lock.Device, d.lock.Exit, protocol.EventExitPressed, "")
	}
	return inputs
}
