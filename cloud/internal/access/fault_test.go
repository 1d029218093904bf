package access_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/protocol"
)

func TestSilentAgentFailsWithin3Seconds(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{IgnoreAsks: true})
	key := h.reserve(1)
	began := time.Now()
	id := h.request(access.Room, key)
	got := h.await(h.Service, id, key)
	if want := (access.Outcome{Status: access.Failed, Device: "room_1", PIN: "0815", Kind: access.StaticPIN}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if took := time.Since(began); took < protocol.ClaimLimit {
		t.Errorf("failed after %v, want at least %v", took, protocol.ClaimLimit)
	}
	if n := a.Asked(id); n < 2 || n > 8 {
		t.Errorf("asked %d times in 2.5 s, want 2 to 8", n)
	}
	// FAILED is final: a late claim of the agent changes nothing.
	if err := a.Publish(protocol.Claim{RequestID: id, Nonce: protocol.NewNonce()}); err != nil {
		t.Fatal(err)
	}
	a.Until(t, "the deny", func() bool { return len(a.Denied()) == 1 })
	if h.state(id) != "FAILED" || len(a.Driven()) != 0 {
		t.Errorf("state %s, driven %v", h.state(id), a.Driven())
	}
}

func TestLateClaimIsDenied(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{ClaimDelay: protocol.ClaimLimit + 200*time.Millisecond})
	key := h.reserve(1)
	id := h.request(access.Room, key)
	if got := h.await(h.Service, id, key); got.Status != access.Failed {
		t.Errorf("got %+v", got)
	}
	a.Until(t, "the deny", func() bool { return len(a.Denied()) > 0 })
	if len(a.Driven()) != 0 {
		t.Errorf("driven: %v", a.Driven())
	}
}

// If a request is too old, its claim is denied by age, even if it arrives before the replica's timer has ended the request.
func TestOldRequestIsNotGranted(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{IgnoreAsks: true})
	key := h.reserve(1)
	id := h.request(access.Room, key)
	h.exec(`update door_request set created_at = created_at - interval '2.5 seconds' where id = $1`, id)
	if err := a.Publish(protocol.Claim{RequestID: id, Nonce: protocol.NewNonce()}); err != nil {
		t.Fatal(err)
	}
	a.Until(t, "the deny", func() bool { return len(a.Denied()) == 1 })
	if got := h.await(h.Service, id, key); got.Status != access.Failed {
		t.Errorf("got %+v", got)
	}
}

func TestOneNonceIsGranted(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{ClaimTwice: true, RepeatClaims: 2, SendResults: 2})
	key := h.reserve(1)
	id := h.request(access.Room, key)
	if got := h.await(h.Service, id, key); got.Status != access.Success {
		t.Errorf("got %+v", got)
	}
	a.Until(t, "the deny of the second nonce", func() bool { return len(a.Denied()) > 0 })
	if len(a.Driven()) != 1 {
		t.Errorf("driven: %v", a.Driven())
	}
	for _, d := range a.Denied() {
		if d.Nonce == one[string](h, `select nonce from door_request where id = $1`, id) {
			t.Error("the granted nonce was denied")
		}
	}
}

func TestLostMessagesCostOneInterval(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]agenttest.Faults{
		"grants":  {LoseGrants: 2},
		"results": {LoseResults: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			a := h.agent("gangnam")
			a.Fail(faults)
			key := h.reserve(1)
			id := h.request(access.Room, key)
			if got := h.await(h.Service, id, key); got.Status != access.Success {
				t.Errorf("got %+v", got)
			}
			if len(a.Driven()) != 1 {
				t.Errorf("driven: %v", a.Driven())
			}
		})
	}
}

func TestDroppedGrantFails(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{Outcome: protocol.Dropped})
	key := h.reserve(1)
	id := h.request(access.Room, key)
	if got := h.await(h.Service, id, key); got.Status != access.Failed || got.PIN != "0815" {
		t.Errorf("got %+v", got)
	}
}

