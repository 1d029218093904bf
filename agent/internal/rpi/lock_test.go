package rpi

import (
	"testing"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// TestMissingLines checks a board without hardware: nothing can be driven, and every use returns an error.
func TestMissingLines(t *testing.T) {
	t.Parallel()
	nowhere := config.Line{Chip: "no such chip", Name: "no such line"}
	locks := Locks([]config.Door{{Device: "room_3", Relay: nowhere, Sense: &nowhere}})
	if len(locks) != 1 || locks[0].Contact != nil || locks[0].Exit != nil {
		t.Fatalf("got locks %+v", locks)
	}
	l := locks[0]
	if err := l.Relay.Out(gpio.High); err == nil {
		t.Error("a missing relay was driven")
	}
	if l.Relay.Read() || l.Sense.Read() {
		t.Error("a missing line reads as active")
	}
	if err := l.Sense.In(gpio.PullNoChange, gpio.NoEdge); err == nil {
		t.Error("a missing input was set up")
	}
	if err := l.Relay.In(gpio.PullUp, gpio.NoEdge); err == nil {
		t.Error("a relay was turned into an input")
	}
}
