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
	"time"
)

const (
	// ownerPoll is how often a waiting process looks whether the owner's server
	// is ready, and attachedPoll how often an attached one looks whether the
	// owner is gone.
	ownerPoll    = 10 * time.Millisecond
	attachedPoll = 200 * time.Millisecond

	// A server that keeps dying is started again after firstRestart, then after
	// twice as long each time up to lastRestart. One that lived for stableAfter
	// starts over with firstRestart.
	firstRestart = 50 * time.Millisecond
	lastRestart  = 5 * time.Second
	stableAfter  = 30 * time.Second
)

// Server is a private PostgreSQL that is started, attached to, and started
// again after a crash, until Stop.
type Server struct {
	opts   Options
	logger *slog.Logger

	home  home // settled before Start returns, constant afterwards
	stop  context.CancelFunc
	ready chan error    // the outcome of Start, sent once
	done  chan struct{} // closed when the supervisor has ended
}

// Start returns when the database accepts connections: after about a second
// the first time, in some hundredths of a second later. It fails when there are
// no PostgreSQL programs, when the cluster cannot be made or was made by another
// major version, or when postgres refuses to start. Cancelling ctx gives up the
// wait; it does not stop a server that Start has returned.
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

// URL is the connection string of the database, the same for the whole life of
// the data directory.
func (s *Server) URL() string { return s.home.url() }

// Stop shuts the server down if this process owns it, and waits until it is
// gone. Sessions still open are ended; their transactions roll back. Calling it
// again does nothing.
func (s *Server) Stop() {
	s.stop()
	<-s.done
}

// supervise owns the server process for as long as the Server lives.
//
// The kernel sends the parent-death signal when the thread that started the
// child ends, not the process, hence a thread of its own. It is never unlocked:
// the thread ends with the goroutine, after the child.
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
		s.logger.Error("private PostgreSQL stopped by itself, starting it again", "error", err, "after", wait)
		if !sleep(ctx, wait) {
			return
		}
	}
}

// own waits until this process is the owner of the data directory. When there
// is another owner whose server is ready, it reports that and goes on waiting.
func (s *Server) own(ctx context.Context, onReady func()) (*os.File, error) {
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

// serve runs postgres once, from making the cluster (the first time) to the end
// of the process. The caller holds the lock.
func (s *Server) serve(ctx context.Context, onReady func()) error {
	began := time.Now()
	h, err := findHome(s.opts.DataDir)
	if errors.Is(err, os.ErrNotExist) {
		h, err = makeHome(s.opts.DataDir, s.logger)
	}
	if err != nil {
		return err
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
	return s.runPostgres(ctx, h, bin, func() {
		s.logger.Info("private PostgreSQL is ready", "home", h.dir, "programs", bin, "took", time.Since(began).Round(time.Millisecond))
		if s.home == (home{}) {
			s.home = h
		}
		onReady()
	})
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
