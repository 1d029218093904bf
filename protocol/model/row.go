// Package model is the door exchange of package protocol as a model, twice. door.pml is for spin, which explores all
// interleavings of one request. [Table] is the cloud's part for simulations in simulated time, where PostgreSQL is not
// available: the rows of door_request in memory.
//
//	PENDING ──Grant──► GRANTED ──Report of the last door──► SUCCESS | FAILED
//	   └──Fail──► FAILED  └────Abandon────► UNKNOWN | FAILED
//
// Table follows door.pml, whose names its comments cite, and not the code of the cloud. A test of cloud/internal/access
// applies the same random steps to a Table and to PostgreSQL and compares every answer and every row.
package model

import (
	"slices"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// State is the state of a request.
type State string

// The states. Those from Success on are final.
const (
	Pending State = "PENDING"
	Granted State = "GRANTED"
	Success State = "SUCCESS"
	Failed  State = "FAILED"
	Unknown State = "UNKNOWN"
)

// Final reports whether the state is final.
func (s State) Final() bool { return s == Success || s == Failed || s == Unknown }

// DriveLimit is the maximum age of a request when a lock is driven for it (docs/specification.md, Doors).
const DriveLimit = protocol.ClaimLimit + protocol.GrantAge

// Details of requests that ended without a result.
const (
	NoClaim     = "no claim"
	NoReport    = "no report"
	ClaimDenied = "claim denied"
)

// Row is one press of an unlock button.
type Row struct {
	ID      string
	Branch  string
	Device  string   // of the result: front, room_<n>
	Doors   []string // the locks to drive
	Key     string   // empty: an administrator's, without a reservation
	Created time.Time

	State    State
	Nonce    string    // grantedTo
	Granted  time.Time // zero: never
	Outcomes map[string]protocol.Outcome
	Detail   string
}

// Table holds the rows. Every method is one atomic statement. Ages are measured by one clock, whose time the caller passes.
type Table struct {
	agents map[string]credentials // by branch
	rows   map[string]*Row
	order  []*Row // as inserted
}

// credentials are those of one branch.
type credentials struct {
	active string // current; empty: none
	others int    // standby ones
}

// Enroll adds a standby credential to a branch.
func (t *Table) Enroll(branch string) {
	c := t.agents[branch]
	c.others++
	t.setCredentials(branch, c)
}

// Activate makes a credential of a branch the active one, in place of an earlier one, which becomes standby.
func (t *Table) Activate(agent protocol.Agent) {
	c := t.agents[agent.Branch]
	if c.active != "" && c.active != agent.Username {
		c.others++
	}
	c.active = agent.Username
	t.setCredentials(agent.Branch, c)
}

func (t *Table) setCredentials(branch string, c credentials) {
	if t.agents == nil {
		t.agents = make(map[string]credentials)
	}
	t.agents[branch] = c
}

// isActive reports whether messages of an agent count: those of the active credential, and those on the topics of the branch
// (without a user name) if the branch has no other credential.
func (t *Table) isActive(agent protocol.Agent) bool {
	c := t.agents[agent.Branch]
	if agent.Username == "" {
		return c.active != "" && c.others == 0
	}
	return agent.Username == c.active
}

// Insert adds a row. It is Pending, or Failed if the active agent is offline.
func (t *Table) Insert(r Row) {
	if t.rows == nil {
		t.rows = make(map[string]*Row)
	}
	r.Outcomes = make(map[string]protocol.Outcome)
	t.rows[r.ID] = &r
	t.order = append(t.order, &r)
}

// Rows returns all rows, oldest first, without copying them.
func (t *Table) Rows() []*Row { return t.order }

// Row returns a row, or nil.
func (t *Table) Row(id string) *Row { return t.rows[id] }

func (t *Table) of(id, branch string) *Row {
	if r := t.rows[id]; r != nil && r.Branch == branch {
		return r
	}
	return nil
}

// Grant decides a claim: it returns the doors that may be driven, or none. holds says whether the reservation of the
// request's key is valid at this moment (valid). A denied claim of the active agent fails a pending request; a claim of
// another agent changes nothing (DENY_FAILS_FOR_STANDBY).
func (t *Table) Grant(id string, from protocol.Agent, nonce string, holds bool, now time.Time) (doors []string) {
	r := t.of(id, from.Branch)
	if r == nil || !t.isActive(from) {
		return nil
	}
	age := now.Sub(r.Created)
	valid := r.Key == "" || holds
	switch {
	case r.State == Pending && valid && age < protocol.ClaimLimit:
		r.State, r.Nonce, r.Granted = Granted, nonce, now
		return r.Doors
	case (r.State == Granted || r.State == Success) && valid && r.Nonce == nonce && age < DriveLimit:
		return r.Doors
	}
	t.Fail(id, from.Branch, ClaimDenied)
	return nil
}

// Report stores the first result of a door. The result of the last door decides a granted request; decided is empty
// otherwise. It is not ok if the result does not count: if it does not come from the active agent (RESULT_OF_STANDBY), does not have
// the nonce of the grant (RESULT_WITHOUT_NONCE), or is for a door that is not the request's or has a result. A result
// of an agent of the previous release has no nonce and counts unless it is dropped (LEGACY_DROPPED). The outcome unknown
// never counts.
func (t *Table) Report(id string, from protocol.Agent, nonce, device string, outcome protocol.Outcome) (decided State, ok bool) {
	r := t.of(id, from.Branch)
	if r == nil || r.Granted.IsZero() || !t.isActive(from) || outcome == protocol.Unknown {
		return "", false
	}
	legacy := nonce == "" && outcome != protocol.Dropped
	if nonce != r.Nonce && !legacy || !slices.Contains(r.Doors, device) || r.Outcomes[device] != "" {
		return "", false
	}
	r.Outcomes[device] = outcome
	if r.State != Granted || len(r.Outcomes) < len(r.Doors) {
		return "", true
	}
	r.State = Success
	for _, o := range r.Outcomes {
		if o != protocol.Opened {
			r.State = Failed
		}
	}
	return r.State, true
}

// Fail ends a request that was not granted.
func (t *Table) Fail(id, branch, detail string) bool {
	r := t.of(id, branch)
	if r == nil || r.State != Pending {
		return false
	}
	r.State, r.Detail = Failed, detail
	return true
}

// Abandon ends a granted request without results, when its nonce has expired (ABANDON_EARLY): as Unknown, or as Failed if
// the previous request of the same key and door ended like that too, so that the guest gets the PIN. It returns nothing if
// the request is not granted.
func (t *Table) Abandon(id string) State {
	r := t.rows[id]
	if r == nil || r.State != Granted {
		return ""
	}
	r.State, r.Detail = Unknown, NoReport
	if before := t.before(r); r.Key != "" && before != nil && before.Detail == NoReport {
		r.State = Failed
	}
	return r.State
}

// before returns the previous request with the same key for the same door.
func (t *Table) before(r *Row) (before *Row) {
	for _, other := range t.order {
		if other.Key == r.Key && other.Device == r.Device && other.Created.Before(r.Created) {
			before = other
		}
	}
	return before
}

// EndOverdue ends requests whose replica died: pending for longer than claimLimit, granted for longer than reportLimit.
func (t *Table) EndOverdue(claimLimit, reportLimit time.Duration, now time.Time) (ended []*Row) {
	for _, r := range t.order {
		switch age := now.Sub(r.Created); {
		case r.State == Pending && age > claimLimit:
			t.Fail(r.ID, r.Branch, NoClaim)
			ended = append(ended, r)
		case r.State == Granted && age > reportLimit:
			t.Abandon(r.ID)
			ended = append(ended, r)
		}
	}
	return ended
}
