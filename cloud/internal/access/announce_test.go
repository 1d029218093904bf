package access_test

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/protocol"
)

// awaited announces a press at gangnam and returns its id.
func (h *house) awaited(kind, key string) (id uuid.UUID) {
	h.t.Helper()
	before := h.Awaited()
	if err := h.Announce(h.t.Context(), "gangnam", kind, key); err != nil {
		h.t.Fatal(err)
	}
	for id := range h.Awaited() {
		if _, known := before[id]; !known {
			h.KeepAnnouncements()
			return id
		}
	}
	h.t.Fatal("the announcement is not awaited")
	return uuid.Nil
}

// announce announces a press at gangnam and waits until its claim is kept.
func (h *house) announce(kind, key string) (id string) {
	h.t.Helper()
	announced := h.awaited(kind, key)
	h.until("the claim", func() bool { return h.Awaited()[announced] })
	h.KeepAnnouncements() // the claim has set its time
	return announced.String()
}

// patient connects an agent that acts on a grant however slow the machine is.
func (h *house) patient() *agenttest.Agent {
	h.t.Helper()
	return agenttest.Connect(h.t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(h.addr), GrantAge: time.Hour,
		Keys: []ed25519.PublicKey{h.grants.Public().(ed25519.PublicKey)}})
}

// An announced press is granted when it is written: the request takes the id of the announcement, and the agent is not asked
// again.
func TestAnnouncedPressIsGrantedAtOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{access.Room, access.Front} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			a := h.patient()
			key := h.reserve(1)
			announced := h.announce(kind, key)
			if n := one[int](h, `select count(*) from door_request`); n != 0 {
				t.Fatalf("the announcement wrote %d requests", n)
			}
			id := h.request(kind, key)
			if id != announced {
				t.Fatalf("request %s, want that of the announcement, %s", id, announced)
			}
			if got := h.await(h.Service, id, key); got.Status != access.Success {
				t.Errorf("got %+v", got)
			}
			if changes := one[int](h, `select count(*) from event where subject = 'door-request:' || $1`, id); changes > 3 {
				t.Errorf("the row was written %d times, want granted at once and then only reported", changes)
			}
			if types := one[string](h, `select type from event where subject = 'door-request:' || $1 order by id limit 1`, id); types != "door-request.granted" {
				t.Errorf("the row was written as %s, want granted", types)
			}
			if a.Asked(id) != 1 {
				t.Errorf("asked %d times, want once", a.Asked(id))
			}
			// The claim is used once: the next press takes the usual way.
			again := h.request(kind, key)
			if again == id {
				t.Error("the second press has the id of the first")
			}
			if got := h.await(h.Service, again, key); got.Status != access.Success {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A claim is used by the press that was announced, and by no other.
func TestClaimIsForTheAnnouncedPress(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.patient()
	key, other := h.reserve(1), h.reserve(2)
	id := h.announce(access.Room, key)
	for name, press := range map[string]func() (string, error){
		"another door": func() (string, error) { return h.Request(t.Context(), "gangnam", access.Front, key) },
		"another key":  func() (string, error) { return h.Request(t.Context(), "gangnam", access.Room, other) },
		"staff": func() (string, error) {
			return h.RequestAs(t.Context(), access.Actor{Name: "admin:kim"}, "gangnam", access.Room, 1)
		},
	} {
		if got, err := press(); err != nil || got == id {
			t.Errorf("%s: request %s, %v", name, got, err)
		}
	}
	if _, err := h.Request(t.Context(), "hongdae", access.Room, key); !errors.Is(err, access.ErrInvalidKey) {
		t.Errorf("at another branch: got %v, want ErrInvalidKey", err)
	}
	if got := h.request(access.Room, key); got != id {
		t.Errorf("the announced press has the id %s, want %s", got, id)
	}
	a.Until(t, "the drive", func() bool { return a.Asked(id) == 1 && len(a.Driven()) > 0 })
}

// The answer to an announcement is the same for every key, and the announcement does not reach the agent if a press would be rejected.
func TestAnnouncementWithoutARight(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.patient()
	start := time.Now().Truncate(10 * time.Minute).Add(24 * time.Hour)
	cancelled := h.reserve(2)
	h.exec(`update reservation set state = 'CANCELING', doorlock_key = null where doorlock_key = $1`, cancelled)
	for name, press := range map[string][2]string{
		"unknown key":             {"gangnam", uuid.NewString()},
		"not a key":               {"gangnam", "nonsense"},
		"too early":               {"gangnam", h.reserveAt("gangnam", 1, start, start.Add(time.Hour))},
		"cancelled":               {"gangnam", cancelled},
		"key of another branch":   {"gangnam", h.reserveAt("hongdae", 1, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))},
		"branch without an agent": {"hongdae", h.reserveAt("hongdae", 2, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))},
		"unknown branch":          {"nowhere", h.reserve(3)},
		"not a branch":            {"+/#", h.reserveAt("hongdae", 3, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))},
	} {
		if err := h.Announce(t.Context(), press[0], access.Room, press[1]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := h.Announce(t.Context(), "gangnam", "side", h.reserveAt("gangnam", 1, start.Add(2*time.Hour), start.Add(3*time.Hour))); !errors.Is(err, access.ErrUnknownDoor) {
		t.Errorf("unknown door: %v", err)
	}
	if n := len(h.Awaited()); n != 0 {
		t.Errorf("%d presses are awaited, want none", n)
	}
}

// The press is judged when it is made, not when it is announced.
func TestAnnouncedPressIsJudgedAtThePress(t *testing.T) {
	t.Parallel()
	const change = `update reservation set `
	for name, change := range map[string]func(h *house, key string){
		"cancelled": func(h *house, key string) {
			h.exec(change+`state = 'CANCELING', doorlock_key = null where doorlock_key = $1`, key)
		},
		"moved to another day": func(h *house, key string) {
			h.exec(change+`start_at = start_at + interval '1 day', end_at = end_at + interval '1 day',
				occupied = tstzrange(start_at + interval '1 day', end_at + interval '1 day 10 minutes') where doorlock_key = $1`, key)
		},
		"rotated": func(h *house, key string) {
			h.exec(change+`doorlock_key = gen_random_uuid() where doorlock_key = $1`, key)
		},
		"keys blocked": func(h *house, key string) { h.exec(change+`keys_blocked = true where doorlock_key = $1`, key) },
		"over":         func(h *house, key string) { h.at(time.Now().Add(24 * time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			a := h.patient()
			key := h.reserve(1)
			h.announce(access.Room, key)
			change(h, key)
			if id, err := h.Request(t.Context(), "gangnam", access.Room, key); err == nil {
				t.Errorf("request %s was accepted", id)
			}
			// The agent discards the claim.
			a.Until(t, "the deny", func() bool { return len(a.Denied()) == 1 })
			if n := one[int](h, `select count(*) from door_request`); n != 0 || len(a.Driven()) != 0 {
				t.Errorf("%d requests, driven %v", n, a.Driven())
			}
		})
	}
}

// A cancellation is executed but not yet committed at the press. The press does not wait for it; the agent's next claim does, and
// is denied.
func TestAnnouncedPressDuringACancellation(t *testing.T) {
	t.Parallel()
	for name, cancels := range map[string]bool{"committed": true, "rolled back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			a := h.patient()
			key := h.reserve(1)
			announced := h.announce(access.Room, key)
			tx, err := h.db.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `update reservation set state = 'CANCELING', doorlock_key = null where doorlock_key = $1`, key); err != nil {
				t.Fatal(err)
			}
			id := h.request(access.Room, key)
			if state := h.state(id); id != announced || state != "PENDING" {
				t.Errorf("request %s is %s, want the announced one to be PENDING", id, state)
			}
			end, want := tx.Rollback, access.Success
			if cancels {
				end, want = tx.Commit, access.Failed
			}
			if err := end(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := h.await(h.Service, id, key); got.Status != want {
				t.Errorf("got %+v, want %s", got, want)
			}
			if opened := len(a.Driven()) > 0; opened == cancels {
				t.Errorf("driven %v", a.Driven())
			}
		})
	}
}