func TestReservationChangesBetweenAskAndClaim(t *testing.T) {
	t.Parallel()
	const change = `update reservation set `
	for name, test := range map[string]struct{ sql, pin string }{
		"cancelled": {change + `state = 'CANCELING', doorlock_key = null where doorlock_key = $1`, ""},
		"moved to another room": {change + `room_id = (select id from room where no = 3 and branch_id = reservation.branch_id)
			where doorlock_key = $1`, ""},
		"moved to another day": {change + `start_at = start_at + interval '1 day', end_at = end_at + interval '1 day',
			occupied = tstzrange(start_at + interval '1 day', end_at + interval '1 day 10 minutes') where doorlock_key = $1`, ""},
		"new key": {change + `doorlock_key = gen_random_uuid() where doorlock_key = $1`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			a := h.agent("gangnam")
			a.Fail(agenttest.Faults{IgnoreAsks: true})
			key := h.reserve(1)
			id := h.request(access.Room, key)
			a.Until(t, "the ask", func() bool { return a.Asked(id) > 0 })
			h.exec(test.sql, key)
			a.Fail(agenttest.Faults{})
			got := h.await(h.Service, id, key)
			// A PIN is disclosed only to a guest who still has the reservation.
			if want := (access.Outcome{Status: access.Failed, Device: "room_1", PIN: test.pin}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if len(a.Driven()) != 0 || len(a.Denied()) == 0 {
				t.Errorf("driven %v, denied %v", a.Driven(), a.Denied())
			}
		})
	}
}

