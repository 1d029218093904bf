package door

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/boardtest"
	"github.com/yeolda/yeolda/protocol"
)

// These tests cover limits: the last moment of a claim, the last request that fits, a pin that cannot be read, and the stop of
// the agent during a drive.

// unreadable is a pin whose driver panics when it is read.
type unreadable struct{ gpio.PinIO }

func (unreadable) Read() gpio.Level { panic("gpio: the device disappeared") }

// loose is a pin that accepts every call and never changes its level.
type loose struct{ gpio.PinIO }

func (loose) Out(gpio.Level) error { return nil }
func (loose) Read() gpio.Level     { return gpio.Low }

// lateError is a pin whose driver returns an error after it has driven the line.
type lateError struct{ gpio.PinIO }

func (p lateError) Out(level gpio.Level) error {
	err := p.PinIO.Out(level)
	if level == gpio.High {
		err = errors.New("input/output error")
	}
	return err
}

// configured is a contact that can be read only after it has been set up as an input.
type configured struct {
	*boardtest.Contact
	set bool
}

func (c *configured) In(pull gpio.Pull, edge gpio.Edge) error {
	c.set = true
	return c.Contact.In(pull, edge)
}

func (c *configured) Read() gpio.Level { return gpio.Level(c.set) && c.Contact.Read() }

// newTestDoor returns a door whose events are discarded.
func newTestDoor(lock Lock) *door {
	lock.Device = "room_1"
	return newDoor(lock, func(protocol.Event) {}, slog.New(slog.DiscardHandler))
}

// TestClaimExpiresWithItsNonce checks that a claim is not sent after its nonce expired: the cloud could only deny it.
func TestClaimExpiresWithItsNonce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type sending struct {
			m    protocol.Message
			life time.Duration
		}
		var sent []sending
		b := newBranch(t)
		controller := b.start(func(m protocol.Message, life time.Duration) { sent = append(sent, sending{m, life}) })
		ask := protocol.Ask{RequestID: b.newRequest(), Doors: []string{"room_1"}}
		controller.Ask(ask)
		time.Sleep(400 * time.Millisecond)
		controller.Ask(ask)
		time.Sleep(protocol.GrantAge - 400*time.Millisecond) // the nonce expires now
		controller.Ask(ask)
		time.Sleep(time.Nanosecond)
		controller.Ask(ask)
		for i, want := range []time.Duration{protocol.GrantAge, protocol.GrantAge - 400*time.Millisecond, 0, protocol.GrantAge} {
			if sent[i].life != want {
				t.Errorf("claim %d: got lifetime %v, want %v", i, sent[i].life, want)
			}
			if again := sent[i].m == sent[0].m; again != (i < 3) {
				t.Errorf("claim %d equals the first: got %v, want %v", i, again, i < 3)
			}
		}
		controller.Grant(grant(sent[3].m.(protocol.Claim), time.Second, "room_1"))
		synctest.Wait()
		if last := sent[len(sent)-1]; last.life != protocol.ResultTTL {
			t.Errorf("%T: got lifetime %v, want %v", last.m, last.life, protocol.ResultTTL)
		}
	})
}

func TestUnknownDenialIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.controller.Deny(protocol.Deny{RequestID: b.newRequest(), Nonce: protocol.NewNonce()})
		b.wantSilence()
		b.wantPulses()
	})
}

// TestObsoleteRequestsAreRemoved checks that a full memory removes decided requests after spentDelay, but neither recent nor
// pending ones.
func TestObsoleteRequestsAreRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		denied := b.claim(b.newRequest())
		b.controller.Deny(protocol.Deny{RequestID: denied.RequestID, Nonce: denied.Nonce})
		for range maxRequests - 1 {
			b.claim(b.newRequest())
		}
		for range 2 { // when all requests are recent, and at the last moment of the denied one
			b.controller.Ask(protocol.Ask{RequestID: b.newRequest(), Doors: []string{"room_1"}})
			b.wantSilence()
			time.Sleep(spentDelay)
		}
		b.claim(b.newRequest())
		if n := len(b.controller.requests.byID); n != maxRequests {
			t.Errorf("got %d requests in memory, want %d", n, maxRequests)
		}
	})
}

