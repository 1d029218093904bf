package door

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/agent/internal/boardtest"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var cloudKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))

// branch is a controller with two doors, room_1 (lock, contact, exit) and front_1 (lock2), and the messages it sent.
type branch struct {
	t             testing.TB
	controller    *Controller
	lock, lock2   *boardtest.Lock
	contact, exit *boardtest.Contact
	sent          chan protocol.Message
	suspend       time.Duration // how long the process is suspended after a relay was driven

	mu       sync.Mutex
	events   []protocol.Event
	requests int
}

func newBranch(t testing.TB) *branch {
	b := &branch{t: t, lock: new(boardtest.Lock), lock2: new(boardtest.Lock), contact: boardtest.NewContact(), exit: boardtest.NewContact(),
		sent: make(chan protocol.Message, 2*maxRequests)}
	b.controller = b.start(func(m protocol.Message, _ time.Duration) { b.sent <- m })
	return b
}

// newWatchedBranch returns a branch whose locks are released, and whose inputs are watched until the test ends.
func newWatchedBranch(t testing.TB) *branch {
	b := newBranch(t)
	b.controller.Relock()
	go b.controller.Watch(t.Context())
	return b
}

// start creates a controller on the same locks, as a restarted agent does.
func (b *branch) start(send func(protocol.Message, time.Duration)) *Controller {
	controller := NewController(Config{
		Branch: "gangnam",
		Keys:   []ed25519.PublicKey{cloudKey.Public().(ed25519.PublicKey)},
		Send:   send,
		Event:  b.event,
		Logger: slog.New(slog.DiscardHandler),
	}, []Lock{
		{Device: "room_1", Kind: protocol.DoorRoom, Relay: b.lock.Relay(), Sense: b.lock.Sense(), Contact: b.contact, Exit: b.exit},
		{Device: "front_1", Kind: protocol.DoorFront, Relay: b.lock2.Relay()},
	})
	b.t.Cleanup(controller.Close)
	return controller
}

func (b *branch) event(e protocol.Event) {
	if e.Kind == protocol.EventEnergized {
		time.Sleep(b.suspend)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// takeEvents returns the events since the last call.
func (b *branch) takeEvents() []protocol.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events
}

func (b *branch) newRequest() string {
	b.requests++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", b.requests)
}

func (b *branch) claim(request string) protocol.Claim {
	b.t.Helper()
	b.controller.Ask(protocol.Ask{RequestID: request, Doors: []string{"room_1"}})
	claim, ok := (<-b.sent).(protocol.Claim)
	if !ok || claim.RequestID != request {
		b.t.Fatalf("got %+v, want a claim for %s", claim, request)
	}
	return claim
}

func grant(c protocol.Claim, pulse time.Duration, doors ...string) protocol.Grant {
	return protocol.Grant{Branch: "gangnam", RequestID: c.RequestID, Nonce: c.Nonce, Doors: doors, PulseMs: milliseconds(pulse)}.Sign(cloudKey)
}

// unlock exchanges ask, claim and grant for room_1 without delay.
func (b *branch) unlock(pulse time.Duration) {
	b.t.Helper()
	b.controller.Ask(protocol.Ask{RequestID: b.newRequest(), Doors: []string{"room_1"}})
	var claim protocol.Claim
	var others []protocol.Message
	for claim.Nonce == "" {
		switch m := (<-b.sent).(type) {
		case protocol.Claim:
			claim = m
		default:
			others = append(others, m)
		}
	}
	for _, m := range others {
		b.sent <- m
	}
	b.controller.Grant(grant(claim, pulse, "room_1"))
}

func (b *branch) wantResult(want protocol.Outcome) protocol.Result {
	b.t.Helper()
	r, ok := (<-b.sent).(protocol.Result)
	if !ok || r.Outcome != want {
		b.t.Fatalf("got %+v, want result %s", r, want)
	}
	if err := r.Validate(); err != nil {
		b.t.Error(err)
	}
	return r
}

func (b *branch) wantSilence() {
	b.t.Helper()
	synctest.Wait()
	select {
	case m := <-b.sent:
		b.t.Errorf("got %+v, want no message", m)
	default:
	}
}

func (b *branch) wantPulses(want ...time.Duration) {
	b.t.Helper()
	var got []time.Duration
	for _, p := range b.lock.Pulses() {
		got = append(got, p.For)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("got pulses %v, want %v", got, want)
	}
}

func (b *branch) wantEvents(want ...protocol.EventKind) {
	b.t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var got []protocol.EventKind
	for _, e := range b.events {
		if _, err := protocol.Encode(protocol.Telemetry{Events: []protocol.Event{e}}); err != nil {
			b.t.Error(err)
		}
		got = append(got, e.Kind)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("got events %v, want %v", got, want)
	}
}

// drivenTwice returns a request that has driven a door twice, or "".
func (b *branch) drivenTwice() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	driven := make(map[string]bool)
	for _, e := range b.events {
		if e.Kind == protocol.EventEnergized {
			if driven[e.RequestID] {
				return e.RequestID
			}
			driven[e.RequestID] = true
		}
	}
	return ""
}

