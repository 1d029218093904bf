package rpi

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/i2c/i2creg"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/host/v3"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/sensor"
)

// KindHwmon is the kind of sensors that the kernel reads.
const KindHwmon = "hwmon"

// Sensors makes the readers of the sensors in the settings; sys is the root of sysfs. Sensors of one bus share it. No bus is
// opened before it is read, so that one that is missing costs its sensors and not the doors. The error names the sensors that are left out.
func Sensors(settings []config.Sensor, sys fs.FS) ([]agent.Sensor, error) {
	w := wiring{buses: make(map[string]*bus), muxes: make(map[string]*sensor.Mux)}
	var sensors []agent.Sensor
	var failed error
	for _, s := range settings {
		reader, err := w.reader(s, sys)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("sensor %q: %w", s.Location, err))
			continue
		}
		sensors = append(sensors, agent.Sensor{Location: s.Location, Reader: reader})
	}
	return sensors, failed
}

// wiring is what sensors share.
type wiring struct {
	buses map[string]*bus
	muxes map[string]*sensor.Mux
}

func (w wiring) reader(s config.Sensor, sys fs.FS) (sensor.Reader, error) {
	if s.Kind == KindHwmon {
		return sensor.OpenHwmon(sys, s.Hwmon), nil
	}
	b, err := w.bus(s)
	if err != nil {
		return nil, err
	}
	return sensor.Open(s.Kind, b, s.Address)
}

func (w wiring) bus(s config.Sensor) (i2c.Bus, error) {
	b := w.buses[s.Bus]
	if b == nil {
		b = &bus{name: s.Bus}
		w.buses[s.Bus] = b
	}
	if s.Mux == 0 {
		return b, nil
	}
	key := fmt.Sprintf("%s 0x%02x", s.Bus, s.Mux)
	if w.muxes[key] == nil {
		m, err := sensor.NewMux(b, s.Mux)
		if err != nil {
			return nil, err
		}
		w.muxes[key] = m
	}
	return w.muxes[key].Port(s.MuxPort)
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
			return fmt.Errorf("I²C bus %s is not there, or is not for this user: %w", b.name, err)
		}
		b.open = opened
	}
	return b.open.Tx(address, w, r)
}

// SetSpeed implements i2c.Bus. The kernel sets the speed (dtparam=i2c_arm_baudrate).
func (b *bus) SetSpeed(physic.Frequency) error { return nil }
