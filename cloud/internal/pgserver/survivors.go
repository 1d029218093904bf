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

const (
	survivorPoll = 10 * time.Millisecond

	// signalEvery is the interval at which a process of an earlier server is signalled. The autovacuum launcher interrupts its
	// work at each signal, waits a second, and only then notices the end of its server: with a signal every second it never would.
	signalEvery = 3 * time.Second

	// A process that ends leaves /proc before the kernel has detached its memory, and until then postgres refuses to start with
	// memoryInUse. It is started again for memoryLimit.
	memoryInUse = "pre-existing shared memory block"
	memoryLimit = 10 * time.Second
)

// endSurvivors ends the remains of an earlier server and waits until they have ended: a server that is still shutting
// down because its owner was killed, or sessions that have not noticed the end of their server. This process holds the
// lock, so none of them has an owner.
//
// Afterwards the lock files of PostgreSQL are obsolete and are removed. The process id in them may belong to an
// unrelated process (likely in a container, where ids start over) or to a dead one that was not reaped, and either
// would prevent the start of postgres.
func endSurvivors(ctx context.Context, h home, logger *slog.Logger) error {
	signalled := map[int]time.Time{}
	for {
		pids, err := processesNamed(h.name())
		if err != nil {
			return fmt.Errorf("look for processes of an earlier server: %w", err)
		}
		if len(pids) == 0 {
			break
		}
		if len(signalled) == 0 {
			logger.Info("waiting for the end of an earlier PostgreSQL", "processes", pids)
		}
		for _, pid := range pids {
			if time.Since(signalled[pid]) < signalEvery {
				continue
			}
			signalled[pid] = time.Now()
			// SIGINT: fast shutdown for the server, the end of the current query for a session.
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
