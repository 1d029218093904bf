package door

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/protocol"
)

// watchInterval is the polling interval of the inputs. A change counts when two consecutive reads agree, so a contact that
// bounces for up to one interval produces one event. The inputs are polled because GPIO drivers differ, and fail, in edge
// detection.
const watchInterval = 50 * time.Millisecond

// firstReadTimeout limits how long the start waits for the first read of the inputs. On an I²C bus that hangs, the kernel gives up each
// transfer after a second.
const firstReadTimeout = 2 * time.Second

const (
	// eventBurst and eventInterval limit the changes of an input that are reported: that many at once, and one in each interval. A loose contact,
	// or a leaf that the wind moves, changes several times a second without end.
	eventBurst    = 60
	eventInterval = time.Second
	// steadyTime is how long an input that has exceeded the limit must keep its level before changes are reported again.
	steadyTime = 10 * time.Second
)

var (
	errNotRead   = errors.New("the line was not read yet")
	errReadHangs = errors.New("the driver hangs while it reads the line")
	errUnsteady  = errors.New("the level changes again and again, so its changes are not reported: check the contact and its cable")
)

// input is an observed contact, button or sense line. One goroutine at a time reads it; see door.eachInput.
type input struct {
	name      string // "contact"
	pin       gpio.PinIn
	high, low protocol.EventKind // the events of a change; "" for none
	seen      gpio.Level         // by the latest read
	ready     bool               // the latest read succeeded
	moved     time.Time          // when two consecutive reads disagreed last
	limit     *rate.Limiter      // of the changes that are reported

	mu    sync.Mutex
	known bool       // it could be read since the start
	last  gpio.Level // that two consecutive reads agreed on
	since time.Time  // of last
	began time.Time  // of the read in progress; zero: none is
	err   error      // of the latest read
	// unsteady is set while changes are not reported; last is then the level that was reported last.
	unsteady bool
}

// inputs returns the inputs of a lock, causes first: of changes that are seen at the same time, those that explain an opening are
// reported before it.
func (l Lock) inputs() []*input {
	list := []*input{
		{name: "exit", pin: l.Exit, high: protocol.EventExitPressed},
		{name: "sense", pin: l.Sense, high: protocol.EventLockReleased},
		{name: "contact", pin: l.Contact, high: protocol.EventDoorOpened, low: protocol.EventDoorClosed},
	}
	list = slices.DeleteFunc(list, func(i *input) bool { return i.pin == nil })
	for _, i := range list {
		i.err, i.limit = errNotRead, rate.NewLimiter(rate.Every(eventInterval), eventBurst)
	}
	return list
}

// read reads the pin. It sets the pin up first, unless the previous read succeeded.
func (i *input) read() (level gpio.Level, err error) {
	i.mu.Lock()
	i.began = time.Now()
	i.mu.Unlock()
	if !i.ready {
		err = guard(func() error { return i.pin.In(gpio.PullNoChange, gpio.NoEdge) })
	}
	if err == nil {
		level, err = readInput(i.pin)
	}
	i.ready = err == nil
	i.mu.Lock()
	defer i.mu.Unlock()
	i.began, i.err = time.Time{}, err
	return level, err
}

// begin reads the input for the first time. Its level is no change.
func (i *input) begin() {
	level, err := i.read()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known, i.last, i.seen, i.since = err == nil, level, level, time.Now()
}

// fault returns why the input cannot be read. It does not wait for the driver.
func (i *input) fault() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil && !i.began.IsZero() && time.Since(i.began) > hangTimeout {
		return errReadHangs
	}
	if i.err == nil && i.unsteady {
		return errUnsteady
	}
	return i.err
}

// poll reads the input and returns the event of a change, or "". While it cannot be read, the last level remains. The first level of one
// that could not be read at the start is no change.
func (i *input) poll() protocol.EventKind {
	level, err := i.read()
	if err != nil {
		return ""
	}
	steady := level == i.seen
	i.seen = level
	if !steady {
		i.moved = time.Now()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.unsteady = i.unsteady && time.Since(i.moved) < steadyTime; i.unsteady {
		return ""
	}
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

// suppress reports whether the change that poll returned is not to be reported, because there were too many.
func (i *input) suppress() bool {
	if i.limit.Allow() {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unsteady, i.last = true, !i.last
	return true
}

// contact returns the level of a door contact. known is false if it could not be read since the start.
func (i *input) contact(device string) (c protocol.Contact, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return protocol.Contact{Device: device, Open: bool(i.last), ForMs: uint64(time.Since(i.since) / time.Millisecond)}, i.known
}

// eachInput calls do with each input in order, unless an earlier call has not ended.
func (d *door) eachInput(do func(*input)) {
	if !d.reading.TryLock() {
		return
	}
	defer d.reading.Unlock()
	for _, i := range d.inputs {
		do(i)
	}
}

// Watch reports changes of the door contacts and exit buttons, and checks idle relay lines, until ctx is done. It decides
// nothing: an exit button opens its door in hardware. A driver that hangs delays the inputs of its own door only.
func (c *Controller) Watch(ctx context.Context) {
	var observed []*door
	for _, d := range c.order {
		go every(ctx, checkInterval, d.check) // not waited for: a driver may hang
		if len(d.inputs) > 0 {
			observed = append(observed, d)
		}
	}
	if len(observed) == 0 {
		return
	}
	every(ctx, watchInterval, func() {
		for _, d := range observed {
			go d.eachInput(d.watch)
		}
	})
}

// watch reports a change of an input.
func (d *door) watch(i *input) {
	kind := i.poll()
	if kind == "" || kind == protocol.EventLockReleased && d.inUse() { // released by the relay
		return
	}
	if i.suppress() {
		return
	}
	d.event(protocol.Event{Kind: kind, Device: d.lock.Device})
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
	for _, d := range c.order {
		for _, i := range d.inputs {
			if contact, known := i.contact(d.lock.Device); known && i.high == protocol.EventDoorOpened {
				contacts = append(contacts, contact)
			}
		}
	}
	return contacts
}
