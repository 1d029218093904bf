package pass

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// unset is a machine without the battery of its hardware clock, which counts from its first moment since the power came back: that of a
// Pi 5 from 1970, most chips on I²C from 2000.
type unset struct {
	first time.Time
	boot  string
	up    time.Duration
}

func (p *unset) Uptime() (string, time.Duration) { return p.boot, p.up }
func (p *unset) HardwareClock() (int64, bool)    { return p.first.Unix() + int64(p.up/time.Second), true }

// TestClockWithoutBattery cuts the power twice, while nothing but a beacon has shown the time. After three hours the clock shows nearly the
// same as at the beacon, so that the PIN of a guest who has left would open.
func TestClockWithoutBattery(t *testing.T) {
	t.Parallel()
	for _, year := range []int{1970, 2000} {
		t.Run(fmt.Sprint(year), func(t *testing.T) {
			testClockWithoutBattery(t, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		})
	}
}

func testClockWithoutBattery(t *testing.T, first time.Time) {
	disk, machine := memory{}, &unset{first, "first start", 20 * time.Second}
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

// hanging is a machine with a battery whose hardware clock takes long to be read at times.
type hanging struct {
	began time.Time
	boot  string
	up    time.Duration // since began, the time without power included
	takes time.Duration
	early bool // shows the time of the beginning of a reading, not of its end
}

func (p *hanging) Uptime() (string, time.Duration) { return p.boot, p.up }
func (p *hanging) HardwareClock() (int64, bool) {
	shown := p.began.Add(p.up)
	p.up += p.takes
	if !p.early {
		shown = p.began.Add(p.up)
	}
	return shown.Unix(), true
}

// TestHangingHardwareClock reads the hardware clock on a bus that hangs, before the power is cut or after it: the time stays within its
// bounds. A clock that shows a time too early opens a door to a guest who has left.
func TestHangingHardwareClock(t *testing.T) {
	t.Parallel()
	const long = 5 * time.Second
	for name, c := range map[string]struct {
		first, second time.Duration // how long a reading takes
		early         bool
	}{
		"at the beacon":              {long, 0, false},
		"at the beacon, early":       {long, 0, true},
		"after the power cut":        {0, long, false},
		"after the power cut, early": {0, long, true},
	} {
		t.Run(name, func(t *testing.T) {
			disk := memory{}
			machine := &hanging{began: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC), boot: "first start", takes: c.first, early: c.early}
			clock := NewClock(machine, disk, slog.New(slog.DiscardHandler))
			if err := clock.Beacon(protocol.Beacon{Nonce: clock.Heartbeat(), Time: machine.began.Add(machine.up)}); err != nil {
				t.Fatal(err)
			}
			clock.Check()
			machine.boot, machine.takes = "second start", c.second
			machine.up += 3 * time.Hour
			clock = NewClock(machine, disk, slog.New(slog.DiscardHandler))
			machine.takes = 0
			actual := machine.began.Add(machine.up)
			if now, ok := clock.Now(); !ok || now.Earliest.After(actual) || now.Latest.Before(actual) {
				t.Errorf("the clock shows %s to %s, %v; it is %s", now.Earliest, now.Latest, ok, actual)
			}
		})
	}
}
