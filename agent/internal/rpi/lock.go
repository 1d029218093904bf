package rpi

import (
	"log/slog"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/protocol"
)

// Locks requests the relays of all doors, and with that makes every one idle, before it looks at anything else. What
// cannot be had is logged, told to the cloud by the agent's self-test, and asked for again when it is needed.
func Locks(doors []config.Door, log *slog.Logger) []agent.Lock {
	locks := make([]agent.Lock, len(doors))
	for i, d := range doors {
		kind, _, _ := protocol.ParseDevice(d.Device) // the settings have been validated
		r := newRelay(d.Relay, Consumer+d.Device+" relay")
		if err := r.Out(gpio.Low); err != nil {
			log.Error("relay", "device", d.Device, "error", err)
		}
		locks[i] = agent.Lock{Device: d.Device, Kind: kind, Relay: r}
	}
	for i, d := range doors {
		observe := func(what string, settings *config.Line) gpio.PinIn {
			if settings == nil {
				return nil
			}
			in := newInput(*settings, Consumer+d.Device+" "+what)
			if err := in.In(gpio.PullNoChange, gpio.NoEdge); err != nil {
				log.Error(what, "device", d.Device, "error", err)
			}
			return in
		}
		locks[i].Sense, locks[i].Contact, locks[i].Exit = observe("sense", d.Sense), observe("contact", d.Contact), observe("exit", d.Exit)
	}
	return locks
}
