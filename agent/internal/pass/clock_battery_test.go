package pass

import (
	"log/slog"
	"testing"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// pi5 is a Pi 5 without the battery of its hardware clock, which counts from 1970 since the power came back.
type pi5 struct {
	boot string
	up   time.Duration
}

func (p *pi5) Uptime() (string, time.Duration) { return p.boot, p.up }
func (p *pi5) HardwareClock() (int64, bool)    { return int64(p.up / time.Second), true }

// TestClockWithoutBattery cuts the power twice, while nothing but a beacon has shown the time. After three hours the clock shows nearly the
// same as at the beacon, so that the PIN of a guest who has left would open.
func TestClockWithoutBattery(t *testing.T) {
	t.Parallel()
	disk, machine := memory{}, &pi5{"first start", 20 * time.Second}
	clock := NewClock(machine, disk, slog.New(slog.DiscardHandler))
	if err := clock.Beacon(protocol.Beacon{Nonce: clock.Heartbeat(), Time: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	for ; machine.up < 5*time.Minute; machine.up += 2 * time.Second {
		clock.Check()
	}
	if _, ok := clock.Now(); !ok {
		t.Error("the time is not known after the beacon")
	}
	machine.boot, machine.up = "second start, three hours later", 30*time.Second
	if now, ok := NewClock(machine, disk, slog.New(slog.DiscardHandler)).Now(); ok {
		t.Errorf("the clock is trusted after the power cut, and shows %s", now.Earliest)
	}
}
