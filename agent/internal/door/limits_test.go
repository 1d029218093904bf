package door

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/boardtest"
	"github.com/yeolda/yeolda/protocol"
)

// These tests stand at the edges: the last moment of a claim, the last request that fits, a pin that cannot be read, the
// stop of the agent while something is under way.

// unreadable is a pin whose device went away for reading.
type unreadable struct{ gpio.PinIO }

func (unreadable) Read() gpio.Level { panic("gpio: the device went away") }

// loose is a pin that takes every order and never moves.
type loose struct{ gpio.PinIO }

func (loose) Out(gpio.Level) error { return nil }
func (loose) Read() gpio.Level     { return gpio.Low }

// lateError is a pin whose driver reports an error of driving after the line has moved.
type lateError struct{ gpio.PinIO }

func (p lateError) Out(level gpio.Level) error {
	err := p.PinIO.Out(level)
	if level == gpio.High {
		err = errors.New("input/output error")
	}
	return err
}

// silent makes a door that nobody listens to.
func silent(lock Lock) *door {
	lock.Device = "room_1"
	return newDoor(lock, func(protocol.Event) {}, slog.New(slog.DiscardHandler))
}

// TestClaimLivesAsLongAsItsNonce: what the cloud gets after that could only be denied or dropped.
func TestClaimLivesAsLongAsItsNonce(t *testing.T) {
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
		time.Sleep(protocol.GrantAge - 400*time.Millisecond) // the last moment of the nonce
		controller.Ask(ask)
		time.Sleep(time.Nanosecond)
		controller.Ask(ask)
		for i, want := range []time.Duration{protocol.GrantAge, protocol.GrantAge - 400*time.Millisecond, 0, protocol.GrantAge} {
			if sent[i].life != want {
				t.Errorf("claim %d lives for %v, want %v", i, sent[i].life, want)
			}
			if again := sent[i].m == sent[0].m; again != (i < 3) {
				t.Errorf("claim %d is the first again: %v", i, again)
			}
		}
		controller.Grant(grant(sent[3].m.(protocol.Claim), time.Second, "room_1"))
		synctest.Wait()
		if last := sent[len(sent)-1]; last.life != protocol.ResultTTL {
			t.Errorf("%T lives for %v", last.m, last.life)
		}
	})
}

func TestUnknownDenialAndGrantTooMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.controller.Deny(protocol.Deny{RequestID: b.newRequest(), Nonce: protocol.NewNonce()})
		for range maxRequests {
			b.claim(b.newRequest())
		}
		b.controller.Grant(grant(protocol.Claim{RequestID: b.newRequest(), Nonce: protocol.NewNonce()}, time.Second, "room_1"))
		b.wantSilence()
		b.wantPulses()
	})
}

// TestTidyKeepsWhatIsOfUse: a full controller forgets what was decided and is old, and neither what is young nor what waits.
func TestTidyKeepsWhatIsOfUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		denied := b.claim(b.newRequest())
		b.controller.Deny(protocol.Deny{RequestID: denied.RequestID, Nonce: denied.Nonce})
		for range maxRequests - 1 {
			b.claim(b.newRequest())
		}
		for range 2 { // when all are new, and at the last moment of the one that was denied
			b.controller.Ask(protocol.Ask{RequestID: b.newRequest(), Doors: []string{"room_1"}})
			b.wantSilence()
			time.Sleep(spentDelay)
		}
		b.claim(b.newRequest())
		if n := len(b.controller.requests); n != maxRequests {
			t.Errorf("%d requests remembered, want %d", n, maxRequests)
		}
	})
}

// TestCloseWaitsForTheDrive: the drive under way is confirmed before the line is made idle, however slow its driver is.
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

// TestCloseTriesForAWhile: a relay that comes back half-way is released, one that does not holds nobody up.
func TestCloseTriesForAWhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mended time.Duration
		locked bool
		took   time.Duration
	}{
		"comes back": {250 * time.Millisecond, true, 300 * time.Millisecond},
		"does not":   {time.Hour, false, finishAttempts * idleRetryInterval},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBranch(t)
				b.unlock(3 * time.Second)
				b.wantResult(protocol.Opened)
				b.lock.Break(boardtest.Faults{DeadLow: true})
				time.AfterFunc(c.mended, func() { b.lock.Break(boardtest.Faults{}) })
				began := time.Now()
				b.controller.Close()
				if took := time.Since(began); took != c.took {
					t.Errorf("Close took %v, want %v", took, c.took)
				}
				if b.lock.Locked() != c.locked {
					t.Errorf("locked %v, want %v", !c.locked, c.locked)
				}
			})
		})
	}
}

