package door

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/agent/internal/boardtest"
	"github.com/yeolda/yeolda/protocol"
)

// A relay that cannot be driven was never driven: staff is told of it once, and nothing is released.
func TestDeadRelayIsToldAndNotReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBranch(t)
		b.lock.Break(boardtest.Faults{Dead: true})
		b.unlock(time.Second)
		b.wantResult(protocol.Failed)
		time.Sleep(5 * time.Second)
		b.wantEvents(protocol.EventRelayError)
		b.wantPulses()
	})
}
