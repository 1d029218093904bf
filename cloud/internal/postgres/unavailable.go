package postgres

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// readOnly is the code of a write to a server that takes none, for instance after a failover.
const readOnly = "25006"

// IsUnavailable reports whether a request failed because the database did not answer or accepts no writes. The request may
// be repeated later.
func IsUnavailable(err error) bool {
	if err == nil {
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &connect) || errors.As(err, &network) {
		return true
	}
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return pgconn.SafeToRetry(err) || pgconn.Timeout(err) || errors.Is(err, net.ErrClosed) || isBrokenConnection(err)
	}
	switch code := pgErr.Code; {
	case strings.HasPrefix(code, "08"), // connection exceptions
		strings.HasPrefix(code, "57P"),    // shutdown, crash, start-up
		strings.HasPrefix(code, "53"),     // out of connections, memory, disk
		code == readOnly, code == "55P03", // a lock that was not released in time
		code == "57014", // statement_timeout
		code == rebuilding:
		return true
	}
	return false
}

// isBrokenConnection recognises a connection that ended during a query, for which pgconn has no type.
func isBrokenConnection(err error) bool {
	text := err.Error()
	return strings.Contains(text, "unexpected EOF") || strings.Contains(text, "conn closed") || strings.Contains(text, "broken pipe") || strings.Contains(text, "connection reset")
}