func TestGrantExpiresAfterGrantAge(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]protocol.Outcome{
		protocol.GrantAge - time.Millisecond:    protocol.Opened,
		protocol.GrantAge + time.Nanosecond:     protocol.Dropped,
		protocol.GrantAge + 20*time.Second:      protocol.Dropped,
		protocol.ResultTTL - time.Nanosecond:    protocol.Dropped,
		protocol.ResultTTL + 2*time.Millisecond: protocol.Dropped,
	} {
		t.Run(age.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBranch(t)
				g := grant(b.claim(b.newRequest()), time.Second, "room_1")
				time.Sleep(age)
				b.controller.Grant(g)
				b.wantResult(want)
				time.Sleep(time.Minute)
				if want == protocol.Opened {
					b.wantPulses(time.Second)
				} else {
					b.wantPulses()
				}
			})
		})
	}
}

// TestGrantExpiresWhileTheDoorIsBusy keeps the door busy with another request until the grant is too old.
func TestGrantExpiresWhileTheDoorIsBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		second := grant(b.claim(b.newRequest()), time.Second, "room_1")
		time.Sleep(1300 * time.Millisecond)
		b.lock.Break(boardtest.Faults{Stuck: true})
		b.unlock(time.Second)
		synctest.Wait()
		b.controller.Grant(second)
		b.wantResult(protocol.Dropped)
		if !b.controller.Alive() {
			t.Error("not alive although no driver hangs")
		}
		b.wantResult(protocol.Failed)
		time.Sleep(time.Minute)
		if n := len(b.lock.Pulses()); n != 1 {
			t.Errorf("got %d pulses, want only that of the stuck lock", n)
		}
	})
}

func TestDuplicateGrantsProduceOnePulse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		request := b.newRequest()
		claim := b.claim(request)
		for range 3 {
			if again := b.claim(request); again != claim {
				t.Errorf("got claim %+v, want %+v again", again, claim)
			}
		}
		g := grant(claim, time.Second, "room_1")
		b.lock.Break(boardtest.Faults{Slow: 50 * time.Millisecond})
		b.controller.Grant(g)
		b.controller.Grant(g)
		first := b.wantResult(protocol.Opened)
		b.lock.Break(boardtest.Faults{})
		b.wantSilence() // the second grant arrived before there was a result to repeat
		for range 5 {
			time.Sleep(5 * time.Second)
			b.controller.Grant(g)
			if again := b.wantResult(protocol.Opened); again != first {
				t.Errorf("got result %+v, want %+v again", again, first)
			}
			b.controller.Ask(protocol.Ask{RequestID: request, Doors: []string{"room_1"}})
			if again := b.wantResult(protocol.Opened); again != first {
				t.Errorf("got result %+v, want %+v again", again, first)
			}
			b.wantSilence()
		}
		b.wantPulses(time.Second) // the full pulse although the relay was slow
	})
}

// TestLostClaimIsReplaced covers a claim that never reached the cloud: a later ask receives a new nonce, and the old one is
// void.
func TestLostClaimIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		request := b.newRequest()
		lost := b.claim(request)
		time.Sleep(protocol.GrantAge + time.Millisecond)
		fresh := b.claim(request)
		if fresh.Nonce == lost.Nonce {
			t.Fatal("got the old nonce after it expired")
		}
		b.controller.Grant(grant(fresh, time.Second, "room_1"))
		b.wantResult(protocol.Opened)
		b.controller.Grant(grant(lost, time.Second, "room_1"))
		b.wantResult(protocol.Dropped)
		time.Sleep(time.Minute)
		b.wantPulses(time.Second)
	})
}

