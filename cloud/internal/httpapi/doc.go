// Package httpapi is the HTTP interface of the service: transport and nothing else.
//
// A request meets, in this order: request id, limits, the session, layer 1 (is there a session?),
// layer 2 (an administrator's?), then one handler that decodes, makes one call and encodes. A handler
// returns an error; errors.go holds the one table that turns errors into answers. The interface's
// quirks (YYYYMMDDHHmm, stored ends ten minutes early, odd spellings) live in wire.go and errors.go
// and nowhere else.
package httpapi
