package agent_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/keypad"
	"github.com/yeolda/yeolda/protocol"
)

// hangingClock is a hardware clock whose bus hangs on demand.
type hangingClock struct {
	hangs  atomic.Bool
	reads  chan struct{} // receives a value when a read hangs
	repair chan struct{} // closed when the bus works again
}

func (*hangingClock) Uptime() (string, time.Duration) { return "boot", time.Since(start) }

func (c *hangingClock) HardwareClock() (int64, bool) {
	if c.hangs.Load() {
		select {
		case c.reads <- struct{}{}:
		default:
		}
		<-c.repair
	}
	return 0, false
}

var start = time.Now()

// silentKeypad is a keypad at which no key is pressed.
type silentKeypad struct{}

func (silentKeypad) Read(ctx context.Context, _ keypad.Enter) { <-ctx.Done() }
func (silentKeypad) Err() error                               { return nil }

// TestHangingClockDelaysNoPress presses while the bus of the hardware clock hangs. Heartbeats continue.
func TestHangingClockDelaysNoPress(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	clock := &hangingClock{reads: make(chan struct{}, 1), repair: make(chan struct{})}
	b.board.Keypads = []agent.Keypad{{Device: "room_1", Reader: silentKeypad{}}}
	b.config.PassDir, b.config.Clocks = t.TempDir(), clock
	b.online(t)
	t.Cleanup(func() { close(clock.repair) })
	clock.hangs.Store(true)
	beat := brokertest.Await[protocol.Heartbeat](b.broker)
	b.broker.SendTo(self, protocol.Beacon{Branch: "gangnam", BootID: beat.BootID, Nonce: beat.Nonce, Time: time.Now().UTC().Truncate(time.Millisecond)}.
		Sign(brokertest.Key, self.Username))
	<-clock.reads
	b.broker.Send("gangnam", grant(b.claim(b.newRequest(), "room_1"), time.Second, "room_1"))
	if r := brokertest.Await[protocol.Result](b.broker); r.Outcome != protocol.Opened {
		t.Errorf("got %+v, want opened", r)
	}
	brokertest.Await[protocol.Heartbeat](b.broker) // the service takes an agent without them for lost
}