// TestSlowConnectionDropsTheGrant covers a connection on which the grant arrives after an ask has replaced its claim: the cloud, which
// grants one claim only, learns at once that nothing was driven.
func TestSlowConnectionDropsTheGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		request := b.newRequest()
		granted := b.claim(request)
		time.Sleep(protocol.GrantAge + time.Millisecond)
		b.claim(request)
		b.controller.Grant(grant(granted, time.Second, "room_1"))
		if r := b.wantResult(protocol.Dropped); r.Nonce != granted.Nonce {
			t.Errorf("got nonce %s, want that of the grant", r.Nonce)
		}
		time.Sleep(time.Minute)
		b.wantPulses()
	})
}

func TestForgedGrantIsIgnored(t *testing.T) {
	t.Parallel()
	foreignKey := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	for name, forge := range map[string]func(protocol.Grant) protocol.Grant{
		"bad signature": func(g protocol.Grant) protocol.Grant {
			g.Signature = strings.Repeat("A", len(g.Signature))
			return g
		},
		"foreign signature":    func(g protocol.Grant) protocol.Grant { return g.Sign(foreignKey) },
		"no signature":         func(g protocol.Grant) protocol.Grant { g.Signature = ""; return g },
		"door added":           func(g protocol.Grant) protocol.Grant { g.Doors = []string{"room_1", "front_1"}; return g },
		"longer pulse":         func(g protocol.Grant) protocol.Grant { g.PulseMs = 9000; return g },
		"another branch":       func(g protocol.Grant) protocol.Grant { g.Branch = "hongdae"; return g.Sign(cloudKey) },
		"branch changed after": func(g protocol.Grant) protocol.Grant { g.Branch = "hongdae"; return g.Sign(cloudKey) },
		"branch changed before": func(g protocol.Grant) protocol.Grant {
			g.Branch = "hongdae"
			g = g.Sign(cloudKey)
			g.Branch = "gangnam"
			return g
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBranch(t)
				genuine := grant(b.claim(b.newRequest()), time.Second, "room_1")
				b.controller.Grant(forge(genuine))
				b.wantSilence()
				b.wantPulses()
				b.controller.Grant(genuine) // the forged grant did not invalidate the nonce
				b.wantResult(protocol.Opened)
			})
		})
	}
}

// TestForgedGrantsDoNotFillTheLog checks that a stream of grants that do not verify, as after a failed rotation of the grant
// keys, is logged as one condition.
func TestForgedGrantsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logSize
		b := newBranch(t)
		c := NewController(Config{Branch: "gangnam", Keys: b.controller.keys, Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil)
		foreignKey := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
		g := protocol.Grant{Branch: "gangnam", RequestID: b.newRequest(), Nonce: protocol.NewNonce(), Doors: []string{"room_1"}, PulseMs: 1000}.Sign(foreignKey)
		for range 24 * 60 {
			c.Grant(g)
			time.Sleep(time.Minute)
		}
		if n := log.Load(); n > 16<<10 || n == 0 {
			t.Errorf("got %d bytes a day, want some, but less than 16 kB", n)
		}
	})
}

// TestUnknownNonce covers grants for the nonce of another agent, or of an earlier run: they drive nothing, the results do not
// claim to know what happened, and the agent's own claim stays valid.
func TestUnknownNonce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		claim := b.claim(b.newRequest())
		other := claim
		other.Nonce = protocol.NewNonce()
		b.controller.Grant(grant(other, time.Second, "room_1", "front_1"))
		for range 2 {
			if r := b.wantResult(protocol.Unknown); r.Nonce != other.Nonce {
				t.Errorf("got nonce %s, want that of the grant", r.Nonce)
			}
		}
		b.controller.Grant(grant(protocol.Claim{RequestID: b.newRequest(), Nonce: protocol.NewNonce()}, time.Second, "room_9"))
		b.wantSilence() // the grant of an agent with other doors
		b.wantPulses()
		b.controller.Grant(grant(claim, time.Second, "room_1"))
		if r := b.wantResult(protocol.Opened); r.Nonce != claim.Nonce {
			t.Errorf("got nonce %s, want that of the claim", r.Nonce)
		}
	})
}

// TestUnknownDoorIsNotClaimed covers an agent without the requested doors, such as a spare Pi: it stays silent.
func TestUnknownDoorIsNotClaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.controller.Ask(protocol.Ask{RequestID: b.newRequest(), Doors: []string{"room_9"}})
		b.controller.Ask(protocol.Ask{RequestID: b.newRequest(), Doors: []string{"front_1", "front_2"}})
		b.wantSilence()
		if n := len(b.controller.requests.byID); n != 0 {
			t.Errorf("got %d requests in memory, want none", n)
		}
	})
}

