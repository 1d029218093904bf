package service

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// readyTimeout bounds the check of the database.
	readyTimeout = 2 * time.Second
	// brokerTimeout is the time a new replica waits for the broker before it becomes ready without it. Without agents a press
	// is answered with the PIN, which is worse than a press at another replica and better than none.
	brokerTimeout = 15 * time.Second
)

// readyz reports whether a load balancer should send requests to this replica, with the reasons. The later loss of a
// brokers changes nothing: they are lost for every replica, and reservations do not need it.
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
		note(false, "service", "stopping")
	}
	began := time.Now()
	if err := s.db.Doors.Ping(ctx); err != nil {
		s.log.WarnContext(ctx, "not ready: the database does not answer", "error", err)
		note(false, "database", "does not answer")
	} else {
		note(true, "database", "answers in "+time.Since(began).Round(time.Microsecond).String())
	}
	if !s.canary.ok() {
		note(false, "database", "takes no writes")
	}
	switch {
	case s.link.Connected():
		s.heard.Store(true)
		note(true, "broker", fmt.Sprintf("connected, %d agents", s.link.Stats().Sessions))
	case s.heard.Load():
		note(true, "broker", "connection lost")
	default:
		note(time.Since(s.began) > brokerTimeout, "broker", "not connected yet")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(page)) // the client may have closed the connection
}
