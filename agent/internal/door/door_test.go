package door

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/boardtest"
	"github.com/yeolda/yeolda/protocol"
)

// These tests observe one line in simulated time, so durations are exact.

func TestPulseEndsOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.unlock(3 * time.Second)
		b.wantResult(protocol.Opened)
		synctest.Wait()
		if b.lock.Locked() {
			t.Error("locked during the pulse")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		b.wantPulses(3 * time.Second)
		b.wantEvents(protocol.EventEnergized, protocol.EventReleased)
		if got := b.events[1].EnergizedMs; got != 3000 {
			t.Errorf("released after %d ms, want 3000", got)
		}
	})
}

func TestRepeatedUnlockExtendsThePulse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.unlock(3 * time.Second)
		time.Sleep(2 * time.Second)
		b.unlock(3 * time.Second) // to 5 s
		time.Sleep(time.Second)
		b.unlock(time.Second) // to 4 s: does not shorten
		time.Sleep(time.Minute)
		b.wantPulses(5 * time.Second)
		for range 3 {
			b.wantResult(protocol.Opened)
		}
	})
}

func TestDriveWaitsForTheSenseLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Break(boardtest.Faults{SenseLag: 120 * time.Millisecond})
		b.unlock(time.Second)
		if r := b.wantResult(protocol.Opened); r.EnergizedMs != 120 {
			t.Errorf("confirmed after %d ms, want 120", r.EnergizedMs)
		}
		time.Sleep(time.Minute)
		b.wantPulses(time.Second)
	})
}

func TestStuckLockFailsAndIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Break(boardtest.Faults{Stuck: true})
		began := time.Now()
		b.unlock(3 * time.Second)
		b.wantResult(protocol.Failed)
		if took := time.Since(began); took > protocol.ConfirmLimit+2*pollInterval {
			t.Errorf("failed after %v, want about %v", took, protocol.ConfirmLimit)
		}
		if !b.lock.Locked() {
			t.Error("failed was reported before the line was idle")
		}
		time.Sleep(time.Minute)
		if n := len(b.lock.Pulses()); n != 1 {
			t.Errorf("got %d pulses, want 1", n)
		}
	})
}

func TestDeadRelayFails(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]boardtest.Faults{"error": {Dead: true}, "panic": {Panic: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBranch(t)
				b.lock.Break(faults)
				b.unlock(3 * time.Second)
				b.wantResult(protocol.Failed)
				b.wantPulses()
				b.lock.Break(boardtest.Faults{})
				time.Sleep(time.Minute)
				b.wantPulses()
				b.unlock(time.Second)
				b.wantResult(protocol.Opened) // the door recovers from a fault
			})
		})
	}
}

func TestFailedReleaseIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.unlock(time.Second)
		b.wantResult(protocol.Opened)
		b.lock.Break(boardtest.Faults{DeadLow: true})
		time.Sleep(10 * time.Second)
		if b.lock.Locked() {
			t.Fatal("the fault has no effect")
		}
		b.lock.Break(boardtest.Faults{})
		time.Sleep(2 * idleRetryInterval)
		if !b.lock.Locked() {
			t.Error("the release was not retried")
		}
		b.wantEvents(protocol.EventEnergized, protocol.EventRelayError, protocol.EventReleased)
	})
}

func TestSlowRelayFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Break(boardtest.Faults{Slow: 500 * time.Millisecond})
		b.unlock(3 * time.Second)
		if r := b.wantResult(protocol.Failed); r.Detail != "the relay took longer than 300ms" {
			t.Errorf("got detail %q", r.Detail)
		}
		if !b.lock.Locked() {
			t.Error("failed was reported before the line was idle")
		}
	})
}

// TestSuspendedProcessReportsOpened suspends the process between driving the line and reading it back. The door is open, so the
// result must not be failed.
func TestSuspendedProcessReportsOpened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.suspend = 2 * protocol.ConfirmLimit
		b.unlock(3 * time.Second)
		b.wantResult(protocol.Opened)
		time.Sleep(time.Minute)
		b.wantPulses(3 * time.Second)

		b.lock.Break(boardtest.Faults{Stuck: true})
		b.unlock(3 * time.Second)
		b.wantResult(protocol.Failed)
		b.wantPulses(3*time.Second, b.suspend)
	})
}

