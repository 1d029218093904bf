package protocol

import (
	"testing"
	"time"
)

// TestFirstMessagesAreSpread checks that agents that connect at once do not send their first messages at once.
func TestFirstMessagesAreSpread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first    func() time.Duration
		min, max time.Duration
	}{
		"heartbeat": {FirstHeartbeat, 0, HeartbeatInterval},
		"status":    {FirstStatusAgain, StatusInterval / 2, StatusInterval},
	} {
		shortest, longest := c.max, c.min
		for range 1000 {
			d := c.first()
			shortest, longest = min(shortest, d), max(longest, d)
		}
		if quarter := (c.max - c.min) / 4; shortest < c.min || longest >= c.max || shortest > c.min+quarter || longest < c.max-quarter {
			t.Errorf("%s: got %v to %v, want about %v to %v", name, shortest, longest, c.min, c.max)
		}
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]time.Duration{
		0: 0, time.Second - time.Nanosecond: 0, time.Second: time.Second, 90*time.Second + 1500*time.Microsecond: 90*time.Second + time.Millisecond,
		time.Hour: time.Hour, 2 * time.Hour: time.Hour, -time.Second: 0,
	} {
		if got := (Telemetry{AgeMs: 7}).Aged(age).Age(); got != want {
			t.Errorf("%v: got %v, want %v", age, got, want)
		}
	}
}
