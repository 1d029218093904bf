// Package audit defines the entries of the audit log. Package postgres stores them and links them into a chain.
package audit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Entry is one line of the audit log: an actor, an action, its target and its origin. Target and Detail must name no
// guest and hold no secret, because an entry cannot be removed.
type Entry struct {
	Actor     string            // admin:<login id>, customer:<reservation>, discord:<id>, system, cli:<user>
	BranchID  *booking.BranchID // nil: the entry concerns no branch, or the branch with code Branch
	Branch    string            // branch code; empty: the entry concerns no branch, or BranchID
	Action    string            // door.unlock, reservation.cancel, pin.reveal, administrator.login, …
	Target    string
	Detail    any    // encoded as JSON; nil: an empty object
	Address   string // empty: the context's [Origin]
	RequestID string // empty: the context's [Origin]
}

// Origin is the client address and the id of the request that is being handled.
type Origin struct {
	Address   string
	RequestID string
}

type originKey struct{}

// WithOrigin returns a context whose audit entries carry an origin.
func WithOrigin(ctx context.Context, from Origin) context.Context {
	return context.WithValue(ctx, originKey{}, from)
}

// OriginOf returns the origin of a context; the zero value if it has none.
func OriginOf(ctx context.Context) Origin {
	from, _ := ctx.Value(originKey{}).(Origin)
	return from
}

// Row is an entry as it is stored.
type Row struct {
	ID        int64
	At        time.Time
	Actor     string
	Action    string
	Target    string
	Detail    json.RawMessage
	Address   string
	RequestID string
}

// Filter selects entries. Empty fields select all.
type Filter struct {
	Branch  string    // code
	Global  bool      // includes entries that concern no branch
	Actions string    // the part before the dot: door, reservation, …
	Actor   string    // a part of it
	From    time.Time // first moment
	Until   time.Time // first moment after
	Before  int64     // id; 0: the newest
	Limit   int
}

// WithoutRequestID removes the id of a door request from the detail of an entry.
func WithoutRequestID(detail json.RawMessage) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(detail, &fields); err != nil {
		return json.RawMessage(`{}`)
	}
	delete(fields, "requestId")
	stripped, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return stripped
}