// TestShares checks which request a full memory removes for another door.
func TestShares(t *testing.T) {
	t.Parallel()
	now := time.Now()
	fill := func(q requests, device string, n int) {
		for i := range n {
			now = now.Add(time.Millisecond)
			if q.add(fmt.Sprint(device, " ", i), device, now) == nil {
				t.Fatalf("request %d of %s does not fit", i, device)
			}
		}
	}
	t.Run("the oldest of the door with most", func(t *testing.T) {
		q := newRequests()
		fill(q, "front_1", 2)
		fill(q, "room_1", maxRequests-2)
		fill(q, "room_2", 1)
		if q.byID["room_1 0"] != nil || len(q.byID) != maxRequests {
			t.Errorf("got %d requests, want %d without the oldest of room_1", len(q.byID), maxRequests)
		}
	})
	t.Run("equal shares", func(t *testing.T) {
		q := newRequests()
		fill(q, "room_1", maxRequests/3+1)
		fill(q, "room_2", maxRequests/3)
		fill(q, "room_3", maxRequests/3)
		if q.add("another", "room_2", now) != nil || len(q.byID) != maxRequests {
			t.Error("a door displaced a request of a door that has only one more")
		}
	})
	t.Run("expired requests do not count", func(t *testing.T) {
		q := newRequests()
		fill(q, "room_1", maxRequests)
		now = now.Add(time.Hour)
		only := q.add("only", "room_1", now)
		fill(q, "front_1", maxRequests-1)
		if q.add("another", "front_1", now) != nil || only == nil || q.byID["only"] != only {
			t.Error("a flood displaced the only request of another door")
		}
	})
}

// TestInputsAreSetUp checks that the inputs are set up before they are read for the first time.
func TestInputsAreSetUp(t *testing.T) {
	t.Parallel()
	contact := &configured{Contact: boardtest.NewContact()}
	contact.Set(true)
	c := NewController(Config{Event: func(protocol.Event) {}, Logger: slog.New(slog.DiscardHandler)},
		[]Lock{{Device: "room_1", Kind: protocol.DoorRoom, Relay: new(boardtest.Lock).Relay(), Contact: contact}})
	c.Relock()
	if got := c.Contacts(); len(got) != 1 || !got[0].Open {
		t.Errorf("got %+v, want an open door", got)
	}
}

// TestLostAfterLostTimeout checks the last moment of a failure that does not yet restart the agent.
func TestLostAfterLostTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTestDoor(Lock{Relay: new(boardtest.Lock).Relay()})
		d.record(nil)
		d.record(errors.New("broken"))
		time.Sleep(lostTimeout)
		d.record(errors.New("broken"))
		if d.isLost() {
			t.Errorf("lost after %v, want not yet", lostTimeout)
		}
		time.Sleep(time.Nanosecond)
		d.record(errors.New("broken"))
		if !d.isLost() {
			t.Errorf("not lost after more than %v", lostTimeout)
		}
	})
}

// TestSenseLineMayFollowLate checks for how long the relay explains a released lock.
func TestSenseLineMayFollowLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTestDoor(Lock{Relay: new(boardtest.Lock).Relay()})
		d.drive(cause{request: "a"}, time.Second, time.Now().Add(protocol.GrantAge))
		time.Sleep(time.Second + senseDelay - time.Nanosecond)
		if !d.inUse() {
			t.Errorf("not in use less than %v after the pulse", senseDelay)
		}
		time.Sleep(time.Nanosecond)
		if d.inUse() {
			t.Errorf("in use %v after the pulse", senseDelay)
		}
	})
}

// TestFailedDriveIsNotIdle checks that a door is not idle while the line of a failed drive is de-energised.
func TestFailedDriveIsNotIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := new(boardtest.Lock)
		lock.Break(boardtest.Faults{Slow: 100 * time.Millisecond})
		d := newTestDoor(Lock{Relay: lateError{lock.Relay()}})
		done := make(chan protocol.Result)
		go func() { done <- d.drive(cause{request: "a"}, time.Second, time.Now().Add(protocol.GrantAge)) }()
		time.Sleep(150 * time.Millisecond)
		if !d.driven() || lock.Locked() {
			t.Error("got an idle door, want one that is being de-energised")
		}
		<-done
		synctest.Wait()
		if d.driven() || !lock.Locked() {
			t.Error("the door is not idle after the failure")
		}
	})
}

// TestCloseWaitsForTheDrive checks that a drive in progress is confirmed before the line is de-energised, even with a slow
// driver.
func TestCloseWaitsForTheDrive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Break(boardtest.Faults{SenseLag: 120 * time.Millisecond})
		b.unlock(3 * time.Second)
		synctest.Wait()
		b.lock.Break(boardtest.Faults{SenseLag: 120 * time.Millisecond, Slow: 50 * time.Millisecond})
		b.controller.Close()
		if !b.lock.Locked() {
			t.Error("the line is driven after Close")
		}
		b.wantResult(protocol.Opened)
		b.wantPulses(170 * time.Millisecond)
	})
}

