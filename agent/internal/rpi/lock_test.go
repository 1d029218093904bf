package rpi

import (
	"log/slog"
	"testing"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// TestMissingLines is a board without its hardware: nothing is driven, and everything says so.
func TestMissingLines(t *testing.T) {
	t.Parallel()
	nowhere := config.Line{Chip: "no such chip", Name: "no such line"}
	locks := Locks([]config.Door{{Device: "room_3", Relay: nowhere, Sense: &nowhere}}, slog.New(slog.DiscardHandler))
	if len(locks) != 1 || locks[0].Contact != nil || locks[0].Exit != nil {
		t.Fatalf("locks %+v", locks)
	}
	l := locks[0]
	if err := l.Relay.Out(gpio.High); err == nil {
		t.Error("a relay that is not there was driven")
	}
	if l.Relay.Read() || l.Sense.Read() {
		t.Error("a line that is not there reads as active")
	}
	if err := l.Sense.In(gpio.PullNoChange, gpio.NoEdge); err == nil {
		t.Error("an input that is not there was set up")
	}
	if err := l.Relay.In(gpio.PullUp, gpio.NoEdge); err == nil {
		t.Error("a relay can be made an input")
	}
}
