// Package pgserver runs a private PostgreSQL, so that the service works on a
// machine where nobody has set up a database (YEOLDA_DATABASE_URL is empty).
//
// It uses the PostgreSQL programs of the machine and keeps the cluster under
// the service's data directory. The server listens on a Unix socket in a
// directory only its user may enter, and on nothing else; that directory is the
// whole of its access control.
//
// Several processes may Start the same data directory at once, for instance
// `yeolda serve` and `yeolda migrate`. Whoever holds the lock file owns the
// server; the others use it, and one of them inherits the lock when the owner
// goes away:
//
//	           lock taken              postmaster.pid says ready
//	waiting ──────────────▶ starting ───────────────────────────▶ serving
//	   │                       ▲                                     │
//	   │ owner's server        └─────────── postgres died ◀──────────┤
//	   ▼ is ready                                                    │ Stop
//	attached ── owner gone: lock taken ──▶ starting                  ▼
//	   └───────────────────── Stop ───────────────────────────▶ stopped
//
// The socket stays at the same path throughout, so connection pools reconnect
// by themselves after a crash or a change of owner.
//
// On Linux the kernel stops postgres when its owner dies, even by kill -9. On
// other systems such an orphan runs on until the next Start replaces it.
package pgserver

import "log/slog"

// Options say where the private server lives.
type Options struct {
	// DataDir is the service's data directory (YEOLDA_DATA_DIR). The cluster
	// lies in its subdirectory postgres, or, when the service runs as root and
	// the server's user could not get there, in a directory of its own under
	// /var/lib that the link DataDir/postgres leads to.
	DataDir string

	Logger *slog.Logger

	// BinDir holds initdb and postgres. Empty: YEOLDA_PG_BIN, or else the
	// places where distributions install them.
	BinDir string

	// Volatile trades safety for speed: a crash of the machine may destroy the
	// cluster. For tests.
	Volatile bool
}