// Between the announcement and the press another agent becomes the active one: it is asked, and the claim is invalid.
func TestAnnouncedPressAfterATakeover(t *testing.T) {
	t.Parallel()
	h := build(t)
	first := h.patient()
	second := agenttest.Connect(t, h.second())
	h.until("both agents", func() bool { return len(h.Link.Online("gangnam")) == 2 })
	key := h.reserve(1)
	id := h.announce(access.Room, key)
	h.exec(`update agent_credential set active = false where username = $1`, "agent-gangnam")
	h.exec(`update agent_credential set active = true where username = $1`, "agent-gangnam-2")
	if got := h.request(access.Room, key); got != id {
		t.Errorf("request %s, want %s", got, id)
	}
	if got := h.await(h.Service, id, key); got.Status != access.Success {
		t.Errorf("got %+v", got)
	}
	if len(first.Driven()) != 0 || len(second.Driven()) != 1 {
		t.Errorf("driven by the first agent %v, by the second %v", first.Driven(), second.Driven())
	}
}

// A standby agent that learns the id of an announcement claims it: the claim is not kept.
func TestClaimOfAStandbyAgentIsNotKept(t *testing.T) {
	t.Parallel()
	h := build(t)
	active := h.patient()
	standby := agenttest.Connect(t, h.second())
	h.until("both agents", func() bool { return len(h.Link.Online("gangnam")) == 2 })
	active.Fail(agenttest.Faults{IgnoreAsks: true})
	key := h.reserve(1)
	announced := h.awaited(access.Room, key).String()
	active.Until(t, "the ask", func() bool { return active.Asked(announced) == 1 })
	if err := standby.Publish(protocol.Claim{RequestID: announced, Nonce: protocol.NewNonce()}); err != nil {
		t.Fatal(err)
	}
	active.Fail(agenttest.Faults{})
	id := h.request(access.Room, key)
	if got := h.await(h.Service, id, key); got.Status != access.Success || len(active.Driven()) != 1 || len(standby.Driven()) != 0 {
		t.Errorf("got %+v, driven %v and %v", got, active.Driven(), standby.Driven())
	}
}

