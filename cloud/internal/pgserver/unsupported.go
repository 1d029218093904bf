//go:build !unix

package pgserver

import (
	"context"
	"errors"
	"io"
	"time"
)

var errUnix = errors.New("the private PostgreSQL needs a Unix system: set YEOLDA_DATABASE_URL")

// ServiceRole is the role of the service on a private server.
const ServiceRole = "yeolda_service"

// Server represents a private PostgreSQL, which this system cannot run.
type Server struct{}

// Start fails: this system has no Unix sockets with owners.
func Start(context.Context, Options) (*Server, error) {
	return nil, errUnix
}

// URL returns an empty string.
func (*Server) URL() string { return "" }

// ServiceURL returns an empty string.
func (*Server) ServiceURL() string { return "" }

// Stop does nothing.
func (*Server) Stop() {}

// Tool fails like Start.
func Tool(_ context.Context, name string, _ int) (string, error) {
	return "", errors.New(name + " is looked for on Unix systems only: run it by hand")
}

// Outbox returns an empty string.
func (*Server) Outbox() string { return "" }

// BaseBackup fails like Start.
func (*Server) BaseBackup(context.Context, io.Writer) error { return errUnix }

// Restore fails like Start.
func Restore(context.Context, Options, io.Reader, time.Time, func(string) error) error {
	return errUnix
}

// EndRestoration fails like Start.
func (*Server) EndRestoration() error { return errUnix }

// Upgrade fails like Start.
func Upgrade(context.Context, Options) (from, to string, err error) { return "", "", errUnix }

// Discard does nothing.
func Discard(string) error { return nil }