// TestPulseEndsWhileTheDriverHangs covers a driver that blocks for longer than the pulse and then energises the line. The line
// must not stay driven, and the door must not be reported as opened.
func TestPulseEndsWhileTheDriverHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		hang := make(chan struct{})
		b.lock.Break(boardtest.Faults{Hang: hang})
		b.unlock(time.Second)
		time.Sleep(3 * time.Second)
		if b.controller.Alive() {
			t.Error("alive while the driver hangs")
		}
		close(hang)
		b.wantResult(protocol.Failed)
		if !b.lock.Locked() {
			t.Error("the line remains driven")
		}
		if !b.controller.Alive() {
			t.Error("not alive after the driver returned")
		}
	})
}

func TestRelockOnStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		relock := func() []protocol.SelfTest {
			b.controller.Relock()
			return b.controller.SelfTests()
		}
		b.lock.Energize()
		tests := relock()
		if !b.lock.Locked() {
			t.Error("the relay is still energised")
		}
		if len(tests) != 2 || tests[0].OK || tests[0].Detail != "was energised at start" || !tests[1].OK {
			t.Errorf("got self-tests %+v, want a relay that was energised", tests)
		}
		b.wantEvents(protocol.EventWasEnergized)
		time.Sleep(foundTime)
		if tests := b.controller.SelfTests(); !tests[0].OK {
			t.Errorf("long after the line was released: %+v, want no failure", tests[0])
		}

		b.lock.Break(boardtest.Faults{Welded: true})
		if tests := relock(); tests[0].OK {
			t.Errorf("a welded relay passes: %+v", tests[0])
		}
		b.lock.Break(boardtest.Faults{Dead: true})
		b.contact.Lose(errors.New("no such line"))
		tests = relock()
		if len(tests) != 3 || tests[0].OK || tests[2].OK || !strings.HasPrefix(tests[2].Name, "contact ") {
			t.Errorf("a dead relay or a missing contact passes: %+v", tests)
		}
		b.lock.Break(boardtest.Faults{})
	})
}

// TestDeadRelayIsReportedOnce covers a relay that can never be driven: one event, and no release.
func TestDeadRelayIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Break(boardtest.Faults{Dead: true})
		b.unlock(time.Second)
		b.wantResult(protocol.Failed)
		time.Sleep(5 * time.Second)
		b.wantEvents(protocol.EventRelayError)
		b.wantPulses()
	})
}

// TestLineIsRequestedAgain covers a relay that is missing when the agent starts, as on a system without permissions for GPIO:
// it works as soon as it is available, without a press, and the self-test shows both states.
func TestLineIsRequestedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Break(boardtest.Faults{Dead: true})
		b.controller.Relock()
		go b.controller.Watch(t.Context())
		time.Sleep(time.Hour)
		if b.controller.SelfTests()[0].OK {
			t.Error("a missing relay passes its self-test")
		}
		if err := b.controller.Lost(); err != nil {
			t.Errorf("got %v for a line that never worked: a restart would not help", err)
		}
		b.lock.Break(boardtest.Faults{})
		time.Sleep(2 * checkInterval)
		if test := b.controller.SelfTests()[0]; !test.OK {
			t.Errorf("got self-test %+v after the relay became available", test)
		}
		b.unlock(time.Second)
		b.wantResult(protocol.Opened)
	})
}

// TestCheckLeavesTheLineAlone checks that the checks of idle lines do not end a pulse, and do not touch the line of a closed door,
// which the next agent may drive.
func TestCheckLeavesTheLineAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newWatchedBranch(t)
		b.unlock(10 * time.Second)
		time.Sleep(time.Minute)
		b.wantPulses(10 * time.Second)
		b.controller.Close()
		b.lock.Energize()
		time.Sleep(time.Minute)
		if b.lock.Locked() {
			t.Error("a check released the line of a closed door")
		}
	})
}

