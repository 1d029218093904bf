//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	// ownerPoll is the interval at which a waiting process checks whether the owner's server is ready, attachedPoll
	// that at which an attached process checks whether the owner has ended.
	ownerPoll    = 10 * time.Millisecond
	attachedPoll = 200 * time.Millisecond

	// A server that keeps ending is started again after firstRestart, then after twice as long each time up to
	// lastRestart. After stableAfter of operation the delay begins with firstRestart again.
	firstRestart = 50 * time.Millisecond
	lastRestart  = 5 * time.Second
	stableAfter  = 30 * time.Second
)

// Server is a private PostgreSQL that is started, attached to, and restarted after a crash, until Stop.
type Server struct {
	opts   Options
	logger *slog.Logger

	home  home // settled before Start returns, constant afterwards
	stop  context.CancelFunc
	ready chan error    // the outcome of Start, sent once
	done  chan struct{} // closed when the supervisor has ended
}

// Start returns when the database accepts connections: after about a second the first time, later after some
// hundredths of a second. It fails if there are no PostgreSQL programs, if the cluster cannot be created or has
// another major version, or if postgres does not start. Cancelling ctx ends the wait; it does not stop a server that
// Start has returned.
func Start(ctx context.Context, opts Options) (*Server, error) {
	dataDir, err := filepath.Abs(opts.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", opts.DataDir, err)
	}
	opts.DataDir = dataDir
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{
		opts:   opts,
		logger: opts.Logger,
		stop:   stop,
		ready:  make(chan error, 1),
		done:   make(chan struct{}),
	}
	go s.supervise(life)
	select {
	case err = <-s.ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("private PostgreSQL in %s: %w", dataDir, err)
	}
	return s, nil
}

// URL returns the connection string of the owner of the database, which is constant for a data directory.
func (s *Server) URL() string { return s.home.url(superuser) }

// ServiceURL is URL for ServiceRole, which the owner has to create.
func (s *Server) ServiceURL() string { return s.home.url(ServiceRole) }

// Stop shuts the server down if this process owns it, and waits until it has ended. Open sessions are ended and their
// transactions rolled back. A second call has no effect.
func (s *Server) Stop() {
	s.stop()
	<-s.done
}

// supervise owns the server process for the lifetime of the Server.
//
// The kernel sends the parent-death signal when the thread that started the child ends, not the process, so supervise
// uses a thread of its own. The thread is never unlocked: it ends with the goroutine, after the child.
func (s *Server) supervise(ctx context.Context) {
	runtime.LockOSThread()
	defer close(s.done)

	serving := false
	onReady := func() {
		if !serving {
			serving = true
			s.ready <- nil
		}
	}
	lock, err := s.own(ctx, onReady)
	if err != nil {
		if !serving {
			s.ready <- err
		}
		return
	}
	defer lock.Close()

	for wait := firstRestart; ; wait = min(2*wait, lastRestart) {
		started := time.Now()
		err := s.serve(ctx, onReady)
		if ctx.Err() != nil {
			return
		}
		if !serving {
			s.ready <- err
			return
		}
		if time.Since(started) > stableAfter {
			wait = firstRestart
		}
		s.logger.Error("private PostgreSQL ended unexpectedly and is started again", "error", err, "after", wait)
		if !sleep(ctx, wait) {
			return
		}
	}
}

// own waits until this process owns the data directory. While another owner's server is ready, it reports that and
// continues to wait.
func (s *Server) own(ctx context.Context, onReady func()) (*dirLock, error) {
	if err := os.MkdirAll(s.opts.DataDir, 0o755); err != nil { //nolint:gosec // PostgreSQL's own directory below it is closed to others
		return nil, err
	}
	lockPath := filepath.Join(s.opts.DataDir, "postgres.lock")
	for poll := ownerPoll; ; {
		lock, err := tryLock(lockPath)
		if err != nil || lock != nil {
			return lock, err
		}
		if poll == ownerPoll {
			if h, err := findHome(s.opts.DataDir); err == nil && h.running() {
				s.home = h
				s.logger.Info("using the private PostgreSQL of another process", "home", h.dir)
				onReady()
				poll = attachedPoll
			}
		}
		if !sleep(ctx, poll) {
			return nil, ctx.Err()
		}
	}
}

// serve runs postgres once, from creating the cluster (the first time) to the end of the process. The caller holds the
// lock.
func (s *Server) serve(ctx context.Context, onReady func()) error {
	began := time.Now()
	h, err := findHome(s.opts.DataDir)
	if errors.Is(err, os.ErrNotExist) {
		h, err = makeHome(s.opts.DataDir, s.logger)
	}
	if err != nil {
		return err
	}
	if h.isRestoring() && !s.opts.Restoring {
		return ErrRestoring
	}
	bin, err := findPrograms(ctx, s.opts.BinDir, h.majorVersion())
	if err != nil {
		return err
	}
	if h.majorVersion() == "" {
		if err := h.initialize(ctx, bin, s.opts.Volatile); err != nil {
			return err
		}
	}
	if err := endSurvivors(ctx, h, s.logger); err != nil {
		return err
	}
	if err := h.makeSocketDir(); err != nil {
		return err
	}
	if err := errors.Join(h.writeAccess(), h.setArchiving(s.opts.Archive)); err != nil {
		return err
	}
	for {
		err := s.runPostgres(ctx, h, bin, func() {
			s.logger.Info("private PostgreSQL is ready", "home", h.dir, "programs", bin, "took", time.Since(began).Round(time.Millisecond))
			if s.home == (home{}) {
				s.home = h
			}
			onReady()
		})
		if err == nil || !strings.Contains(err.Error(), memoryInUse) || time.Since(began) > memoryLimit || !sleep(ctx, survivorPoll) {
			return err
		}
	}
}

// sleep waits for d and reports whether ctx is still active.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