// TestRestartedAgentDoesNotKnow covers a grant for a nonce of the agent's previous run. The agent does not know whether that
// run drove the line, so it neither drives it nor reports that it was not driven.
func TestRestartedAgentDoesNotKnow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		g := grant(b.claim(b.newRequest()), time.Second, "room_1")
		b.controller.Grant(g)
		b.wantResult(protocol.Opened)
		b.controller.Close()
		b.controller = b.start(func(m protocol.Message, _ time.Duration) { b.sent <- m })
		b.controller.Grant(g)
		b.wantResult(protocol.Unknown)
		b.controller.Ask(protocol.Ask{RequestID: g.RequestID, Doors: g.Doors})
		if again, ok := (<-b.sent).(protocol.Claim); !ok || again.Nonce == g.Nonce {
			t.Errorf("got %+v, want a claim with a new nonce", again)
		}
		b.controller.Grant(g)
		b.wantResult(protocol.Unknown)
		if n := len(b.lock.Pulses()); n != 1 {
			t.Errorf("got %d pulses, want 1", n)
		}
	})
}

func TestDenyInvalidatesTheNonce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		request := b.newRequest()
		claim := b.claim(request)
		b.controller.Deny(protocol.Deny{RequestID: request, Nonce: protocol.NewNonce()}) // another claim: no effect
		b.claim(request)
		b.controller.Deny(protocol.Deny{RequestID: request, Nonce: claim.Nonce, Reason: "cancelled"})
		b.controller.Ask(protocol.Ask{RequestID: request, Doors: []string{"room_1"}})
		b.controller.Grant(grant(claim, time.Second, "room_1"))
		b.wantSilence()
		b.wantPulses()
	})
}

// TestRotatedKeys checks that a grant verifies with the keys that the cloud uses now, and no longer with a replaced one.
func TestRotatedKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		rotated := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
		b.controller.SetKeys([]ed25519.PublicKey{rotated.Public().(ed25519.PublicKey)})
		g := grant(b.claim(b.newRequest()), time.Second, "room_1")
		b.controller.Grant(g)
		b.wantSilence()
		b.controller.Grant(g.Sign(rotated))
		b.wantResult(protocol.Opened)
	})
}

// TestOpen checks a drive for an attempt at the keypad: the event names its source, and it is refused if it is too late, for a door
// that the agent does not have, and while the agent stops.
func TestOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		open := func(device string, notAfter time.Time, want protocol.Outcome) {
			t.Helper()
			if r := b.controller.Open(device, protocol.SourcePIN, notAfter); r.Outcome != want || r.Device != device {
				t.Errorf("got %+v, want result %s for %s", r, want, device)
			}
		}
		open("room_9", time.Now().Add(time.Second), protocol.Failed)
		open("room_1", time.Now().Add(-time.Nanosecond), protocol.Dropped)
		b.wantEvents()
		open("room_1", time.Now().Add(time.Second), protocol.Opened)
		time.Sleep(time.Minute)
		b.wantPulses(protocol.DefaultPulse)
		b.wantEvents(protocol.EventEnergized, protocol.EventReleased)
		for _, e := range b.events {
			if e.Source != protocol.SourcePIN || e.RequestID != "" {
				t.Errorf("got %+v, want an event of the keypad", e)
			}
		}

		b.lock.Break(boardtest.Faults{SenseLag: 100 * time.Millisecond})
		confirmed := make(chan time.Time, 1)
		go func() {
			open("room_1", time.Now().Add(time.Second), protocol.Opened)
			confirmed <- time.Now()
		}()
		synctest.Wait()
		b.controller.Close()
		if closed := time.Now(); closed.Before(<-confirmed) {
			t.Error("Close did not wait until the drive was confirmed")
		}
		open("room_1", time.Now().Add(time.Second), protocol.Failed)
		b.wantPulses(protocol.DefaultPulse, 100*time.Millisecond)
	})
}