// A press whose announcement was lost, or whose claim is not fresh any more, or that comes to another replica, takes the usual
// way.
func TestPressWithoutAFreshClaim(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, h *house, a *agenttest.Agent, key string){
		"the ask is lost": func(t *testing.T, h *house, a *agenttest.Agent, key string) {
			a.Fail(agenttest.Faults{IgnoreAsks: true})
			id := h.awaited(access.Room, key).String()
			a.Until(t, "the ask", func() bool { return a.Asked(id) == 1 })
			a.Fail(agenttest.Faults{})
		},
		"the claim is old": func(_ *testing.T, h *house, _ *agenttest.Agent, key string) {
			h.announce(access.Room, key)
			h.AgeClaims(protocol.GrantAge)
		},
		"the announcement has expired": func(t *testing.T, h *house, a *agenttest.Agent, key string) {
			if err := h.Announce(t.Context(), "gangnam", access.Room, key); err != nil {
				t.Fatal(err)
			}
			a.Until(t, "the deny", func() bool { return len(a.Denied()) == 1 })
		},
		"another replica": func(_ *testing.T, h *house, _ *agenttest.Agent, key string) {
			other := h.replica()
			other.Link = h.link
			if err := other.Announce(h.t.Context(), "gangnam", access.Room, key); err != nil {
				h.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			a := h.patient()
			key := h.reserve(1)
			prepare(t, h, a, key)
			id := h.request(access.Room, key)
			if first := one[string](h, `select type from event where subject = 'door-request:' || $1 order by id limit 1`, id); first != "door-request.pending" {
				t.Errorf("the row was written as %s, want pending", first)
			}
			if got := h.await(h.Service, id, key); got.Status != access.Success {
				t.Errorf("got %+v", got)
			}
			if len(a.Driven()) != 1 {
				t.Errorf("driven %v", a.Driven())
			}
		})
	}
}

// A lost grant, a repeated claim and a lost result cost an announced press one interval at most.
func TestAnnouncedPressThroughFaults(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]agenttest.Faults{
		"lost grant":      {LoseGrants: 1},
		"repeated claims": {RepeatClaims: 3},
		"lost result":     {LoseResults: 1},
		"second nonce":    {ClaimTwice: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			a := h.patient()
			a.Fail(faults)
			key := h.reserve(1)
			announced := h.announce(access.Room, key)
			id := h.request(access.Room, key)
			if got := h.await(h.Service, id, key); got.Status != access.Success || id != announced {
				t.Errorf("request %s of announcement %s: %+v", id, announced, got)
			}
			if len(a.Driven()) != 1 {
				t.Errorf("driven %v", a.Driven())
			}
		})
	}
}

// An announced press joins the request in progress, and its claim is discarded.
func TestAnnouncedPressJoins(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.patient()
	a.Fail(agenttest.Faults{Silent: true})
	key := h.reserve(1)
	first := h.request(access.Room, key)
	a.Until(t, "the drive", func() bool { return len(a.Driven()) == 1 })
	h.announce(access.Room, key)
	if second := h.request(access.Room, key); second != first {
		t.Errorf("request %s, want to join %s", second, first)
	}
	a.Until(t, "the deny", func() bool { return len(a.Denied()) == 1 })
	if len(a.Driven()) != 1 {
		t.Errorf("driven %v", a.Driven())
	}
}

func TestAnnouncementsAreLimited(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.Limits = &limit.Limiter{DB: h.db, Key: h.keys.MAC("rate-limit", "")}
	a := h.patient()
	key := h.reserve(1)
	var err error
	for n := 0; err == nil && n < 1000; n++ {
		err = h.Announce(t.Context(), "gangnam", access.Room, key)
	}
	if !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("got %v, want ErrExceeded", err)
	}
	// Presses have a limit of their own.
	id := h.request(access.Room, key)
	if got := h.await(h.Service, id, key); got.Status != access.Success || len(a.Driven()) != 1 {
		t.Errorf("got %+v, driven %v", got, a.Driven())
	}
}

// The limits remember the keys of presses for some seconds. Any client can announce presses, with keys as long as an address may be, so what is
// remembered of a key is bounded; a longer text does not count as the key with which it begins.
func TestLimitsRememberShortKeysOnly(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	if subject := access.PressSubject(access.Room, key+strings.Repeat("x", 30_000)); len(subject) > 100 || subject == access.PressSubject(access.Room, key) {
		t.Errorf("%d bytes are remembered of a key of 30,000 characters, want at most 100 and not those of the key with which it begins", len(subject))
	}
	if access.PressSubject(access.Room, key) != access.PressSubject(access.Room, strings.ToUpper(key)) {
		t.Error("the case of a key gives it other limits")
	}
}