// TestCloseRetriesTheRelease checks that Close releases a relay that recovers in time, and does not wait for one that does not.
func TestCloseRetriesTheRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		repaired time.Duration
		locked   bool
		took     time.Duration
	}{
		"recovers": {250 * time.Millisecond, true, 300 * time.Millisecond},
		"does not": {time.Hour, false, finishAttempts * idleRetryInterval},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBranch(t)
				b.unlock(3 * time.Second)
				b.wantResult(protocol.Opened)
				b.lock.Break(boardtest.Faults{DeadLow: true})
				time.AfterFunc(c.repaired, func() { b.lock.Break(boardtest.Faults{}) })
				began := time.Now()
				b.controller.Close()
				if took := time.Since(began); took != c.took {
					t.Errorf("Close took %v, want %v", took, c.took)
				}
				if b.lock.Locked() != c.locked {
					t.Errorf("locked: got %v, want %v", !c.locked, c.locked)
				}
			})
		})
	}
}

// TestHungDriver checks that a turn of exactly hangTimeout does not count as hanging, and that Close abandons such a driver.
func TestHungDriver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		hang := make(chan struct{})
		b.lock.Break(boardtest.Faults{Hang: hang})
		b.unlock(10 * time.Second)
		synctest.Wait()
		time.Sleep(hangTimeout)
		if !b.controller.Alive() {
			t.Error("a turn of exactly hangTimeout counts as hanging")
		}
		time.Sleep(time.Nanosecond)
		if b.controller.Alive() {
			t.Error("alive while the driver hangs")
		}
		began := time.Now()
		b.controller.Close()
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v, want 1s", took)
		}
		close(hang)
		b.wantResult(protocol.Failed)
	})
}

// TestHungCheck covers a driver that hangs while its line is idle. That is harmless until a drive waits for it: only then must
// the agent be restarted, which would interrupt all other doors.
func TestHungCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.controller.Relock()
		hang := make(chan struct{})
		b.lock.Break(boardtest.Faults{HangLow: hang})
		ctx, cancel := context.WithCancel(t.Context())
		go b.controller.Watch(ctx)
		time.Sleep(time.Minute)
		if !b.controller.Alive() {
			t.Error("not alive although no drive is affected")
		}
		b.controller.Grant(grant(b.claim(b.newRequest()), time.Second, "front_1"))
		b.wantResult(protocol.Opened)
		b.unlock(time.Second)
		b.wantResult(protocol.Dropped)
		if b.controller.Alive() {
			t.Error("alive although a check that hangs has blocked a drive")
		}
		cancel()
		close(hang)
		synctest.Wait()
		if !b.controller.Alive() {
			t.Error("not alive after the driver returned")
		}
	})
}

// TestSlowCheck checks that a drive that waited for a check reports a hanging driver only after ConfirmLimit.
func TestSlowCheck(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]bool{protocol.ConfirmLimit: false, protocol.ConfirmLimit + time.Nanosecond: true} {
		synctest.Test(t, func(t *testing.T) {
			lock, hang := new(boardtest.Lock), make(chan struct{})
			lock.Break(boardtest.Faults{HangLow: hang})
			d := newTestDoor(Lock{Relay: lock.Relay()})
			go d.check()
			synctest.Wait()
			if r := d.drive(cause{request: "a"}, time.Second, time.Now().Add(took)); r.Outcome != protocol.Dropped {
				t.Errorf("got %+v, want a dropped drive", r)
			}
			if got := d.hangs(); got != want {
				t.Errorf("after a check of %v: got hangs %v, want %v", took, got, want)
			}
			close(hang)
		})
	}
}

