package service

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// readyTimeout bounds the question whether the service can work.
	readyTimeout = 2 * time.Second
	// brokerPatience is how long a new replica waits to hear the agents before it takes requests all the same: without
	// them a door is answered with its PIN, which is worse than another replica and better than none.
	brokerPatience = 15 * time.Second
)

// readyz says whether a load balancer should send requests here, and why. A broker that goes away later changes
// nothing: it is away for every replica, and reservations do not need it.
func (s *Service) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	status, page := http.StatusOK, ""
	note := func(ok bool, subject, text string) {
		if !ok {
			status = http.StatusServiceUnavailable
		}
		page += fmt.Sprintf("%-9s %s\n", subject, text)
	}
	if s.leaving.Load() {
		note(false, "service", "told to stop")
	}
	began := time.Now()
	if err := s.db.Pool.Ping(ctx); err != nil {
		s.log.WarnContext(ctx, "not ready: the database does not answer", "error", err)
		note(false, "database", "does not answer")
	} else {
		note(true, "database", "answers in "+time.Since(began).Round(time.Microsecond).String())
	}
	switch {
	case s.link.Connected():
		s.heard.Store(true)
		note(true, "broker", fmt.Sprintf("connected, %d agents", s.link.Stats().Sessions))
	case s.heard.Load():
		note(true, "broker", "connection lost")
	default:
		note(time.Since(s.began) > brokerPatience, "broker", "not connected yet")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(page)) // whoever asked may be gone
}