// TestIdle checks when an agent may be restarted: while no claim waits for its grant and no line is driven.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		wantIdle := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := b.controller.Idle(); got != want {
				t.Errorf("%s: idle: got %v, want %v", when, got, want)
			}
		}
		wantIdle("at the start", true)
		b.claim(b.newRequest())
		wantIdle("after a claim", false)
		time.Sleep(protocol.GrantAge)
		wantIdle("at the last moment of its grant", false)
		time.Sleep(time.Nanosecond)
		wantIdle("when its grant would be too late", true)
		claim := b.claim(b.newRequest())
		b.controller.Deny(protocol.Deny{RequestID: claim.RequestID, Nonce: claim.Nonce})
		wantIdle("after a denial", true)
		b.unlock(3 * time.Second)
		time.Sleep(3*time.Second - time.Nanosecond)
		wantIdle("during the pulse", false)
		time.Sleep(time.Nanosecond)
		wantIdle("after the pulse", true)
	})
}

// TestPulseEndsWhileSendBlocks checks that the pulse ends although results can no longer be sent.
func TestPulseEndsWhileSendBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		claims := make(chan protocol.Claim, 1)
		blocked := make(chan struct{})
		b.controller = b.start(func(m protocol.Message, _ time.Duration) {
			if claim, ok := m.(protocol.Claim); ok {
				claims <- claim
				return
			}
			<-blocked
		})
		b.controller.Ask(protocol.Ask{RequestID: b.newRequest(), Doors: []string{"room_1"}})
		b.controller.Grant(grant(<-claims, 2*time.Second, "room_1"))
		time.Sleep(time.Minute)
		b.wantPulses(2 * time.Second)
		close(blocked)
	})
}

func TestTwoDoorsInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Break(boardtest.Faults{Slow: 200 * time.Millisecond})
		b.lock2.Break(boardtest.Faults{Slow: 200 * time.Millisecond})
		began := time.Now()
		b.controller.Grant(grant(b.claim(b.newRequest()), time.Second, "room_1", "front_1"))
		b.wantResult(protocol.Opened)
		b.wantResult(protocol.Opened)
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("two doors took %v, want 200ms as for one door", took)
		}
		// A door that hangs does not delay the other one.
		hang := make(chan struct{})
		b.lock.Break(boardtest.Faults{Hang: hang})
		b.lock2.Break(boardtest.Faults{})
		b.controller.Grant(grant(b.claim(b.newRequest()), time.Second, "room_1", "front_1"))
		if r := b.wantResult(protocol.Opened); r.Device != "front_1" {
			t.Errorf("got %s opened first, want front_1", r.Device)
		}
		close(hang)
		b.wantResult(protocol.Opened)
	})
}

func TestUnknownDoorFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.controller.Grant(grant(b.claim(b.newRequest()), time.Second, "room_9"))
		b.wantResult(protocol.Failed) // the claim was this agent's, so no other agent drives the door
	})
}

func TestCloseEndsPulses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.unlock(10 * time.Second)
		b.wantResult(protocol.Opened)
		next := b.claim(b.newRequest())
		time.Sleep(time.Second)
		b.controller.Close()
		b.wantPulses(time.Second)
		b.controller.Grant(grant(next, time.Second, "room_1"))
		b.wantSilence()
		b.wantPulses(time.Second)
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		for range maxRequests {
			b.claim(b.newRequest())
		}
		b.controller.Ask(protocol.Ask{RequestID: b.newRequest(), Doors: []string{"room_1"}})
		b.wantSilence()
		time.Sleep(protocol.ResultTTL + time.Millisecond)
		b.claim(b.newRequest())
		if n := len(b.controller.requests.byID); n != 1 {
			t.Errorf("got %d requests in memory, want 1", n)
		}
	})
}

// TestFloodedDoorDoesNotAffectOthers floods room_1 with requests until the memory is full. A request for front_1 is served,
// and the flood does not displace it.
func TestFloodedDoorDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		flood := func() {
			for range 2 * maxRequests {
				b.controller.Ask(protocol.Ask{RequestID: b.newRequest(), Doors: []string{"room_1"}})
			}
			for len(b.sent) > 0 {
				<-b.sent
			}
		}
		flood()
		front := b.newRequest()
		b.controller.Ask(protocol.Ask{RequestID: front, Doors: []string{"front_1"}})
		claim, ok := (<-b.sent).(protocol.Claim)
		if !ok || claim.RequestID != front {
			t.Fatalf("got %+v, want a claim for front_1", claim)
		}
		flood()
		b.controller.Grant(grant(claim, time.Second, "front_1"))
		b.wantResult(protocol.Opened)
		if n := len(b.controller.requests.byID); n != maxRequests {
			t.Errorf("got %d requests in memory, want %d", n, maxRequests)
		}
	})
}

