package console

import (
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/limit"
)

// maxSockets is the number of live connections of one session: two for each open tab, of its screen and of the list of alerts.
const maxSockets = 40

// sockets counts the live connections of each session. The zero value is ready to use.
type sockets struct {
	mu   sync.Mutex
	open map[string]int // by session id
}

// add counts a connection of a session until release is called. It returns a [limit.ExceededError] for one too many.
func (s *sockets) add(session string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[session] >= maxSockets {
		return nil, &limit.ExceededError{Rule: "live-sockets", RetryAfter: pingInterval.Truncate(time.Second)}
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[session]++
	return func() { s.remove(session) }, nil
}

func (s *sockets) remove(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[session]--; s.open[session] == 0 {
		delete(s.open, session)
	}
}
