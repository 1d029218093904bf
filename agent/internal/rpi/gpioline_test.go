package rpi

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// fakeChip is a GPIO chip with one line that can be unplugged. As in the kernel, a request made before the chip disappeared
// fails with ENODEV from then on, also after the chip is back.
type fakeChip struct {
	present   bool
	requested int
	value     int
}

type fakeLine struct {
	chip *fakeChip
	lost bool
}

func (c *fakeChip) request() (heldLine, error) {
	if !c.present {
		return nil, syscall.ENOENT
	}
	c.requested++
	c.value = 0 // every request makes the line idle
	return &fakeLine{chip: c}, nil
}

func (l *fakeLine) check() error {
	l.lost = l.lost || !l.chip.present
	if l.lost {
		return syscall.ENODEV
	}
	return nil
}

func (l *fakeLine) SetValue(value int) error {
	if err := l.check(); err != nil {
		return err
	}
	l.chip.value = value
	return nil
}

func (l *fakeLine) Value() (int, error) { return l.chip.value, l.check() }
func (l *fakeLine) Close() error        { return nil }

// TestChipDisappears checks that a relay whose chip disappeared and returned works again, and is idle first.
func TestChipDisappears(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		chip := &fakeChip{present: true}
		r := newRelay(config.Line{Name: "A0"}, "test")
		r.line.request = chip.request
		if err := r.Out(gpio.High); err != nil || r.Read() != gpio.High {
			t.Fatalf("driven: %v, level %v", err, r.Read())
		}
		chip.present = false
		if r.Read() != gpio.Low {
			t.Error("a lost line reads as driven")
		}
		if err := r.Out(gpio.Low); err == nil {
			t.Error("got no error from a lost line")
		}
		chip.present, chip.value = true, 1
		time.Sleep(requestInterval)
		if err := r.Out(gpio.Low); err != nil || chip.value != 0 {
			t.Errorf("after the chip returned: %v, value %d", err, chip.value)
		}
		if err := r.Out(gpio.High); err != nil || r.Read() != gpio.High {
			t.Errorf("driven again: %v, level %v", err, r.Read())
		}
		if chip.requested != 2 {
			t.Errorf("the line was requested %d times, want 2", chip.requested)
		}
	})
}

// TestLostInputIsRequestedAgain checks the same for an observed line.
func TestLostInputIsRequestedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		chip := &fakeChip{present: true}
		in := newInput(config.Line{Name: "A1"}, "test")
		in.line.request = chip.request
		in.Read()
		chip.value = 1
		if in.Read() != gpio.High {
			t.Error("got Low, want High")
		}
		chip.present = false
		if in.Read() != gpio.Low || in.Fault() == nil {
			t.Error("a lost input reads High, or without a fault")
		}
		if err := in.In(gpio.PullNoChange, gpio.NoEdge); err == nil {
			t.Error("a lost input is available")
		}
		chip.present = true
		time.Sleep(requestInterval)
		if err := in.In(gpio.PullNoChange, gpio.NoEdge); err != nil {
			t.Error(err)
		}
		if in.Read(); in.Fault() != nil {
			t.Errorf("after the chip returned: got fault %v", in.Fault())
		}
	})
}