// TestLower checks that the level read back decides, and that the error names the part of the relay that failed.
func TestLower(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		driven, unreadable bool
		faults             boardtest.Faults
		want               string
	}{
		"healthy":             {driven: true},
		"dead but idle":       {faults: boardtest.Faults{Dead: true}},
		"dead and driven":     {driven: true, faults: boardtest.Faults{Dead: true}, want: "the relay could not be released: input/output error"},
		"welded":              {driven: true, faults: boardtest.Faults{Welded: true}, want: "the relay was released but reads back as driven"},
		"unreadable":          {unreadable: true, want: "the line could not be read back: driver panicked: gpio: the device disappeared"},
		"dead and unreadable": {unreadable: true, faults: boardtest.Faults{Dead: true}, want: "the relay could not be released: input/output error"},
	} {
		lock := new(boardtest.Lock)
		if c.driven {
			lock.Energize()
		}
		lock.Break(c.faults)
		relay := lock.Relay()
		if c.unreadable {
			relay = unreadable{relay}
		}
		got := ""
		if _, err := newTestDoor(Lock{Relay: relay}).lower(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestUnreadablePinFailsTheDrive(t *testing.T) {
	t.Parallel()
	for want, lockOf := range map[string]func(*boardtest.Lock) Lock{
		"the line could not be read back": func(l *boardtest.Lock) Lock { return Lock{Relay: unreadable{l.Relay()}} },
		"the sense line could not be read": func(l *boardtest.Lock) Lock {
			return Lock{Relay: l.Relay(), Sense: unreadable{gpio.INVALID}}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			lock := new(boardtest.Lock)
			d := newTestDoor(lockOf(lock))
			r := d.drive(cause{request: "a"}, time.Second, time.Now().Add(protocol.GrantAge))
			if r.Outcome != protocol.Failed || !strings.HasPrefix(r.Detail, want) {
				t.Errorf("%s: %+v", want, r)
			}
			if !lock.Locked() {
				t.Errorf("%s: the line remains driven", want)
			}
			d.close()
			d.finish()
		})
	}
}

// TestFailedDriveEndsAtOnce covers a driver that returns an error although it has driven the line.
func TestFailedDriveEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := new(boardtest.Lock)
		d := newTestDoor(Lock{Relay: lateError{lock.Relay()}})
		if r := d.drive(cause{request: "a"}, 3*time.Second, time.Now().Add(protocol.GrantAge)); r.Outcome != protocol.Failed {
			t.Errorf("%+v", r)
		}
		if !lock.Locked() {
			t.Error("failed was reported before the line was idle")
		}
	})
}

// TestFailureNamesTheLine checks that the detail distinguishes the relay line from the sense line.
func TestFailureNamesTheLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		relay func(*boardtest.Lock) gpio.PinIO
		want  string
	}{
		"sense line": {(*boardtest.Lock).Relay, "the lock's sense line did not confirm within 300ms"},
		"line":       {func(*boardtest.Lock) gpio.PinIO { return loose{gpio.INVALID} }, "the line did not read back as driven within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lock := new(boardtest.Lock)
				lock.Break(boardtest.Faults{Stuck: true})
				d := newTestDoor(Lock{Relay: c.relay(lock), Sense: lock.Sense()})
				if r := d.drive(cause{request: "a"}, time.Second, time.Now().Add(protocol.GrantAge)); r.Outcome != protocol.Failed || r.Detail != c.want {
					t.Errorf("%+v, want detail %q", r, c.want)
				}
			})
		})
	}
}

// TestRelockOfAnUnreadableLine checks that a line of unknown level fails its self-test.
func TestRelockOfAnUnreadableLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTestDoor(Lock{Relay: unreadable{new(boardtest.Lock).Relay()}})
		d.relock()
		if test := d.selfTest(); test.OK || !strings.HasPrefix(test.Detail, "the line could not be read back") {
			t.Errorf("got %+v", test)
		}
		d.close()
		d.finish()
	})
}

// TestUnreadableInput checks that a contact that cannot be read produces no event.
func TestUnreadableInput(t *testing.T) {
	t.Parallel()
	i := &input{pin: unreadable{gpio.INVALID}, high: protocol.EventDoorOpened, low: protocol.EventDoorClosed, last: gpio.High, seen: gpio.High}
	for range 3 {
		if kind := i.poll(); kind != "" {
			t.Errorf("got %s from an unreadable contact", kind)
		}
	}
}

// bus is an I²C bus that hangs: the kernel gives up each transfer after a second, one after the other.
type bus chan struct{}

func (b bus) transfer() error {
	b <- struct{}{}
	defer func() { <-b }()
	time.Sleep(time.Second)
	return errors.New("connection timed out")
}

// hungInput is an input on it.
type hungInput struct {
	gpio.PinIn
	bus bus
	err error // of the last read
}

func (p *hungInput) In(gpio.Pull, gpio.Edge) error { return p.bus.transfer() }
func (p *hungInput) Fault() error                  { return p.err }
func (p *hungInput) Read() gpio.Level {
	p.err = p.bus.transfer()
	return gpio.Low
}

