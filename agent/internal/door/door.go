// Package door drives the locks of a branch and decides when it may.
//
// Two types are separate. A Controller handles requests: it issues nonces, checks grants and stores results, and touches no
// hardware. A door handles one relay line: it drives the line, confirms it and de-energises it again, independently of MQTT.
//
//	request in the controller:  (unknown) ──ask──► claimed ──grant or deny──► decided ──60 s──► (forgotten)
//
//	line of a door:             idle ──drive──► driven ──timer──► idle
//	                                              └──drive: the end of the pulse moves; pulses do not add up
//
// A line that does not become idle is retried until it does. The timer that ends a pulse is armed before the line is driven
// and runs independently: it never waits for reporting, for confirmation or for a driver that hangs.
package door

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/condition"
	"github.com/yeolda/yeolda/protocol"
)

const (
	pollInterval      = 5 * time.Millisecond   // between reads of the line and the sense line while a drive is confirmed
	idleRetryInterval = 100 * time.Millisecond // between attempts to de-energise a line
	turnTimeout       = 400 * time.Millisecond // how long the end of a pulse waits for a drive to be confirmed; longer than ConfirmLimit
	finishAttempts    = 5
	hangTimeout       = 2 * time.Second  // a turn that takes longer means that the driver hangs
	checkInterval     = time.Second      // between checks of an idle line
	senseDelay        = time.Second      // how long a sense line may follow the relay late
	foundTime         = 10 * time.Minute // how long the self-test of a line fails that was energised when the agent started
	lostTimeout       = 10 * time.Second // how long a line that worked before may fail before the agent is restarted
)

// Lock is the hardware of one door; see agent.Lock.
type Lock struct {
	Device  string
	Kind    protocol.DoorKind
	Pulse   time.Duration
	Relay   gpio.PinIO
	Sense   gpio.PinIn
	Contact gpio.PinIn
	Exit    gpio.PinIn
}

// door owns the relay line of one lock.
type door struct {
	lock    Lock
	event   func(protocol.Event)
	line    condition.Condition
	turn    chan struct{} // its one token is held by a drive, the end of a pulse or a check
	inputs  []*input
	reading sync.Mutex // held while the inputs are read

	mu       sync.Mutex // guards the fields below; never held during a call of the hardware
	since    time.Time  // when the line was driven; zero: idle
	until    time.Time  // when the pulse ends
	cause    cause      // of the latest drive
	released time.Time  // when the relay was de-energised last
	closed   bool
	turnAt   time.Time // when a drive or the end of a pulse took the turn; zero: neither has it
	checkAt  time.Time // when a check began; zero: none is in progress
	stuck    bool      // a check has blocked a drive
	timer    *time.Timer

	found   time.Time // when the agent found the line energised at its start; zero: it was not
	worked  bool      // the line has worked since the agent started
	lost    bool      // the line worked, and has failed for lostTimeout
	failure error     // of the line; nil: it works
}

// cause is why a line is driven: for a request of the cloud, or for an attempt at the keypad.
type cause struct {
	request string
	source  protocol.Source
}

// event returns an event of a door that has this cause.
func (c cause) event(kind protocol.EventKind, device string) protocol.Event {
	return protocol.Event{Kind: kind, Device: device, RequestID: c.request, Source: c.source}
}

func newDoor(lock Lock, event func(protocol.Event), log *slog.Logger) *door {
	d := &door{lock: lock, event: event, turn: make(chan struct{}, 1), inputs: lock.inputs()}
	d.line.Log, d.line.Name = log.With("device", lock.Device), "relay line"
	d.timer = time.AfterFunc(time.Hour, d.expire)
	d.timer.Stop()
	return d
}

