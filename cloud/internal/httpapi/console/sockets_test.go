package console

import (
	"errors"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/limit"
)

func TestLiveSocketsAreBoundedPerSession(t *testing.T) {
	t.Parallel()
	var s sockets
	var release func()
	for range maxSockets {
		var err error
		if release, err = s.add("one"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.add("one"); !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("connection %d of a session: %v, want %v", maxSockets+1, err, limit.ErrExceeded)
	}
	if _, err := s.add("two"); err != nil {
		t.Errorf("connection of another session: %v", err)
	}
	release()
	if _, err := s.add("one"); err != nil {
		t.Errorf("connection after one was closed: %v", err)
	}
}
