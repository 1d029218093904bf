//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const survivorPoll = 10 * time.Millisecond

// endSurvivors ends what is left of an earlier server and waits until it is
// gone: a server that is still shutting down because its owner was killed, or
// sessions that have not noticed that theirs was. This process has the lock, so
// none of them has an owner.
//
// Afterwards the lock files of PostgreSQL mean nothing, and are removed: the
// process id in them may by now be that of an unrelated process (always likely
// in a container, where ids start over) or of a dead one that nobody has
// reaped, and either would keep postgres from starting.
func endSurvivors(ctx context.Context, h home, logger *slog.Logger) error {
	for first := true; ; first = false {
		pids, err := processesNamed(h.name())
		if err != nil {
			return fmt.Errorf("look for processes of an earlier server: %w", err)
		}
		if len(pids) == 0 {
			break
		}
		if first {
			logger.Info("waiting for an earlier PostgreSQL to end", "processes", pids)
		}
		for _, pid := range pids {
			// SIGINT: fast shutdown for the server, the end of its query for a session.
			if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("end process %d of an earlier server: %w", pid, err)
			}
		}
		if !sleep(ctx, survivorPoll) {
			return ctx.Err()
		}
	}
	for _, path := range []string{
		filepath.Join(h.cluster(), "postmaster.pid"),
		filepath.Join(h.socketDir(), ".s.PGSQL."+port+".lock"),
	} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
