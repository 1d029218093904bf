// Package pgserver runs a private PostgreSQL, so that the service works on a machine without a configured database
// (YEOLDA_DATABASE_URL is empty).
//
// It uses the PostgreSQL programs of the machine and keeps the cluster under the service's data directory. The server
// listens only on a Unix socket in a directory that only its user may enter; that directory is its access control.
//
// Several processes may Start the same data directory, for instance `yeolda serve` and `yeolda migrate`. The process with
// the lock file owns the server; the others use it, and one of them takes the lock when the owner ends:
//
//	           lock taken              postmaster.pid is ready
//	waiting ──────────────▶ starting ───────────────────────────▶ serving
//	   │                       ▲                                     │
//	   │ owner's server        └─────────── postgres died ◀──────────┤
//	   ▼ is ready                                                    │ Stop
//	attached ── owner gone: lock taken ──▶ starting                  ▼
//	   └───────────────────── Stop ───────────────────────────▶ stopped
//
// The path of the socket is constant, so connection pools reconnect after a crash or a change of owner.
//
// On Linux the kernel stops postgres when its owner ends, even by kill -9. On other systems such an orphan runs until the
// next Start replaces it.
package pgserver

import (
	"errors"
	"log/slog"
)

var (
	// ErrNotEmpty is returned by Restore if the data directory has a database.
	ErrNotEmpty = errors.New("there is a database already: name another data directory")
	// ErrInUse is returned by Restore and Upgrade if another process uses the data directory.
	ErrInUse = errors.New("another process uses the data directory: stop the service first")
	// ErrRestoring is returned by Start if a restoration of the data directory has not ended.
	ErrRestoring = errors.New("a restoration of this data directory was interrupted: repeat yeolda archive restore, or name another data directory")
)

// Options define the location of the private server.
type Options struct {
	// DataDir is the service's data directory (YEOLDA_DATA_DIR). The cluster is in its subdirectory postgres. If the service
	// runs as root and the server's user cannot enter it, the cluster is in a directory of its own under /var/lib, to which
	// DataDir/postgres links.
	DataDir string

	Logger *slog.Logger

	// BinDir contains initdb and postgres. Empty: YEOLDA_PG_BIN, else the usual places of distributions.
	BinDir string

	// Archive switches archiving of the write-ahead log on or off. Commands leave it as the service has set it.
	Archive Archiving

	// Restoring has Start replay the segments of a restored cluster, and keep them until Server.EndRestoration. Without it, Start fails
	// between Restore and then.
	Restoring bool

	// Volatile trades safety for speed: a crash of the machine may destroy the cluster. For tests.
	Volatile bool
}

// Archiving decides whether the server copies each segment of its write-ahead log into its outbox.
type Archiving int

// The values of Archiving.
const (
	ArchivingKept Archiving = iota // as the last owner of the server has set it
	ArchivingOn
	ArchivingOff
)