// TestNewControllerTouchesNoLock checks that a line keeps its level until Relock.
func TestNewControllerTouchesNoLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Energize()
		time.Sleep(24 * time.Hour)
		if b.lock.Locked() {
			t.Error("the line was released before Relock")
		}
		b.controller.Relock()
		b.wantPulses(24 * time.Hour)
	})
}

// TestClosedDoorTouchesNoLine closes a door during its pulse, with a relay that can be released or cannot, and drives the line by
// another controller: the end of the first pulse does not end the second one.
func TestClosedDoorTouchesNoLine(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]boardtest.Faults{"released": {}, "not released": {DeadLow: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBranch(t)
				b.unlock(5 * time.Second)
				b.wantResult(protocol.Opened)
				b.lock.Break(faults)
				b.controller.Close()
				b.lock.Break(boardtest.Faults{})
				b.controller = b.start(func(m protocol.Message, _ time.Duration) { b.sent <- m })
				b.controller.Relock()
				began := time.Now()
				b.unlock(10 * time.Second)
				time.Sleep(time.Minute)
				pulses := b.lock.Pulses()
				if last := pulses[len(pulses)-1]; len(pulses) != 2 || !last.At.Equal(began) || last.For != 10*time.Second {
					t.Errorf("got pulses %v, want a second one of 10s", pulses)
				}
			})
		})
	}
}

// TestLostLine covers a GPIO chip that disappears while the agent runs: one event, a failed self-test, and after ten seconds
// a reason to restart. A line that is back earlier is not lost.
func TestLostLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newWatchedBranch(t)
		time.Sleep(time.Minute)
		b.lock.Break(boardtest.Faults{Dead: true})
		time.Sleep(lostTimeout)
		if err := b.controller.Lost(); err != nil {
			t.Errorf("got %v after %v", err, lostTimeout)
		}
		b.lock.Break(boardtest.Faults{})
		time.Sleep(2 * checkInterval)
		b.lock.Break(boardtest.Faults{Dead: true})
		time.Sleep(lostTimeout + 3*checkInterval)
		if err := b.controller.Lost(); !errors.Is(err, ErrLineLost) {
			t.Errorf("got %v, want %v", err, ErrLineLost)
		}
		b.wantEvents(protocol.EventRelayError, protocol.EventRelayError)
		b.lock.Break(boardtest.Faults{})
	})
}

// TestLogVolume keeps every line in its worst state for a day. The log of a branch of eight doors must stay below 1 MB a day,
// or it wears out the SD card.
func TestLogVolume(t *testing.T) {
	t.Parallel()
	const doors, limit = 8, 1 << 20
	for name, faults := range map[string]boardtest.Faults{
		"missing": {Dead: true}, "cannot be released": {DeadLow: true}, "welded": {Welded: true}, "panics": {Panic: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logSize
				lock := new(boardtest.Lock)
				c := NewController(Config{Event: func(protocol.Event) {}, Logger: slog.New(slog.NewTextHandler(&log, nil))},
					[]Lock{{Device: "room_1", Kind: protocol.DoorRoom, Relay: lock.Relay()}})
				c.Relock()
				go c.Watch(t.Context())
				time.Sleep(time.Second)
				c.doors["room_1"].drive(cause{request: "a"}, time.Second, time.Now().Add(time.Second))
				lock.Break(faults)
				time.Sleep(6 * time.Hour)
				perDay := 4 * doors * log.Load() // an overestimate: the first hours log most
				t.Logf("%d bytes a day for %d doors", perDay, doors)
				if perDay > limit || perDay == 0 {
					t.Errorf("got %d bytes a day for %d doors, want some, but less than %d", perDay, doors, limit)
				}
				lock.Break(boardtest.Faults{})
				c.Close()
			})
		})
	}
}

// logSize counts the bytes written to a log.
type logSize struct{ atomic.Int64 }

func (l *logSize) Write(b []byte) (int, error) {
	l.Add(int64(len(b)))
	return len(b), nil
}

// TestPulseOfTheDoor checks that the pulse in the settings of a door takes precedence over that of the grant.
func TestPulseOfTheDoor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.controller.doors["room_1"].lock.Pulse = 800 * time.Millisecond
		b.unlock(3 * time.Second)
		b.wantResult(protocol.Opened)
		time.Sleep(time.Minute)
		b.wantPulses(800 * time.Millisecond)
	})
}

