package rpi

import (
	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/protocol"
)

// Locks requests the relays of all doors, which de-energises them, before all inputs. Unavailable lines are reported by the
// agent's self-tests and requested again later.
func Locks(doors []config.Door) []agent.Lock {
	locks := make([]agent.Lock, len(doors))
	for i, d := range doors {
		kind, _, _ := protocol.ParseDevice(d.Device) // validated with the settings
		r := newRelay(d.Relay, Consumer+d.Device+" relay")
		_ = r.Out(gpio.Low) // the agent repeats this and reports the error
		locks[i] = agent.Lock{Device: d.Device, Kind: kind, Pulse: d.Pulse(), Relay: r}
	}
	for i, d := range doors {
		observe := func(what string, settings *config.Line) gpio.PinIn {
			if settings == nil {
				return nil
			}
			return newInput(*settings, Consumer+d.Device+" "+what)
		}
		locks[i].Sense, locks[i].Contact, locks[i].Exit = observe("sense", d.Sense), observe("contact", d.Contact), observe("exit", d.Exit)
	}
	return locks
}
