package door

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/agent/internal/boardtest"
	"github.com/yeolda/yeolda/protocol"
)

// These tests look at one line, in the bubble's own time: what the durations say is exact.

func TestPulseEndsOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.unlock(3 * time.Second)
		b.wantResult(protocol.Opened)
		synctest.Wait()
		if b.lock.Locked() {
			t.Error("locked while the pulse runs")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		b.wantPulses(3 * time.Second)
		b.wantEvents(protocol.EventEnergized, protocol.EventReleased)
		if got := b.events[1].EnergizedMs; got != 3000 {
			t.Errorf("released after %d ms", got)
		}
	})
}

func TestRepeatedUnlockExtends(t *testing.T) {
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

func TestSenseLineIsWaitedFor(t *testing.T) {
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
			t.Errorf("failed after %v", took)
		}
		if !b.lock.Locked() {
			t.Error("failed was reported before the line was idle")
		}
		time.Sleep(time.Minute)
		if n := len(b.lock.Pulses()); n != 1 {
			t.Errorf("%d pulses", n)
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
				b.wantResult(protocol.Opened) // one fault does not condemn the door
			})
		})
	}
}

func TestRelayThatIsNotReleasedIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.unlock(time.Second)
		b.wantResult(protocol.Opened)
		b.lock.Break(boardtest.Faults{DeadLow: true})
		time.Sleep(10 * time.Second)
		if b.lock.Locked() {
			t.Fatal("the fault does not bite")
		}
		b.lock.Break(boardtest.Faults{})
		time.Sleep(2 * idleRetryInterval)
		if !b.lock.Locked() {
			t.Error("not tried again")
		}
		b.wantEvents(protocol.EventEnergized, protocol.EventRelayError, protocol.EventReleased)
	})
}

func TestSlowRelayIsNotCalledOpened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Break(boardtest.Faults{Slow: 500 * time.Millisecond})
		b.unlock(3 * time.Second)
		if r := b.wantResult(protocol.Failed); r.Detail != "the relay took longer than 300ms" {
			t.Errorf("detail %q", r.Detail)
		}
		if !b.lock.Locked() {
			t.Error("failed was reported before the line was idle")
		}
	})
}

// TestStoppedProcessCallsAnOpenDoorOpen: the process is stopped, or waits for a processor, between driving and looking. The
// door stands open, so nobody may be told that it failed.
func TestStoppedProcessCallsAnOpenDoorOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.stop = 2 * protocol.ConfirmLimit
		b.unlock(3 * time.Second)
		b.wantResult(protocol.Opened)
		time.Sleep(time.Minute)
		b.wantPulses(3 * time.Second)

		b.lock.Break(boardtest.Faults{Stuck: true})
		b.unlock(3 * time.Second)
		b.wantResult(protocol.Failed)
		b.wantPulses(3*time.Second, b.stop)
	})
}

// TestPulseEndsThoughTheDriveHangs: the driver hangs in the call that energises, longer than the pulse, and then does
// what it was told. The line must not stay driven, and the door must not count as open.
func TestPulseEndsThoughTheDriveHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		hang := make(chan struct{})
		b.lock.Break(boardtest.Faults{Hang: hang})
		b.unlock(time.Second)
		time.Sleep(3 * time.Second)
		if b.controller.Alive() {
			t.Error("a door whose driver hangs counts as alive")
		}
		close(hang)
		b.wantResult(protocol.Failed)
		if !b.lock.Locked() {
			t.Error("the line stays driven")
		}
		if !b.controller.Alive() {
			t.Error("not alive after the driver came back")
		}
	})
}

func TestRelockOnStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Energize()
		tests := b.controller.Relock()
		if !b.lock.Locked() {
			t.Error("the relay is still energised")
		}
		if len(tests) != 2 || tests[0].OK || tests[0].Detail != "was energised at start" || !tests[1].OK {
			t.Errorf("self-tests %+v", tests)
		}
		b.wantEvents(protocol.EventWasEnergized)

		b.lock.Break(boardtest.Faults{Welded: true})
		if tests := b.controller.Relock(); tests[0].OK {
			t.Errorf("a welded relay passes: %+v", tests[0])
		}
		b.lock.Break(boardtest.Faults{Dead: true})
		b.contact.Lose(errors.New("no such line"))
		tests = b.controller.Relock()
		if len(tests) != 3 || tests[0].OK || tests[2].OK || !strings.HasPrefix(tests[2].Name, "contact ") {
			t.Errorf("a dead relay or a lost contact passes: %+v", tests)
		}
		b.lock.Break(boardtest.Faults{})
	})
}

func TestInputsAreWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		go b.controller.Watch(t.Context())
		synctest.Wait()
		b.contact.Set(true)
		time.Sleep(3 * watchInterval)
		b.contact.Set(false)
		time.Sleep(watchInterval / 2)
		b.contact.Set(true) // bounces: shorter than two looks
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