// TestContactsAtStart checks that a door that is open when the agent starts is known to be open.
func TestContactsAtStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.contact.Set(true)
		b.controller.Relock()
		go b.controller.Watch(t.Context())
		time.Sleep(time.Hour)
		want := protocol.Contact{Device: "room_1", Open: true, ForMs: 3600_000}
		if got := b.controller.Contacts(); len(got) != 1 || got[0] != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		b.contact.Set(false)
		time.Sleep(3 * watchInterval)
		if got := b.controller.Contacts(); got[0].Open || got[0].ForMs > 150 {
			t.Errorf("got %+v, want a door closed a moment ago", got)
		}
	})
}

// TestLockReleasedByKeypad checks that a lock that a keypad or a key releases is reported, and one that the relay releases is
// not.
func TestLockReleasedByKeypad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		sense := boardtest.NewContact()
		lock := new(boardtest.Lock)
		b.controller = NewController(Config{Branch: "gangnam", Keys: b.controller.keys, Logger: slog.New(slog.DiscardHandler),
			Send: func(m protocol.Message, _ time.Duration) { b.sent <- m }, Event: b.event},
			[]Lock{{Device: "room_1", Kind: protocol.DoorRoom, Relay: lock.Relay(), Sense: sense}})
		b.controller.Relock()
		go b.controller.Watch(t.Context())
		time.Sleep(time.Minute)
		sense.Set(true)
		time.Sleep(3 * time.Second)
		sense.Set(false)
		time.Sleep(3 * time.Second)
		b.wantEvents(protocol.EventLockReleased)
		time.AfterFunc(100*time.Millisecond, func() { sense.Set(true) })
		time.AfterFunc(1300*time.Millisecond, func() { sense.Set(false) })
		b.unlock(time.Second)
		b.wantResult(protocol.Opened)
		time.Sleep(time.Minute)
		b.wantEvents(protocol.EventLockReleased, protocol.EventEnergized, protocol.EventReleased)
		b.controller.Close()
	})
}

// TestCauseIsReportedBeforeTheOpening opens the leaf in the moment in which the lock is released: a guest pulls while the keypad or the bar of
// the exit is pressed. The cloud explains an opening by the events before it.
func TestCauseIsReportedBeforeTheOpening(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		sense, contact, exit := boardtest.NewContact(), boardtest.NewContact(), boardtest.NewContact()
		lock := new(boardtest.Lock)
		b.controller = NewController(Config{Branch: "gangnam", Keys: b.controller.keys, Logger: slog.New(slog.DiscardHandler),
			Send: func(m protocol.Message, _ time.Duration) { b.sent <- m }, Event: b.event},
			[]Lock{{Device: "room_1", Kind: protocol.DoorRoom, Relay: lock.Relay(), Sense: sense, Contact: contact, Exit: exit}})
		b.controller.Relock()
		go b.controller.Watch(t.Context())
		time.Sleep(time.Minute)
		sense.Set(true)
		contact.Set(true)
		time.Sleep(3 * time.Second)
		sense.Set(false)
		contact.Set(false)
		time.Sleep(3 * time.Second)
		exit.Set(true)
		contact.Set(true)
		time.Sleep(3 * time.Second)
		b.wantEvents(protocol.EventLockReleased, protocol.EventDoorOpened, protocol.EventDoorClosed, protocol.EventExitPressed, protocol.EventDoorOpened)
		b.controller.Close()
	})
}

