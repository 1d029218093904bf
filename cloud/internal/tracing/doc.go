// Package tracing exports the steps of a request to an OpenTelemetry collector. It is off unless [Start] was called,
// and then costs the reading of one pointer.
//
// # One door, one trace
//
//	POST …/unlock ──► db ──► door.ask        the trace of the HTTP request; the id of its door request is the
//	   └────────────────► door.claim ──► db  trace's own, so that any replica finds the trace by the request
//	   └────────────────► door.grant         that an agent names. Nothing of OpenTelemetry travels to agents.
//	   └────────────────► door.result ──► db
//
// Therefore trace ids are created here: each is a version 4 UUID, and the root's span id is its first half. The id of
// a door request in a log, without its hyphens, is the id of its trace.
//
// No span identifies a person or contains a key: HTTP spans are named by the pattern of their route, database spans by
// the statement without its arguments. Trace contexts of clients are ignored.
package tracing