// drive unlocks the door for a pulse, unless notAfter has passed, and returns as soon as the result is confirmed.
// Concurrent calls take turns.
func (d *door) drive(why cause, pulse time.Duration, notAfter time.Time) protocol.Result {
	r := protocol.Result{RequestID: why.request, Device: d.lock.Device, Outcome: protocol.Dropped}
	if !d.takeTurn(time.Until(notAfter)) {
		d.blocked()
		r.Detail = "the door was busy until the grant was too old"
		return r
	}
	defer d.releaseTurn()
	start := time.Now()
	if start.After(notAfter) { // the process may have been suspended in the meantime
		r.Detail = "the grant was too old"
		return r
	}

	pulse = cmp.Or(d.lock.Pulse, pulse)
	if !d.begin(why, start, start.Add(pulse)) {
		r.Detail = "the agent is stopping"
		return r
	}
	if err := guard(func() error { return d.lock.Relay.Out(gpio.High) }); err != nil {
		d.undo(start)
		d.abort()
		r.Outcome, r.Detail = protocol.Failed, protocol.Clip("the relay could not be driven: "+err.Error())
		e := why.event(protocol.EventRelayError, d.lock.Device)
		e.Detail = r.Detail
		d.event(e)
		return r
	}
	driven := time.Now()
	d.begin(why, start, driven.Add(pulse)) // the full pulse from now on; the timer was armed earlier in case Out hung
	d.event(why.event(protocol.EventEnergized, d.lock.Device))
	limit := start.Add(protocol.ConfirmLimit)
	err := d.confirm(limit)
	if driven.After(limit) { // the line may have moved too late, or after the end of the pulse
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

// begin records a pulse, or extends the current one, and arms its end. A pulse is never shortened.
func (d *door) begin(why cause, start, until time.Time) bool {
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
	d.cause = why
	d.timer.Reset(time.Until(d.until))
	return true
}

// confirm reads the line and the sense line until both are driven or the limit has passed. The last read happens after the
// limit, so that a process that was suspended in between does not report an open door as failed.
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

// undo removes a pulse that began at start because its line was never driven. An earlier pulse continues.
func (d *door) undo(start time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.Equal(start) {
		d.since = time.Time{}
	}
}

// abort ends the pulse of a failed drive.
func (d *door) abort() {
	d.mu.Lock()
	d.until = time.Now()
	d.mu.Unlock()
	_ = d.idle() // reports its error itself
}

// expire ends a pulse. It runs in the goroutine of the timer.
func (d *door) expire() {
	if d.takeTurn(turnTimeout) {
		defer d.releaseTurn()
	} // otherwise a drive hangs, and the pulse ends nevertheless
	d.mu.Lock()
	over := !time.Now().Before(d.until) // otherwise a later drive has moved the end, and the timer with it
	d.mu.Unlock()
	if over {
		_ = d.idle() // reports its error itself
	}
}

// idle de-energises the line. If that fails, the timer tries again, unless the door is closed.
func (d *door) idle() error {
	lineErr, err := d.lower()
	d.mu.Lock()
	first, why := d.failure == nil, d.cause
	var released protocol.Event
	if err != nil {
		if !d.closed {
			d.timer.Reset(idleRetryInterval)
		}
	} else {
		if !d.since.IsZero() {
			released = why.event(protocol.EventReleased, d.lock.Device)
			released.EnergizedMs = milliseconds(time.Since(d.since))
		}
		d.timer.Stop()
		d.released = time.Now()
		d.since, d.until, d.cause = time.Time{}, time.Time{}, cause{}
	}
	d.mu.Unlock()
	d.record(lineErr)
	if released.Kind != "" {
		d.event(released)
	}
	if err != nil && first {
		e := why.event(protocol.EventRelayError, d.lock.Device)
		e.Detail = protocol.Clip(err.Error())
		d.event(e)
	}
	return err
}

// record stores and logs whether the line works.
func (d *door) record(err error) {
	lasted := d.line.Set(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
	d.worked = d.worked || err == nil
	d.lost = d.worked && lasted > lostTimeout
}

// lower de-energises the line. lineErr is any fault of the line; idleErr is set only if the line may still be driven. The
// level that reads back decides: a relay that can be driven neither way is idle too, but will not open the door.
func (d *door) lower() (lineErr, idleErr error) {
	outErr := guard(func() error { return d.lock.Relay.Out(gpio.Low) })
	level, readErr := read(d.lock.Relay)
	switch {
	case outErr != nil:
		lineErr = fmt.Errorf("the relay could not be released: %w", outErr)
	case readErr != nil:
		lineErr = fmt.Errorf("the line could not be read back: %w", readErr)
	case level == gpio.High:
		lineErr = errors.New("the relay was released but reads back as driven")
	}
	if readErr == nil && level == gpio.Low {
		return lineErr, nil
	}
	return lineErr, lineErr
}

// relock de-energises the line when the agent starts.
func (d *door) relock() {
	level, err := read(d.lock.Relay)
	if err == nil && level == gpio.High {
		d.mu.Lock()
		d.found = time.Now()
		d.mu.Unlock()
		d.event(protocol.Event{Kind: protocol.EventWasEnergized, Device: d.lock.Device})
	}
	_ = d.idle() // reports its error itself
}

// check writes the idle level again, which requests a missing line anew and shows whether the line still works. A door that
// is in use is left alone.
func (d *door) check() {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	default:
		return
	}
	d.mu.Lock()
	skip, known := !d.since.IsZero() || d.closed, d.failure != nil
	d.checkAt = time.Now()
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.checkAt, d.stuck = time.Time{}, false
		d.mu.Unlock()
	}()
	if skip {
		return
	}
	err, _ := d.lower()
	d.record(err)
	if err != nil && !known {
		d.event(protocol.Event{Kind: protocol.EventRelayError, Device: d.lock.Device, Detail: protocol.Clip(err.Error())})
	}
}

// selfTest returns the state of the relay line.
func (d *door) selfTest() protocol.SelfTest {
	d.mu.Lock()
	defer d.mu.Unlock()
	test := protocol.SelfTest{Name: "relay " + d.lock.Device, OK: true}
	switch {
	case d.failure != nil:
		test.OK, test.Detail = false, protocol.Clip(d.failure.Error())
	case !d.found.IsZero() && time.Since(d.found) < foundTime:
		test.OK, test.Detail = false, "was energised at start"
	}
	return test
}

// close lets no further drive begin.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// finish de-energises the line of a closed door, or gives up after a few attempts: the kernel releases the line when the
// process ends.
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

// blocked records that a drive waited without success for a check that hangs. A check that hangs is harmless until then.
func (d *door) blocked() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stuck = !d.checkAt.IsZero() && time.Since(d.checkAt) > protocol.ConfirmLimit
}