// TestFlickeringContact has a loose contact change its level ten times a second for an hour. The self-test names it, and few changes are
// reported, which fill neither the log nor the history of the branch. The level at which it comes to rest is reported.
func TestFlickeringContact(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{true, false} {
		t.Run(fmt.Sprint("open ", open), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newWatchedBranch(t)
				for range 60 * 60 * 5 {
					b.contact.Set(true)
					time.Sleep(100 * time.Millisecond)
					b.contact.Set(false)
					time.Sleep(100 * time.Millisecond)
				}
				events := b.takeEvents()
				if n := len(events); n < 2 || n > 2*eventBurst {
					t.Errorf("%d events, want some, and at most %d", n, 2*eventBurst)
				}
				if got := b.controller.SelfTests(); len(got) != 3 || got[2].Name != "contact room_1" || got[2].OK {
					t.Errorf("got %v, want a failed test of the contact", got)
				}
				b.contact.Set(gpio.Level(open))
				time.Sleep(steadyTime + time.Second)
				events = append(events, b.takeEvents()...)
				want := protocol.EventDoorClosed
				if open {
					want = protocol.EventDoorOpened
				}
				if last := events[len(events)-1]; last.Kind != want {
					t.Errorf("the last event is %s, want %s", last.Kind, want)
				}
				if got := b.controller.SelfTests(); len(got) != 2 {
					t.Errorf("at rest: %v, want no failure", got)
				}
				if got := b.controller.Contacts(); len(got) != 1 || got[0].Open != open {
					t.Errorf("at rest: %+v", got)
				}
			})
		})
	}
}

// TestBusyDoor lets 25 guests a minute pass a door for an hour.
func TestBusyDoor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newWatchedBranch(t)
		const guests = 25 * 60
		events := 0
		for range guests {
			b.contact.Set(true)
			time.Sleep(1200 * time.Millisecond)
			b.contact.Set(false)
			time.Sleep(1200 * time.Millisecond)
			events += len(b.takeEvents())
		}
		if events != 2*guests {
			t.Errorf("got %d events, want %d", events, 2*guests)
		}
	})
}

func TestInputEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newWatchedBranch(t)
		synctest.Wait()
		b.contact.Set(true)
		time.Sleep(3 * watchInterval)
		b.contact.Set(false)
		time.Sleep(watchInterval / 2)
		b.contact.Set(true) // bounces for less than two reads
		time.Sleep(watchInterval / 2)
		b.contact.Set(false)
		time.Sleep(3 * watchInterval)
		b.exit.Set(true)
		time.Sleep(3 * watchInterval)
		b.exit.Set(false)
		time.Sleep(3 * watchInterval)
		b.wantEvents(protocol.EventDoorOpened, protocol.EventDoorClosed, protocol.EventExitPressed)
	})
}

// TestContactOfALostExpander loses the expander of a contact while the door is open, and finds it again. A line that cannot be read says
// nothing about the door: it was reported as closed, and then as opened without a press.
func TestContactOfALostExpander(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.contact.Set(true)
		b.controller.Relock()
		go b.controller.Watch(t.Context())
		wait := func() { time.Sleep(5 * watchInterval) }
		time.Sleep(watchInterval / 2) // between two reads, so that exactly one sees the line that is being lost
		wait()
		for range 2 {
			b.contact.Set(false) // as a line reads that is lost
			time.Sleep(watchInterval)
			b.contact.Lose(errors.New("no such device"))
			time.Sleep(time.Minute)
			if got := b.controller.Contacts(); !got[0].Open {
				t.Errorf("lost: got %+v, want the last state", got)
			}
			b.contact.Lose(nil)
			b.contact.Set(true)
			wait()
		}
		b.wantEvents()
		b.contact.Set(false)
		wait()
		b.wantEvents(protocol.EventDoorClosed)
	})
}

// TestContactOfALateExpander starts before the expander of a contact is there. Until it can be read, nothing is known of the door: it was reported
// as closed. A door that is open then was not opened at that moment.
func TestContactOfALateExpander(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.contact.Lose(errors.New("no such device"))
		b.controller.Relock()
		go b.controller.Watch(t.Context())
		time.Sleep(time.Minute + watchInterval/2)
		if got := b.controller.Contacts(); len(got) != 0 {
			t.Errorf("before it could be read: got %+v, want none", got)
		}
		b.contact.Set(true)
		b.contact.Lose(nil)
		time.Sleep(5 * watchInterval)
		if got := b.controller.Contacts(); len(got) != 1 || !got[0].Open || got[0].ForMs > 300 {
			t.Errorf("got %+v, want an open door since the expander is there", got)
		}
		b.wantEvents()
	})
}
