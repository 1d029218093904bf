// Package rpi is the board of a Raspberry Pi, and of any Linux machine with the same kernel interfaces.
package rpi

import (
	"fmt"
	"sync"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/i2c/i2creg"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/host/v3"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/sensor"
)

// Sensors makes the readers of the sensors in the settings. Sensors of one bus share it. No bus is opened before it is
// read, so that one that is missing costs its sensors and not the doors.
func Sensors(settings []config.Sensor) ([]agent.Sensor, error) {
	buses := make(map[string]*bus)
	var sensors []agent.Sensor
	for _, s := range settings {
		b := buses[s.Bus]
		if b == nil {
			b = &bus{name: s.Bus}
			buses[s.Bus] = b
		}
		reader, err := sensor.Open(s.Kind, b, s.Address)
		if err != nil {
			return nil, fmt.Errorf("sensor %q: %w", s.Location, err)
		}
		sensors = append(sensors, agent.Sensor{Location: s.Location, Reader: reader})
	}
	return sensors, nil
}

// bus is one of the kernel's I²C buses, opened when it is first needed. One that the kernel does not have then is
// missing until the agent starts again: periph looks once.
type bus struct {
	name string
	mu   sync.Mutex
	open i2c.BusCloser
}

func (b *bus) String() string { return "i2c-" + b.name }

// Tx implements i2c.Bus.
func (b *bus) Tx(address uint16, w, r []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		if _, err := host.Init(); err != nil {
			return fmt.Errorf("look for I²C buses: %w", err)
		}
		opened, err := i2creg.Open(b.name)
		if err != nil {
			return err
		}
		b.open = opened
	}
	return b.open.Tx(address, w, r)
}

// SetSpeed implements i2c.Bus. The kernel sets the speed (dtparam=i2c_arm_baudrate).
func (b *bus) SetSpeed(physic.Frequency) error { return nil }
