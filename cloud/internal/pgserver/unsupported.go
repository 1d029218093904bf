//go:build !unix

package pgserver

import (
	"context"
	"errors"
)

// ServiceRole is the role of the service on a private server.
const ServiceRole = "yeolda_service"

// Server represents a private PostgreSQL, which this system cannot run.
type Server struct{}

// Start fails: this system has no Unix sockets with owners.
func Start(context.Context, Options) (*Server, error) {
	return nil, errors.New("the private PostgreSQL needs a Unix system: set YEOLDA_DATABASE_URL")
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