// TestHungBusDelaysNoOtherDoor has the inputs of eight doors on a bus that hangs, and those of another one on the header. The watchdog
// and the status wait for the self-tests.
func TestHungBusDelaysNoOtherDoor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := make(bus, 1)
		input := func() gpio.PinIn { return &hungInput{PinIn: gpio.INVALID, bus: hangs} }
		var locks []Lock
		for n := range 8 {
			locks = append(locks, Lock{Device: fmt.Sprintf("room_%d", n+1), Relay: new(boardtest.Lock).Relay(), Sense: input(), Contact: input()})
		}
		contact := boardtest.NewContact()
		locks = append(locks, Lock{Device: "front_1", Relay: new(boardtest.Lock).Relay(), Contact: contact})
		events := make(chan protocol.Event, 10)
		c := NewController(Config{Event: func(e protocol.Event) { events <- e }, Logger: slog.New(slog.DiscardHandler)}, locks)
		began := time.Now()
		tests := func() []protocol.SelfTest {
			t.Helper()
			asked := time.Now()
			list := c.SelfTests()
			if took := time.Since(asked); took > 0 {
				t.Errorf("the self-tests took %v", took)
			}
			return list[len(locks):]
		}
		c.Relock()
		if took := time.Since(began); took > firstReadTimeout {
			t.Errorf("the start took %v", took)
		}
		if got := tests(); len(got) != 16 {
			t.Errorf("at the start: got %v, want the inputs of eight doors", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		go c.Watch(ctx)
		time.Sleep(time.Second)
		contact.Set(true)
		time.Sleep(3 * watchInterval)
		select {
		case e := <-events:
			if e.Kind != protocol.EventDoorOpened || e.Device != "front_1" {
				t.Errorf("got %+v, want the opening of the front door", e)
			}
		default:
			t.Error("the opening of the front door was not reported")
		}
		if got := c.Contacts(); len(got) != 1 || !got[0].Open {
			t.Errorf("got contacts %+v, want that of the front door", got)
		}
		time.Sleep(time.Minute)
		if got := tests(); len(got) != 16 || got[0].Detail != "connection timed out" {
			t.Errorf("got %v, want the inputs of eight doors", got)
		}
		stop()
		time.Sleep(time.Minute) // until the last reads have ended
	})
}

// gated is a contact whose driver blocks while a test holds the gate.
type gated struct {
	*boardtest.Contact
	gate chan struct{}
}

func (g gated) Read() gpio.Level {
	g.gate <- struct{}{}
	defer func() { <-g.gate }()
	return g.Contact.Read()
}

// TestHungInputIsNamed has a driver block while it reads an input: at the start, and later.
func TestHungInputIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		contact := gated{boardtest.NewContact(), make(chan struct{}, 1)}
		c := NewController(Config{Event: func(protocol.Event) {}, Logger: slog.New(slog.DiscardHandler)},
			[]Lock{{Device: "room_1", Relay: new(boardtest.Lock).Relay(), Contact: contact}})
		want := func(detail string) {
			t.Helper()
			if got := c.SelfTests(); len(got) != 2 || got[1].Name != "contact room_1" || got[1].Detail != detail {
				t.Errorf("got %v, want %q", got, detail)
			}
		}
		contact.gate <- struct{}{}
		c.Relock()
		want(errNotRead.Error())
		<-contact.gate
		go c.Watch(t.Context())
		time.Sleep(time.Second)
		if got := c.SelfTests(); len(got) != 1 {
			t.Errorf("got %v, want no failure", got)
		}
		contact.gate <- struct{}{}
		time.Sleep(hangTimeout + 2*watchInterval)
		want(errReadHangs.Error())
		<-contact.gate
	})
}

// TestBounceIsIgnored checks that a level counts only if two consecutive reads agree.
func TestBounceIsIgnored(t *testing.T) {
	t.Parallel()
	const opened, closed = protocol.EventDoorOpened, protocol.EventDoorClosed
	contact := boardtest.NewContact()
	i := &input{pin: contact, high: opened, low: closed}
	for n, c := range []struct {
		level gpio.Level
		want  protocol.EventKind
	}{
		{gpio.Low, ""}, {gpio.High, ""}, {gpio.Low, ""}, {gpio.Low, ""}, {gpio.High, ""}, {gpio.High, opened}, {gpio.High, ""},
		{gpio.Low, ""}, {gpio.High, ""}, {gpio.High, ""}, {gpio.Low, ""}, {gpio.Low, closed}, {gpio.Low, ""},
	} {
		contact.Set(c.level)
		if got := i.poll(); got != c.want {
			t.Errorf("read %d: got %q, want %q", n, got, c.want)
		}
	}
}

// TestGuard checks that a panic becomes an error and that other errors are unchanged.
func TestGuard(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if err := guard(func() error { return broken }); err != broken { //nolint:errorlint // the identical error, not a wrapped one
		t.Errorf("%v", err)
	}
	if err := guard(func() error { panic("gone") }); err == nil || err.Error() != "driver panicked: gone" {
		t.Errorf("%v", err)
	}
}
