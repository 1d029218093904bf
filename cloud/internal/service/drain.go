package service

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// A replica stops in three steps, so that no request meets a closed listener:
//
//	SIGTERM ──▶ not ready, still serving ──drain time──▶ no new connections, requests finish ──▶ background work ends
//
// A load balancer needs the drain time to notice the first step. A later connection is refused before any work was done,
// so the client may repeat its request at another replica.

// leave returns a context that ends when the drain time has passed after the end of ctx.
func (s *Service) leave(ctx context.Context) context.Context {
	closing, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		s.leaving.Store(true)
		s.log.Info("stopping", "drain", s.settings.HTTP.DrainTime)
		time.AfterFunc(s.settings.HTTP.DrainTime, stop)
	})
	return closing
}

// closeConnections makes clients of a stopping service open their next connection elsewhere.
func (s *Service) closeConnections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// serveHTTP serves until ctx is done and then waits for requests in progress.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		stopped <- server.Shutdown(drain)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
