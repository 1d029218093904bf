// Package door drives the locks of a branch, and decides when it may.
//
// Two things are kept apart. The controller knows requests: it hands out nonces, judges grants and remembers results, and
// touches no hardware. A door knows one line: it drives it, confirms it and makes it idle again, and knows nothing of
// MQTT.
//
//	request at the controller:  (unknown) ──ask──► claimed ──grant──► decided ──60 s──► (forgotten)
//	                                            └─────deny────►   ▲
//	                      (unknown) ──grant, nonce not known──────┘
//
//	line of a door:       idle ──drive──► driven ──timer──► idle
//	                                        └──drive: the end moves, nothing stacks
//
// A line that does not become idle is tried again until it does. The timer that ends a pulse is armed before the line
// is driven and runs on its own: it waits for nobody who reports, confirms or hangs.
package door

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/protocol"
)

const (
	pollInterval      = 5 * time.Millisecond   // between looks at the line and the sense line while a drive is confirmed
	idleRetryInterval = 100 * time.Millisecond // between attempts to make a line idle
	turnTimeout       = 400 * time.Millisecond // how long the end of a pulse waits for a drive that confirms; longer than it may take
	finishAttempts    = 5
	hangTimeout       = 2 * time.Second // a turn this long is a driver that hangs
)

// Lock is the hardware of one door; see agent.Lock.
type Lock struct {
	Device  string
	Kind    protocol.DoorKind
	Relay   gpio.PinIO
	Sense   gpio.PinIn
	Contact gpio.PinIn
	Exit    gpio.PinIn
}

// door owns the line of one lock.
type door struct {
	lock  Lock
	event func(protocol.Event)
	log   *slog.Logger
	turn  chan struct{} // holds one token: of the request that drives, or of the end of a pulse

	mu      sync.Mutex // guards what follows; never held while the hardware is called
	since   time.Time  // when the line was driven; zero: idle
	until   time.Time  // when the pulse ends
	request string     // the last that drives
	failing bool       // the line did not become idle
	closed  bool
	turnAt  time.Time // when the turn was taken; zero: free
	timer   *time.Timer
}

func newDoor(lock Lock, event func(protocol.Event), log *slog.Logger) *door {
	d := &door{lock: lock, event: event, log: log.With("device", lock.Device), turn: make(chan struct{}, 1)}
	d.timer = time.AfterFunc(time.Hour, d.expire)
	d.timer.Stop()
	return d
}

// drive unlocks the door for a pulse unless it is later than notAfter, and reports as soon as that is confirmed.
// It is called from many goroutines; they take turns.
func (d *door) drive(request string, pulse time.Duration, notAfter time.Time) protocol.Result {
	r := protocol.Result{RequestID: request, Device: d.lock.Device, Outcome: protocol.Dropped}
	if !d.takeTurn(time.Until(notAfter)) {
		r.Detail = "the door was busy until the grant was too old"
		return r
	}
	defer d.releaseTurn()
	start := time.Now()
	if start.After(notAfter) { // the process may have been stopped for any time since
		r.Detail = "the grant was too old"
		return r
	}

	if !d.begin(request, start, start.Add(pulse)) {
		r.Detail = "the agent stops"
		return r
	}
	if err := guard(func() error { return d.lock.Relay.Out(gpio.High) }); err != nil {
		d.undo(start)
		d.abort()
		r.Outcome, r.Detail = protocol.Failed, protocol.Clip("the relay could not be driven: "+err.Error())
		d.event(protocol.Event{Kind: protocol.EventRelayError, Device: d.lock.Device, RequestID: request, Detail: r.Detail})
		return r
	}
	driven := time.Now()
	d.begin(request, start, driven.Add(pulse)) // the whole pulse from here; the end was armed before in case Out hung
	d.event(protocol.Event{Kind: protocol.EventEnergized, Device: d.lock.Device, RequestID: request})
	limit := start.Add(protocol.ConfirmLimit)
	err := d.confirm(limit)
	if driven.After(limit) { // the line may have moved too late, or when the pulse was over
		err = fmt.Errorf("the relay took longer than %v", protocol.ConfirmLimit)
	}
	if err != nil {
		d.abort()
		r.Outcome, r.Detail, r.EnergizedMs = protocol.Failed, protocol.Clip(err.Error()), milliseconds(time.Since(start))
		return r
	}
	r.Outcome, r.EnergizedMs = protocol.Opened, milliseconds(time.Since(start))
	return r
}

// begin notes the pulse, or that it is to last longer, and arms its end. A pulse is never made shorter.
func (d *door) begin(request string, start, until time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if d.since.IsZero() {
		d.since = start
	}
	if until.After(d.until) {
		d.until = until
	}
	d.request = request
	d.timer.Reset(time.Until(d.until))
	return true
}

// confirm looks at the line, and at the sense line, until both say driven or the limit has passed. Its last look is one
// behind the limit: a process that was stopped meanwhile must not call a door failed that stands open.
func (d *door) confirm(limit time.Time) error {
	for {
		late := time.Now().After(limit)
		line, err := read(d.lock.Relay)
		if err != nil {
			return fmt.Errorf("the line could not be read back: %w", err)
		}
		sense := gpio.High
		if d.lock.Sense != nil {
			if sense, err = read(d.lock.Sense); err != nil {
				return fmt.Errorf("the sense line could not be read: %w", err)
			}
		}
		switch {
		case line == gpio.High && sense == gpio.High:
			return nil
		case late && line == gpio.High:
			return fmt.Errorf("the lock's sense line did not confirm within %v", protocol.ConfirmLimit)
		case late:
			return fmt.Errorf("the line did not read back as driven within %v", protocol.ConfirmLimit)
		}
		time.Sleep(pollInterval)
	}
}

