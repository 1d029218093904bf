package broker

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mochi-mqtt/server/v2/packets"
)

// agentLine records each write of an outbox, and can block writes.
type agentLine struct {
	writes [][]byte
	open   chan struct{} // nil: writes do not block
}

func (l *agentLine) write(p []byte) {
	if l.open != nil {
		<-l.open
	}
	l.writes = append(l.writes, bytes.Clone(p))
}

func (l *agentLine) wrote(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if len(l.writes) != len(want) {
		t.Fatalf("%d writes, want %d: %q", len(l.writes), len(want), l.writes)
	}
	for i, w := range want {
		if string(l.writes[i]) != w {
			t.Errorf("write %d is %q, want %q", i, l.writes[i], w)
		}
	}
}

// withOutbox runs a test in a synctest bubble.
func withOutbox(t *testing.T, test func(*testing.T, *outbox, *agentLine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var line agentLine
		test(t, &outbox{write: line.write}, &line)
	})
}

const (
	ackOf7   = "\x40\x02\x00\x07"
	refusal8 = "\x40\x03\x00\x08\x87"
)

// Acknowledgements are sent in order [MQTT-4.6.0-2].
func TestAcknowledgementsAreSentInOrder(t *testing.T) {
	t.Parallel()
	withOutbox(t, func(t *testing.T, o *outbox, line *agentLine) {
		_ = o.acknowledge(7, packets.CodeSuccess)
		_ = o.acknowledge(8, packets.ErrNotAuthorized)
		line.wrote(t, ackOf7, refusal8)
	})
}

// Messages that are queued during a write are sent with the next write, in order, up to a limit.
func TestOutboxOfAnAgentThatDoesNotRead(t *testing.T) {
	t.Parallel()
	withOutbox(t, func(t *testing.T, o *outbox, line *agentLine) {
		line.open = make(chan struct{})
		o.send([]byte("ask"))
		synctest.Wait()
		for i := range messagesWaiting {
			if !o.send([]byte{'a' + byte(i%26)}) {
				t.Fatalf("message %d found no place", i)
			}
		}
		if o.send([]byte("more")) {
			t.Error("one more found a place")
		}
		for range acksWaiting {
			if err := o.acknowledge(7, packets.CodeSuccess); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.acknowledge(7, packets.CodeSuccess); !errors.Is(err, packets.ErrReceiveMaximum) {
			t.Errorf("one more acknowledgement: %v", err)
		}
		close(line.open)
		synctest.Wait()
		if len(line.writes) != 2 || !bytes.HasPrefix(line.writes[1], []byte("abc")) ||
			len(line.writes[1]) != messagesWaiting+acksWaiting*len(ackOf7) {
			t.Errorf("%d writes: %q", len(line.writes), line.writes)
		}
		if !o.send([]byte("again")) {
			t.Error("no place after everything was written")
		}
		synctest.Wait()
	})
}
