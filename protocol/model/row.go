// Package model is the door exchange of package protocol as a model, twice. door.pml is for spin, which walks through
// all interleavings of one request. [Table] is the cloud's side for simulations: the rows of door_request in memory,
// where PostgreSQL cannot be had because time is simulated.
//
//	PENDING ──Grant──► GRANTED ──Report of the last door──► SUCCESS | FAILED
//	   └──Fail──► FAILED  └────Abandon────► UNKNOWN | FAILED
//
// A model is worth what holds it against the real thing: a test of cloud/internal/access does the same at random to a
// Table and to PostgreSQL and compares every answer and every row.
package model

import (
	"slices"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// State is where a request stands.
type State string

// The states. Those from Success on are final.
const (
	Pending State = "PENDING"
	Granted State = "GRANTED"
	Success State = "SUCCESS"
	Failed  State = "FAILED"
	Unknown State = "UNKNOWN"
)

// Final reports whether the state will not change any more.
func (s State) Final() bool { return s == Success || s == Failed || s == Unknown }

// DriveLimit is the age after which no lock is driven for a request (docs/specification.md, Doors 10).
const DriveLimit = protocol.ClaimLimit + protocol.GrantAge

// Details of requests that ended without a report.
const (
	NoClaim  = "no claim"
	NoReport = "no report"
)

// Row is one press of an unlock button.
type Row struct {
	ID      string
	Branch  string
	Device  string   // of the result: front, room_<n>
	Doors   []string // the locks to drive
	Key     string   // empty: staff's, which no reservation stands behind
	Created time.Time

	State    State
	Nonce    string    // the one that was granted
	Granted  time.Time // zero: it was not
	Outcomes map[string]protocol.Outcome
	Detail   string
}

// Table holds the rows. Every method is one statement: it happens at once, or not at all. Ages are measured by one
// clock, whose time the caller gives.
type Table struct {
	rows  map[string]*Row
	order []*Row // as they were made
}

// Insert makes a row, which is Pending, or Failed for a branch that is known to be offline.
func (t *Table) Insert(r Row) {
	if t.rows == nil {
		t.rows = make(map[string]*Row)
	}
	r.Outcomes = make(map[string]protocol.Outcome)
	t.rows[r.ID] = &r
	t.order = append(t.order, &r)
}

// Rows returns all rows, oldest first. They are the table's own.
func (t *Table) Rows() []*Row { return t.order }

// Row returns a row, or nil.
func (t *Table) Row(id string) *Row { return t.rows[id] }

func (t *Table) of(id, branch string) *Row {
	if r := t.rows[id]; r != nil && r.Branch == branch {
		return r
	}
	return nil
}

// Grant answers a claim: it returns the doors that may be driven, or none. holds says whether the reservation behind
// the request's key stands at this moment.
func (t *Table) Grant(id, branch, nonce string, holds bool, now time.Time) (doors []string) {
	r := t.of(id, branch)
	if r == nil || r.Key != "" && !holds {
		return nil
	}
	age := now.Sub(r.Created)
	first := r.State == Pending && age < protocol.ClaimLimit
	again := (r.State == Granted || r.State == Success) && r.Nonce == nonce && age < DriveLimit
	if !first && !again {
		return nil
	}
	if first {
		r.State, r.Nonce, r.Granted = Granted, nonce, now
	}
	return r.Doors
}

// Report writes the first report of a door. The last door of a granted request decides it; decided is empty otherwise.
// It is not ok for a door that is not the request's, was never granted, or has reported.
func (t *Table) Report(id, branch, device string, outcome protocol.Outcome) (decided State, ok bool) {
	r := t.of(id, branch)
	if r == nil || !slices.Contains(r.Doors, device) || r.Granted.IsZero() || r.Outcomes[device] != "" {
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

// Fail ends a request that nobody was granted.
func (t *Table) Fail(id, branch, detail string) bool {
	r := t.of(id, branch)
	if r == nil || r.State != Pending {
		return false
	}
	r.State, r.Detail = Failed, detail
	return true
}

// Abandon ends a granted request of which nothing was heard: Unknown, or Failed from the second in a row for one key
// and door, so that nobody stands outside for ever. It returns nothing if the request is not granted.
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

// before is the last request with the same key for the same door.
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
