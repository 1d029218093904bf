package rpi

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"syscall"
	"time"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/host/v3/sysfs"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/sensor"
)

// KindHwmon is the kind of a sensor that the kernel reads.
const KindHwmon = "hwmon"

// Sensors creates the readers of the sensors in the settings; sys is the root of sysfs. Sensors on one bus share it. A bus is
// opened on the first reading, so a missing bus affects only its sensors. The error names the omitted sensors.
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

// wiring holds the buses and multiplexers that sensors share.
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
		b = newBus(s.Bus)
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

// transferTimeout limits a transfer. The kernel's own limit is one second, but a driver may hang.
const transferTimeout = 2 * time.Second

// bus is an I²C bus of the kernel. It is opened on first use and again after an error of the bus itself, so the module
// i2c-dev may be loaded later. If a transfer hangs, it is abandoned, and later transfers use a new file.
type bus struct {
	name string
	open func() (i2c.BusCloser, error)

	mu     sync.Mutex
	opened i2c.BusCloser
}

func newBus(name string) *bus {
	return &bus{name: name, open: func() (i2c.BusCloser, error) {
		number, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("bus %q is not a number such as 1 for /dev/i2c-1", name)
		}
		return sysfs.NewI2C(number)
	}}
}

func (b *bus) String() string { return "i2c-" + b.name }

// Tx implements i2c.Bus.
func (b *bus) Tx(address uint16, w, r []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened == nil {
		opened, err := b.open()
		if err != nil {
			return fmt.Errorf("I²C bus %s is missing or not accessible: %w", b.name, err)
		}
		b.opened = opened
	}
	opened, answer := b.opened, make([]byte, len(r)) // a transfer that was abandoned may still write to its buffer
	done := make(chan error, 1)
	go func() { done <- opened.Tx(address, w, answer) }()
	select {
	case err := <-done:
		copy(r, answer)
		if err != nil && !notAcknowledged(err) {
			b.opened = nil
			_ = opened.Close() // the next transfer opens the bus again
		}
		return err
	case <-time.After(transferTimeout):
		b.opened = nil
		go func() { <-done; _ = opened.Close() }() //nolint:errcheck // closing it earlier would hang too; its error came too late
		return fmt.Errorf("I²C bus %s hangs; if this lasts, a chip blocks the bus and must be powered off", b.name)
	}
}

// notAcknowledged reports whether no chip answered at the address, which is not an error of the bus.
func notAcknowledged(err error) bool {
	return errors.Is(err, syscall.EREMOTEIO) || errors.Is(err, syscall.ENXIO)
}

// SetSpeed implements i2c.Bus. The kernel configures the speed (dtparam=i2c_arm_baudrate).
func (b *bus) SetSpeed(physic.Frequency) error { return nil }
