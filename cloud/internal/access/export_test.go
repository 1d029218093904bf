package access

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// PressesByKey and PressesByStaff export the rate limits.
var (
	PressesByKey   = pressesByKey
	PressesByStaff = pressesByStaff
)

// PressSubject exports pressSubject.
var PressSubject = pressSubject

// PressTimeout exports pressTimeout.
const PressTimeout = pressTimeout

// Compared reports whether the database's clock is known.
func (s *Service) Compared() bool { return s.clock.Load() != nil }

// Awaited returns the ids of the announced presses, and whether their claims have arrived.
func (s *Service) Awaited() map[uuid.UUID]bool {
	s.announced.mu.Lock()
	defer s.announced.mu.Unlock()
	awaited := make(map[uuid.UUID]bool)
	for id, a := range s.announced.byID {
		awaited[id] = a.nonce != ""
	}
	return awaited
}

// KeepAnnouncements keeps the announced presses and their claims, also on a machine that is too slow for their limits.
func (s *Service) KeepAnnouncements() {
	s.announced.mu.Lock()
	defer s.announced.mu.Unlock()
	for _, a := range s.announced.byID {
		a.timer.Stop()
		a.claimed = time.Now().Add(time.Hour)
	}
}

// AgeClaims gives the claims that are kept for announced presses an age.
func (s *Service) AgeClaims(by time.Duration) {
	s.announced.mu.Lock()
	defer s.announced.mu.Unlock()
	for _, a := range s.announced.byID {
		a.claimed = time.Now().Add(-by)
	}
}

// AwaitPresses lets a service that was stopped accept announcements.
func (s *Service) AwaitPresses() {
	s.announced.mu.Lock()
	defer s.announced.mu.Unlock()
	s.announced.stopped = false
}

// NotPressed is the reason of the deny for a claim that no press used.
const NotPressed = notPressed

// Adopt exports adopt.
func (s *Service) Adopt(ctx context.Context, asked map[uuid.UUID]time.Time) { s.adopt(ctx, asked) }