// hangs reports whether the driver has blocked a turn for longer than any drive may take, or a check has blocked a drive.
func (d *door) hangs() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stuck || !d.turnAt.IsZero() && time.Since(d.turnAt) > hangTimeout
}

// inUse reports whether the relay explains a released lock: it is energised, or was a moment ago.
func (d *door) inUse() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.since.IsZero() || time.Since(d.released) < senseDelay
}

// driven reports whether a pulse has begun and has not ended. One that is overdue does not count: its line cannot be released, and a
// restart requests it afresh.
func (d *door) driven() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.since.IsZero() && time.Since(d.until) < time.Second || !d.turnAt.IsZero()
}

func (d *door) isLost() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// read reads a pin and turns a panic into an error: a driver may panic after its device disappeared.
func read(pin gpio.PinIn) (level gpio.Level, err error) {
	err = guard(func() error { level = pin.Read(); return nil })
	return level, err
}

// readInput reads an observed input.
func readInput(pin gpio.PinIn) (level gpio.Level, err error) {
	level, err = read(pin)
	if err == nil {
		err = guard(func() error { return fault(pin) })
	}
	return level, err
}

// fault returns why the last read of an input failed. A level cannot show that, so an input may have this method.
func fault(pin gpio.PinIn) error {
	if f, ok := pin.(interface{ Fault() error }); ok {
		return f.Fault()
	}
	return nil
}

// guard turns a panic of a driver into an error: a fault of one line must not end the agent, and with it the pulse timers of
// all other lines.
func guard(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("driver panicked: %v", p)
		}
	}()
	return call()
}

func milliseconds(d time.Duration) uint32 { return uint32(max(d, 0) / time.Millisecond) }
