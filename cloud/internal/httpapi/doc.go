// Package httpapi is the HTTP interface of the service: transport and nothing else.
//
// A request meets, in this order: a request id, its path in one spelling, the session, the layer of its
// route (layers.go: is there a session, is it an administrator's?), the bounds every request has, then one
// handler that decodes, makes one call and encodes. A handler returns an error; errors.go holds the one
// table that turns errors into answers. The interface's quirks (YYYYMMDDHHmm, stored ends ten minutes
// early, odd spellings) live in wire.go and errors.go and nowhere else.
//
// The interface itself is described in openapi.yaml, and the tests hold every exchange against it.
package httpapi