// TestHungDriver: a turn of exactly the limit is not yet one that hangs, and Close leaves such a driver behind.
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
			t.Error("a turn that takes as long as it may counts as hanging")
		}
		time.Sleep(time.Nanosecond)
		if b.controller.Alive() {
			t.Error("a door whose driver hangs counts as alive")
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

// TestLowerBelievesWhatItReads and says which half of the relay is at fault.
func TestLowerBelievesWhatItReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		driven, torn bool
		faults       boardtest.Faults
		want         string
	}{
		"healthy":             {driven: true},
		"dead but idle":       {faults: boardtest.Faults{Dead: true}},
		"dead and driven":     {driven: true, faults: boardtest.Faults{Dead: true}, want: "the relay could not be released: input/output error"},
		"welded":              {driven: true, faults: boardtest.Faults{Welded: true}, want: "the relay was released but reads back as driven"},
		"unreadable":          {torn: true, want: "the line could not be read back: driver panicked: gpio: the device went away"},
		"dead and unreadable": {torn: true, faults: boardtest.Faults{Dead: true}, want: "the relay could not be released: input/output error"},
	} {
		lock := new(boardtest.Lock)
		if c.driven {
			lock.Energize()
		}
		lock.Break(c.faults)
		relay := lock.Relay()
		if c.torn {
			relay = unreadable{relay}
		}
		got := ""
		if err := silent(Lock{Relay: relay}).lower(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestPinThatCannotBeReadFailsTheDrive(t *testing.T) {
	t.Parallel()
	for want, lockOf := range map[string]func(*boardtest.Lock) Lock{
		"the line could not be read back": func(l *boardtest.Lock) Lock { return Lock{Relay: unreadable{l.Relay()}} },
		"the sense line could not be read": func(l *boardtest.Lock) Lock {
			return Lock{Relay: l.Relay(), Sense: unreadable{gpio.INVALID}}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			lock := new(boardtest.Lock)
			d := silent(lockOf(lock))
			r := d.drive("a", time.Second, time.Now().Add(protocol.GrantAge))
			if r.Outcome != protocol.Failed || !strings.HasPrefix(r.Detail, want) {
				t.Errorf("%s: %+v", want, r)
			}
			if !lock.Locked() {
				t.Errorf("%s: the line is left driven", want)
			}
			d.close()
			d.finish()
		})
	}
}

// TestDriveThatFailedIsEndedAtOnce: the driver says that it failed, and the line is driven all the same.
func TestDriveThatFailedIsEndedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := new(boardtest.Lock)
		d := silent(Lock{Relay: lateError{lock.Relay()}})
		if r := d.drive("a", 3*time.Second, time.Now().Add(protocol.GrantAge)); r.Outcome != protocol.Failed {
			t.Errorf("%+v", r)
		}
		if !lock.Locked() {
			t.Error("failed was reported before the line was idle")
		}
	})
}

// TestFailureSaysWhatDidNotFollow: the line itself, or only the sense line of a line that moved.
func TestFailureSaysWhatDidNotFollow(t *testing.T) {
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
				d := silent(Lock{Relay: c.relay(lock), Sense: lock.Sense()})
				if r := d.drive("a", time.Second, time.Now().Add(protocol.GrantAge)); r.Outcome != protocol.Failed || r.Detail != c.want {
					t.Errorf("%+v, want detail %q", r, c.want)
				}
			})
		})
	}
}

// TestRelockOfAnUnreadableLine: it is not known to be driven, and not known to be idle.
func TestRelockOfAnUnreadableLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := silent(Lock{Relay: unreadable{new(boardtest.Lock).Relay()}})
		if test := d.relock(); test.OK || !strings.HasPrefix(test.Detail, "the line could not be read back") {
			t.Errorf("%+v", test)
		}
		d.close()
		d.finish()
	})
}

// TestLookThatFailsSaysNothing: a contact that cannot be read has not moved.
func TestLookThatFailsSaysNothing(t *testing.T) {
	t.Parallel()
	i := &input{pin: unreadable{gpio.INVALID}, high: protocol.EventDoorOpened, low: protocol.EventDoorClosed, last: gpio.High, seen: gpio.High}
	for range 3 {
		if kind := i.look(); kind != "" {
			t.Errorf("an unreadable contact says %s", kind)
		}
	}
}

// TestTwoLooksMustAgree: what is seen once, and not again, is a bounce.
func TestTwoLooksMustAgree(t *testing.T) {
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
		if got := i.look(); got != c.want {
			t.Errorf("look %d: %q, want %q", n, got, c.want)
		}
	}
}

func TestNothingToWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		controller := NewController(Config{Logger: slog.New(slog.DiscardHandler)}, []Lock{{Device: "room_1", Relay: new(boardtest.Lock).Relay()}})
		began := time.Now()
		controller.Watch(t.Context()) // returns at once
		if time.Since(began) != 0 {
			t.Error("watched nothing for a while")
		}
		if failed := controller.order[0].inspect(); failed != nil {
			t.Errorf("inputs that are not fitted: %+v", failed)
		}
	})
}

// TestGuardNamesThePanic, and leaves other errors as they are.
func TestGuardNamesThePanic(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if err := guard(func() error { return broken }); err != broken { //nolint:errorlint // the very same error, not one around it
		t.Errorf("%v", err)
	}
	if err := guard(func() error { panic("gone") }); err == nil || err.Error() != "driver panicked: gone" {
		t.Errorf("%v", err)
	}
}
