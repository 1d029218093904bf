// Package tracing tells an OpenTelemetry collector what a request was spent on. It is off unless [Start] was called, and
// then costs the reading of one pointer.
//
// # One door, one trace
//
//	POST …/unlock ──► db ──► door.ask        the trace of the HTTP request; the id of its door request is the
//	   └────────────────► door.claim ──► db  trace's own, so that any replica finds the trace by the request
//	   └────────────────► door.grant         that an agent names. Nothing of OpenTelemetry travels to agents.
//	   └────────────────► door.result ──► db
//
// That is why trace ids are made here: each is a version 4 UUID, and the root's span id is its first half. Whoever knows
// the id of a door request from a log therefore knows the trace, without its hyphens.
//
// No span holds what a person could be known or a door be opened by: HTTP spans are named by the pattern of their route,
// database spans by the statement without its arguments. Trace contexts of strangers are not believed.
package tracing
