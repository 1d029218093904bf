package link

import (
	"context"
	"testing"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// TestWaitingEventsHaveAnAge checks that telemetry says how long it has waited for a connection, by the monotonic clock.
func TestWaitingEventsHaveAnAge(t *testing.T) {
	t.Parallel()
	l := New(Config{})
	l.Send(protocol.Telemetry{Events: []protocol.Event{{Kind: protocol.EventDoorOpened, Device: "front_1"}}}, nil, 10*time.Minute)
	item, _ := l.outbox.telemetry.take(t.Context())
	for waited, want := range map[time.Duration]uint32{0: 0, 999 * time.Millisecond: 0, time.Second: 1000, 9 * time.Minute: 540_000, 2 * time.Hour: 3_600_000} {
		got, err := protocol.Decode[protocol.Telemetry](item.aged(item.queued.Add(waited)).payload)
		if err != nil || got.AgeMs != want || len(got.Events) != 1 {
			t.Errorf("after %v: got %+v, %v, want an age of %d ms", waited, got, err, want)
		}
	}
	l.Send(protocol.Claim{RequestID: "00000000-0000-4000-8000-000000000001", Nonce: protocol.NewNonce()}, nil, time.Minute)
	if claim := <-l.outbox.waiting; string(claim.aged(time.Now().Add(time.Minute)).payload) != string(claim.payload) {
		t.Error("a message of another kind was changed")
	}
}

// TestOfferedMessagesWait checks that an offered message is not taken without a connection, beside another one, or beside others that wait.
func TestOfferedMessagesWait(t *testing.T) {
	t.Parallel()
	l := New(Config{})
	offer := func() bool { return l.Offer(protocol.DiagnosticsLog{}, time.Minute) }
	if offer() {
		t.Error("taken without a connection")
	}
	l.connected.Store(true)
	if !offer() || offer() {
		t.Error("want one offered message at a time")
	}
	item, _ := l.outbox.take(t.Context())
	l.outbox.done(item, false) // it returns to the outbox
	if offer() {
		t.Error("taken beside an undelivered one")
	}
	item, _ = l.outbox.take(t.Context())
	l.outbox.done(item, true)
	for range senders - 1 {
		l.Send(protocol.Heartbeat{BootID: "b"}, nil, time.Minute)
	}
	if !offer() {
		t.Error("not taken although few messages wait")
	}
	for range 2 * outboxSize {
		l.Send(protocol.Heartbeat{BootID: "b"}, nil, time.Minute)
	}
	if l.outbox.offered.Load() != 0 || l.outbox.open.Load() != outboxSize || offer() {
		t.Error("a lost message counts, or one is taken by a full outbox")
	}
}

// TestFullSequence fills the telemetry while its first message is being sent: the oldest ones that wait are lost.
func TestFullSequence(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	put := func(device string, life time.Duration) {
		o.put(outboxItem{telemetry: &protocol.Telemetry{Events: []protocol.Event{{Device: device}}}, expires: time.Now().Add(life)})
	}
	next := func() string {
		p, ok := o.telemetry.take(t.Context())
		if !ok {
			return ""
		}
		return p.telemetry.Events[0].Device
	}
	put("sent", time.Minute)
	if got := next(); got != "sent" {
		t.Fatalf("got %q, want the first message", got)
	}
	for range 3 {
		put("lost", time.Minute)
	}
	put("expired", 0)
	for range outboxSize - 2 {
		put("kept", time.Minute)
	}
	if n := o.open.Load(); n != outboxSize {
		t.Errorf("%d messages are open, want %d", n, outboxSize)
	}
	o.telemetry.done(false)
	if got := next(); got != "sent" {
		t.Errorf("got %q, want the undelivered message again", got)
	}
	o.telemetry.done(true)
	if got := next(); got != "kept" {
		t.Errorf("got %q, want a message that was kept", got)
	}
	o.telemetry.done(true)
	if n := o.open.Load(); n != outboxSize-3 {
		t.Errorf("%d messages are open, want %d", n, outboxSize-3)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := o.telemetry.take(ctx); ok {
		t.Error("taken after the end")
	}
}