// TestSustainedLoad checks that a branch whose doors open several times a second never runs out of memory for requests.
func TestSustainedLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		for range 3 * maxRequests {
			claim := b.claim(b.newRequest())
			b.controller.Deny(protocol.Deny{RequestID: claim.RequestID, Nonce: claim.Nonce})
			time.Sleep(spentDelay / (maxRequests - 24))
		}
		if n := len(b.controller.requests.byID); n > maxRequests {
			t.Errorf("got %d requests in memory, want at most %d", n, maxRequests)
		}
	})
}

// TestAnyMessageOrder sends asks, grants and denies of a few requests in any order, any number of times and with any delay,
// to faulty locks and restarting agents. No request may drive a door twice, or later than GrantAge after its claim.
func TestAnyMessageOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		actions := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 40).Draw(rt, "actions")
		picks := rapid.SliceOfN(rapid.IntRange(0, 1000), len(actions), len(actions)).Draw(rt, "picks")
		delays := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 100 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second, 70 * time.Second}), len(actions), len(actions)).Draw(rt, "delays")
		var violations []string
		synctest.Test(t, func(t *testing.T) {
			b := newBranch(t)
			claimed := make(map[string][]time.Time)
			var claims []protocol.Claim
			granted := make(map[string]string)
			dead := false
			send := func(m protocol.Message, _ time.Duration) {
				switch m := m.(type) {
				case protocol.Claim:
					claims = append(claims, m)
					claimed[m.RequestID] = append(claimed[m.RequestID], time.Now())
				}
			}
			b.controller = b.start(send)
			requests := []string{b.newRequest(), b.newRequest(), b.newRequest()}
			for i, action := range actions {
				switch request := requests[picks[i]%3]; action {
				case 0, 1:
					b.controller.Ask(protocol.Ask{RequestID: request, Doors: []string{"room_1"}})
				case 2, 3:
					if len(claims) == 0 {
						break
					}
					c := claims[picks[i]%len(claims)]
					if granted[c.RequestID] == "" {
						granted[c.RequestID] = c.Nonce // the cloud grants one claim of a request
					}
					if granted[c.RequestID] == c.Nonce {
						b.controller.Grant(grant(c, time.Second, "room_1"))
					}
				case 4:
					if len(claims) > 0 {
						c := claims[picks[i]%len(claims)]
						b.controller.Deny(protocol.Deny{RequestID: c.RequestID, Nonce: c.Nonce})
					}
				case 5:
					f := []boardtest.Faults{{}, {Stuck: true}, {Dead: true}, {Slow: 50 * time.Millisecond}}[picks[i]%4]
					dead = dead || f.Dead
					b.lock.Break(f)
				case 6:
					b.controller.Close()
					b.controller = b.start(send)
					b.controller.Relock()
				}
				time.Sleep(delays[i])
			}
			b.lock.Break(boardtest.Faults{})
			time.Sleep(time.Minute)
			if request := b.drivenTwice(); request != "" {
				violations = append(violations, request+" drove the door twice")
			}
			if !b.lock.Locked() {
				violations = append(violations, "the lock remains unlocked")
			}
			for _, p := range b.lock.Pulses() {
				// Pulses may be extended twice, and a dead relay cannot be released before it is repaired.
				if p.For > 4*time.Second && !dead {
					violations = append(violations, fmt.Sprintf("a pulse of %v", p.For))
				}
				inTime := slices.ContainsFunc(requests, func(request string) bool {
					return slices.ContainsFunc(claimed[request], func(at time.Time) bool {
						return !p.At.Before(at) && p.At.Sub(at) <= protocol.GrantAge+50*time.Millisecond
					})
				})
				if !inTime {
					violations = append(violations, fmt.Sprintf("a pulse at %v without a recent claim", p.At))
				}
			}
		})
		if violations != nil {
			rt.Fatal(violations)
		}
	})
}

// TestClosedControllerClaimsNothing asks an agent that is ending: a claim would take the press to it, and the agent that is started next could
// not use the grant. An ask for a request that is decided still gets the results.
func TestClosedControllerClaimsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.unlock(protocol.DefaultPulse)
		first := b.wantResult(protocol.Opened)
		b.controller.Close()
		b.controller.Ask(protocol.Ask{RequestID: b.newRequest(), Doors: []string{"room_1"}})
		b.wantSilence()
		b.controller.Ask(protocol.Ask{RequestID: first.RequestID, Doors: []string{"room_1"}})
		b.wantResult(protocol.Opened)
	})
}
