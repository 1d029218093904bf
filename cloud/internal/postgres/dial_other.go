//go:build !linux

package postgres

import "syscall"

// boundUnacknowledged does nothing: only Linux has the option. Keep-alive probes still end a connection that waits for a result.
func boundUnacknowledged(string, string, syscall.RawConn) error { return nil }
