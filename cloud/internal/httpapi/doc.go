// Package httpapi is the HTTP interface of the service: transport and nothing else.
//
// A request passes the request id, the normalization of its path, the session, the layer of its route (layers.go) and
// the bounds of every request. Then one handler decodes it, makes one call and encodes the answer. A handler returns an
// error; the table in errors.go turns errors into answers. Package wire holds the forms of the interface, package console
// the additions for administrators.
//
// openapi.yaml describes the interface, and the tests compare every exchange with it.
package httpapi