// A cancellation is executed but not yet committed when the claim arrives. The claim must wait for it and then be denied.
func TestCancellationUnderWayIsSeen(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{IgnoreAsks: true})
	key := h.reserve(1)
	id := h.request(access.Room, key)
	tx, err := h.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `update reservation set state = 'CANCELING', doorlock_key = null where doorlock_key = $1`, key); err != nil {
		t.Fatal(err)
	}
	if err := a.Publish(protocol.Claim{RequestID: id, Nonce: protocol.NewNonce()}); err != nil {
		t.Fatal(err)
	}
	h.until("the claim to wait", func() bool {
		return one[int](h, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = $1`, "Lock") > 0
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Until(t, "the deny", func() bool { return len(a.Denied()) > 0 })
	if got := h.await(h.Service, id, key); got != (access.Outcome{Status: access.Failed, Device: "room_1"}) {
		t.Errorf("got %+v", got)
	}
	if len(a.Driven()) != 0 {
		t.Errorf("driven %v", a.Driven())
	}
}

// until polls until ok returns true, for conditions without an event.
func (h *house) until(what string, ok func() bool) {
	h.t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			h.t.Fatalf("%s: not within the time limit", what)
		}
	}
}

func TestOtherBranchesCannotInterfere(t *testing.T) {
	t.Parallel()
	h := build(t)
	a, thief := h.agent("gangnam"), h.agent("hongdae")
	a.Fail(agenttest.Faults{IgnoreAsks: true})
	key := h.reserve(1)
	id := h.request(access.Room, key)
	if err := thief.Publish(protocol.Claim{RequestID: id, Nonce: protocol.NewNonce()}); err != nil {
		t.Fatal(err)
	}
	thief.Until(t, "the deny", func() bool { return len(thief.Denied()) == 1 })
	if got := h.state(id); got != "PENDING" {
		t.Fatalf("state %s after another branch's claim", got)
	}
	a.Fail(agenttest.Faults{Silent: true})
	a.Until(t, "the door", func() bool { return len(a.Driven()) == 1 })
	if err := thief.Publish(protocol.Result{RequestID: id, Device: "room_1", Outcome: protocol.Failed}); err != nil {
		t.Fatal(err)
	}
	if err := a.Publish(protocol.Result{RequestID: id, Device: "room_2", Outcome: protocol.Failed}); err != nil { // a door that is not part of the request
		t.Fatal(err)
	}
	a.Fail(agenttest.Faults{}) // the ask is repeated, and now the agent reports
	if got := h.await(h.Service, id, key); got.Status != access.Success {
		t.Errorf("got %+v", got)
	}
}

func TestReportBeforeTheGrantIsIgnored(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{IgnoreAsks: true})
	key := h.reserve(1)
	id := h.request(access.Room, key)
	if err := a.Publish(protocol.Result{RequestID: id, Device: "room_1", Outcome: protocol.Opened}); err != nil {
		t.Fatal(err)
	}
	if got := h.await(h.Service, id, key); got.Status != access.Failed {
		t.Errorf("got %+v", got)
	}
}

// drive presses until the agent drives the room's door, and returns the id of that request. On a machine that is too slow for the
// limits, a press fails.
func (h *house) drive(a *agenttest.Agent, key string) (id string) {
	h.t.Helper()
	for before := len(a.Driven()); len(a.Driven()) == before; {
		id = h.request(access.Room, key)
		h.until("the door, or the end of the press", func() bool { return len(a.Driven()) > before || h.state(id) == "FAILED" })
	}
	return id
}

func TestNoReport(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{Silent: true})
	key := h.reserve(1)

	id := h.drive(a, key)
	began := time.Now()
	if _, err := h.Await(t.Context(), "", id, key); !errors.Is(err, access.ErrNoResult) {
		t.Errorf("who waited got %v", err)
	}
	if took := time.Since(began); took < access.DefaultResultTimeout {
		t.Errorf("waited %v, want %v", took, access.DefaultResultTimeout)
	}
	h.until("the end of the request", func() bool { return h.state(id) == "UNKNOWN" })
	if got, want := h.await(h.Service, id, key), (access.Outcome{Status: access.TimedOut, Device: "room_1", PIN: "0815", Kind: access.StaticPIN}); got != want {
		t.Errorf("who came later got %+v, want %+v", got, want)
	}
	// A report that arrives now is stored and changes nothing.
	if err := a.Publish(protocol.Result{RequestID: id, Device: "room_1", Outcome: protocol.Opened}); err != nil {
		t.Fatal(err)
	}
	h.until("the late report", func() bool {
		return one[bool](h, `select outcomes ? 'room_1' from door_request where id = $1`, id)
	})
	if h.state(id) != "UNKNOWN" {
		t.Errorf("state %s", h.state(id))
	}

	// The second request without a result fails, so that the guest gets the PIN and is not locked out. A subscriber sees the
	// same.
	id = h.request(access.Room, key)
	if got, want := h.await(h.Service, id, key), (access.Outcome{Status: access.Failed, Device: "room_1", PIN: "0815", Kind: access.StaticPIN}); got != want {
		t.Errorf("the second time: got %+v, want %+v", got, want)
	}
}

func TestPINOnlyWhileTheReservationLasts(t *testing.T) {
	t.Parallel()
	h := build(t)
	start := time.Now().Truncate(10 * time.Minute)
	key := h.reserveAt("gangnam", 1, start, start.Add(time.Hour))
	h.at(start.Add(time.Minute))
	id := h.request(access.Room, key) // offline: failed
	h.at(start.Add(time.Hour - time.Second))
	if got := h.await(h.Service, id, key); got.PIN != "0815" {
		t.Errorf("before the end: %+v", got)
	}
	h.at(start.Add(time.Hour))
	if got := h.await(h.Service, id, key); got.Status != access.Failed || got.PIN != "" {
		t.Errorf("after the end: %+v", got)
	}
}

func TestSubscriberAtAnotherReplica(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{ClaimDelay: 300 * time.Millisecond})
	other := h.replica()
	other.Link = h.link
	h.run(other.Run)
	key := h.reserve(1)
	id := h.request(access.Room, key)
	outcomes := make(chan access.Outcome, 3)
	for range cap(outcomes) {
		go func() {
			outcome, err := other.Await(t.Context(), "", id, key)
			if err != nil {
				t.Error(err)
			}
			outcomes <- outcome
		}()
	}
	h.await(h.Service, id, key)
	for range cap(outcomes) {
		if got := <-outcomes; got.Status != access.Success {
			t.Errorf("got %+v", got)
		}
	}
}

// If a transaction locks a reservation and stalls, the doors of other reservations still open.
func TestLockedReservationKeepsOnlyItsOwnDoorWaiting(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.agent("gangnam")
	locked, free := h.reserve(1), h.reserve(2)
	h.lock(locked)
	first := h.request(access.Room, locked)
	second := h.request(access.Room, free)
	if got := h.await(h.Service, second, free); got.Status != access.Success {
		t.Errorf("the other door: %+v", got)
	}
	if state := h.state(first); state == "SUCCESS" {
		t.Error("the door of the locked reservation opened")
	}
}

// The door of a locked reservation opens if the lock is released in time.
func TestReleasedReservationOpensItsDoor(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.agent("gangnam")
	key := h.reserve(1)
	release := h.lock(key)
	id := h.request(access.Room, key)
	h.until("a claim waits for the lock", func() (waits bool) {
		if err := h.db.Pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	if state := h.state(id); state != "PENDING" {
		t.Errorf("the door of the locked reservation is %s", state)
	}
	release()
	if got := h.await(h.Service, id, key); got.Status != access.Success {
		t.Errorf("the door: %+v", got)
	}
}

// lock locks the reservation of a key in a transaction that stalls until release or the end of the test.
func (h *house) lock(key string) (release func()) {
	h.t.Helper()
	tx, err := h.db.Pool.Begin(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := tx.Exec(h.t.Context(), `select from reservation where doorlock_key = $1 for update`, key); err != nil {
		h.t.Fatal(err)
	}
	release = func() { _ = tx.Rollback(context.WithoutCancel(h.t.Context())) }
	h.t.Cleanup(release)
	return release
}

// dead returns a replica that accepts a request, but neither repeats an ask nor ends a request.
func (h *house) dead(link access.Link) *access.Service {
	h.t.Helper()
	s := h.replica()
	s.Link = link
	ctx, die := context.WithCancel(h.t.Context())
	die()
	if err := s.Run(ctx); err != nil {
		h.t.Fatal(err)
	}
	return s
}

// If a replica dies after accepting requests, another one ends them.
func TestRequestsOfADeadReplicaEnd(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	dead := h.dead(h.link)
	a.Fail(agenttest.Faults{IgnoreAsks: true})
	key := h.reserve(1)
	id, err := dead.Request(t.Context(), "gangnam", access.Room, key)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.await(h.Service, id, key); got.Status != access.Failed {
		t.Errorf("got %+v", got)
	}
	granted := uuid.NewString()
	h.exec(`insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, granted_at)
		select $1, id, 'admin:hq', 'front', 'front', front_doors, 'GRANTED', clock_timestamp() - interval '8 seconds', clock_timestamp()
		from branch where code = 'gangnam'`, granted)
	h.until("its granted request to end", func() bool { return h.state(granted) == "UNKNOWN" })
}

// A database whose clock is five minutes behind takes over: requests from before are later than its time. Their age is unknown, so they
// open no door. A guest who presses again does not wait for them.
func TestRequestFromBeforeTheClockWasSetBackIsNotGranted(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	for room, c := range []struct {
		state string
		claim bool
	}{1: {"PENDING", false}, 2: {"PENDING", true}, 3: {"GRANTED", true}} {
		if room == 0 {
			continue
		}
		a.Fail(agenttest.Faults{IgnoreAsks: true})
		key, nonce, denied := h.reserve(room), protocol.NewNonce(), len(a.Denied())
		id, err := h.dead(lonely{}).Request(t.Context(), "gangnam", access.Room, key)
		if err != nil {
			t.Fatal(err)
		}
		h.exec(`update door_request set created_at = created_at + interval '5 minutes', state = $2, nonce = $3, granted_at = created_at where id = $1`, id, c.state, nonce)
		if c.claim {
			if err := a.Publish(protocol.Claim{RequestID: id, Nonce: nonce}); err != nil {
				t.Fatal(err)
			}
			a.Until(t, "the deny", func() bool { return len(a.Denied()) > denied })
		}
		a.Fail(agenttest.Faults{})
		again := h.request(access.Room, key)
		if again == id {
			t.Errorf("%+v: the press joined the request", c)
		}
		if got := h.await(h.Service, again, key); got.Status != access.Success {
			t.Errorf("%+v: the press after it: got %+v, want SUCCESS", c, got)
		}
		if driven := len(a.Driven()); driven != room {
			t.Errorf("%+v: driven %d times, want %d", c, driven, room)
		}
		if c.state == "PENDING" {
			h.until("the request to end", func() bool { return h.state(id) == "FAILED" })
		}
	}
}

// slowLink delays messages to agents, like a slow network.
type slowLink struct {
	*broker.Broker
	delay time.Duration
}

func (l slowLink) Send(to protocol.Peer, m protocol.Message) error {
	time.AfterFunc(l.delay, func() { _ = l.Broker.Send(to, m) })
	return nil
}

func TestGrantThatComesTooLateDrivesNothing(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.Link = slowLink{h.link, protocol.GrantAge + 200*time.Millisecond}
	a := h.agent("gangnam")
	key := h.reserve(1)
	id := h.request(access.Room, key)
	if got := h.await(h.Service, id, key); got.Status != access.Failed {
		t.Errorf("got %+v", got)
	}
	if len(a.Driven()) != 0 {
		t.Errorf("driven: %v", a.Driven())
	}
}

// countingLink counts the messages to the connected agent of each branch.
type countingLink struct{ sent int }

func (l *countingLink) Send(protocol.Peer, protocol.Message) error { l.sent++; return nil }
func (l *countingLink) Online(branch string) []string              { return []string{protocol.AgentID(branch)} }

// A late request is asked for by its own replica. The others, which do not know whether that is dead, repeat the ask rarely.
func TestAdoptedRequestIsAskedForRarely(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := uuid.New()
	h.exec(`insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, granted_at)
		select $1, id, 'admin:hq', 'front', 'front', front_doors, 'GRANTED', clock_timestamp() - interval '1 second', clock_timestamp()
		from branch where code = 'gangnam'`, id)
	link := &countingLink{}
	other, asked := h.replica(), make(map[uuid.UUID]time.Time)
	other.Link = link
	for range 3 {
		other.Adopt(t.Context(), asked)
	}
	if link.sent != 1 {
		t.Errorf("asked %d times at once, want 1", link.sent)
	}
	asked[id] = asked[id].Add(-time.Minute)
	other.Adopt(t.Context(), asked)
	if link.sent != 2 {
		t.Errorf("asked %d times after the interval, want 2", link.sent)
	}
}

// If the replica that accepted a request dies before it receives the agent's report, another one repeats the ask.
func TestRequestOfADeadReplicaIsAdopted(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	key := h.reserve(1)
	dead := h.dead(lonely{})
	id, err := dead.Request(t.Context(), "gangnam", access.Room, key)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.await(h.Service, id, key), (access.Outcome{Status: access.Success, Device: "room_1"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(a.Driven()) != 1 {
		t.Errorf("driven: %+v", a.Driven())
	}
}

// lonely is the link of a dead replica: it drops every message.
type lonely struct{}

func (lonely) Send(protocol.Peer, protocol.Message) error { return nil }
func (lonely) Online(branch string) []string              { return []string{protocol.AgentID(branch)} }
