package fault_test

import (
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault fault.Fault
		ok    bool
	}{
		{fault.Fault{Kind: fault.Stuck}, true},
		{fault.Fault{Kind: fault.Stuck, Device: "front_1"}, true},
		{fault.Fault{Kind: fault.Slow, DelayMs: 200}, true},
		{fault.Fault{Kind: fault.NetworkLag, DelayMs: 60_000}, true},
		{fault.Fault{Kind: fault.Reorder, DelayMs: 400}, true},
		{fault.Fault{Kind: fault.Loss, Percent: 100}, true},
		{fault.Fault{Kind: fault.Clock, OffsetMs: -3_600_000}, true},
		{fault.Fault{Kind: fault.Clock, OffsetMs: fault.MaxOffset.Milliseconds()}, true},
		{fault.Fault{Kind: fault.IRLoss, Device: "main", Percent: 20}, true},
		{fault.Fault{Kind: fault.IRLoss, Device: "main"}, false},
		{fault.Fault{Kind: fault.IRIgnore, Device: "main"}, true},
		{fault.Fault{Kind: fault.WindowOpen, Device: "1", Percent: 20}, false},
		{fault.Fault{Kind: fault.Reorder}, false},
		{fault.Fault{Kind: fault.Loss}, false},
		{fault.Fault{Kind: fault.Loss, Percent: 101}, false},
		{fault.Fault{Kind: fault.Duplicate, Percent: 5}, false},
		{fault.Fault{Kind: fault.Clock}, false},
		{fault.Fault{Kind: fault.Clock, OffsetMs: fault.MaxOffset.Milliseconds() + 1}, false},
		{fault.Fault{Kind: fault.Clock, OffsetMs: -1 << 63}, false},
		{fault.Fault{Kind: fault.Stuck, OffsetMs: 5}, false},
		{fault.Fault{Kind: "broken"}, false},
		{fault.Fault{}, false},
		{fault.Fault{Kind: fault.Slow}, false},
		{fault.Fault{Kind: fault.Slow, DelayMs: -1}, false},
		{fault.Fault{Kind: fault.NetworkLag, DelayMs: 60_001}, false},
		{fault.Fault{Kind: fault.Stuck, DelayMs: 5}, false},
		{fault.Fault{Kind: fault.PowerOff, Device: "front_1"}, false},
	} {
		if err := tt.fault.Validate(); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.fault, err)
		}
	}
}

func TestListAt(t *testing.T) {
	t.Parallel()
	l := fault.List{}.
		With(fault.Fault{Kind: fault.Slow, DelayMs: 100}).
		With(fault.Fault{Kind: fault.Slow, Device: "room_1", DelayMs: 300}).
		With(fault.Fault{Kind: fault.Stuck, Device: "front"}).
		With(fault.Fault{Kind: fault.Slow, DelayMs: 200})
	if len(l) != 3 {
		t.Errorf("%d faults, want 3: a second of a kind and device takes the first one's place", len(l))
	}
	l = l.Without(fault.Slow, "")
	if f, ok := l.At(fault.Slow, "room_1"); !ok || f.DelayMs != 300 {
		t.Errorf("room_1 is slow by %+v, want 300 ms", f)
	}
	if _, ok := l.At(fault.Slow, "room_2"); ok {
		t.Error("room_2 is slow for room_1's fault")
	}
	for device, want := range map[string]bool{"front_1": true, "front_2": true, "room_1": false} {
		if _, ok := l.At(fault.Stuck, device); ok != want {
			t.Errorf("%s stuck: %v, want %v", device, ok, want)
		}
	}
}