// undo forgets a pulse that began at start because its line was never driven. One that ran before goes on to be released.
func (d *door) undo(start time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.Equal(start) {
		d.since = time.Time{}
	}
}

// abort ends the pulse of a drive that failed.
func (d *door) abort() {
	d.mu.Lock()
	d.until = time.Now()
	d.mu.Unlock()
	_ = d.idle() // it has told of its error itself
}

// expire is the end of a pulse. It runs in the timer's own goroutine.
func (d *door) expire() {
	if d.takeTurn(turnTimeout) {
		defer d.releaseTurn()
	} // else whoever drives hangs, and the pulse ends nevertheless
	d.mu.Lock()
	over := !time.Now().Before(d.until) // else a later drive has moved the end, and the timer with it
	d.mu.Unlock()
	if over {
		_ = d.idle() // it has told of its error itself
	}
}

// idle makes the line idle; if that fails the timer tries again, unless the door is closed.
func (d *door) idle() error {
	err := d.lower()
	var happened protocol.Event
	d.mu.Lock()
	switch {
	case err != nil:
		if !d.closed {
			d.timer.Reset(idleRetryInterval)
		}
		if !d.failing {
			d.failing = true
			happened = protocol.Event{Kind: protocol.EventRelayError, RequestID: d.request, Detail: protocol.Clip(err.Error())}
		}
	case !d.since.IsZero():
		happened = protocol.Event{Kind: protocol.EventReleased, RequestID: d.request, EnergizedMs: milliseconds(time.Since(d.since))}
		fallthrough
	default:
		d.timer.Stop()
		d.since, d.until, d.request, d.failing = time.Time{}, time.Time{}, "", false
	}
	d.mu.Unlock()
	if happened.Kind != "" {
		happened.Device = d.lock.Device
		d.event(happened)
	}
	if err != nil {
		d.log.Error("relay is not idle", "error", err)
	}
	return err
}

// lower drives the line idle. What counts is what it reads back as: a relay that can be driven neither way is idle too.
func (d *door) lower() error {
	outErr := guard(func() error { return d.lock.Relay.Out(gpio.Low) })
	level, readErr := read(d.lock.Relay)
	switch {
	case readErr == nil && level == gpio.Low:
		return nil
	case outErr != nil:
		return fmt.Errorf("the relay could not be released: %w", outErr)
	case readErr != nil:
		return fmt.Errorf("the line could not be read back: %w", readErr)
	default:
		return errors.New("the relay was released but reads back as driven")
	}
}

// relock is the first thing done to a lock. It reports what the cloud should know about it.
func (d *door) relock() protocol.SelfTest {
	test := protocol.SelfTest{Name: "relay " + d.lock.Device, OK: true}
	level, err := read(d.lock.Relay)
	if err == nil && level == gpio.High {
		test.OK, test.Detail = false, "was energised at start"
		d.event(protocol.Event{Kind: protocol.EventWasEnergized, Device: d.lock.Device})
	}
	// A relay that cannot be driven is idle, but it will open nothing.
	outErr := guard(func() error { return d.lock.Relay.Out(gpio.Low) })
	if err := cmp.Or(d.idle(), outErr); err != nil {
		test.OK, test.Detail = false, protocol.Clip(err.Error())
	}
	return test
}

// inspect sets the inputs up and reports those that cannot be had.
func (d *door) inspect() []protocol.SelfTest {
	var failed []protocol.SelfTest
	for _, input := range []struct {
		name string
		pin  gpio.PinIn
	}{{"sense", d.lock.Sense}, {"contact", d.lock.Contact}, {"exit", d.lock.Exit}} {
		if input.pin == nil {
			continue
		}
		if err := guard(func() error { return input.pin.In(gpio.PullNoChange, gpio.NoEdge) }); err != nil {
			failed = append(failed, protocol.SelfTest{Name: input.name + " " + d.lock.Device, Detail: protocol.Clip(err.Error())})
		}
	}
	return failed
}

// close lets no further drive begin.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// finish makes the line of a closed door idle, or gives up after a while: what cannot be released now is for the
// hardware to release when the process is gone.
func (d *door) finish() {
	for range finishAttempts {
		if d.idle() == nil {
			return
		}
		time.Sleep(idleRetryInterval)
	}
	d.timer.Stop()
}

func (d *door) takeTurn(wait time.Duration) bool {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case d.turn <- struct{}{}:
		d.mu.Lock()
		d.turnAt = time.Now()
		d.mu.Unlock()
		return true
	case <-timeout.C:
		return false
	}
}

func (d *door) releaseTurn() {
	d.mu.Lock()
	d.turnAt = time.Time{}
	d.mu.Unlock()
	<-d.turn
}

// hangs reports whether the hardware has kept somebody's turn for longer than any drive may take.
func (d *door) hangs() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.turnAt.IsZero() && time.Since(d.turnAt) > hangTimeout
}

// read is Read of a pin that may panic, as a driver may whose device went away.
func read(pin gpio.PinIn) (level gpio.Level, err error) {
	err = guard(func() error { level = pin.Read(); return nil })
	return level, err
}

// guard turns a panic of a driver into an error: a fault of one line must not take the agent, and with it the end of
// another line's pulse, away.
func guard(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("driver panicked: %v", p)
		}
	}()
	return call()
}

func milliseconds(d time.Duration) uint32 { return uint32(max(d, 0) / time.Millisecond) }
