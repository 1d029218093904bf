package chip

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
)

// errNoAnswer is the error of Linux (EREMOTEIO) when no chip acknowledges its address or a chip rejects a read.
var errNoAnswer = errors.New("remote I/O error")

// Air is the input of a sensor: °C and percent of relative humidity.
type Air struct{ Celsius, Humidity float64 }

// device is a chip. tx is one transaction: it writes w, then reads len(r) bytes.
type device interface {
	tx(now time.Time, w, r []byte) error
	address() uint16
}

// Kinds returns the chips that can be simulated, as in agent/sensor.
func Kinds() []string { return []string{"aht20", "bme280", "sht3x", "sht4x"} }

// Bus is an I2C bus with one chip on it.
type Bus struct {
	name string
	// dead reports whether the chip is silent now.
	dead func() bool

	mu   sync.Mutex
	chip device
}

var _ i2c.Bus = (*Bus)(nil)

// NewBus returns a bus with one chip of the given kind. It calls air at each conversion, so air must be safe for
// concurrent use. While dead returns true the chip does not acknowledge its address.
func NewBus(name, kind string, air func() Air, dead func() bool) (*Bus, error) {
	b := &Bus{name: name, dead: dead}
	switch kind {
	case "aht20":
		b.chip = &aht20{air: air}
	case "bme280":
		b.chip = newBME280(air)
	case "sht3x":
		b.chip = &sht3x{air: air}
	case "sht4x":
		b.chip = &sht4x{air: air}
	default:
		return nil, fmt.Errorf("chip: no simulated sensor of kind %q (there are %v)", kind, Kinds())
	}
	return b, nil
}

// Address returns the chip's address on the bus.
func (b *Bus) Address() uint16 { return b.chip.address() }

// String implements i2c.Bus.
func (b *Bus) String() string { return b.name }

// SetSpeed implements i2c.Bus; the chips work at any speed.
func (b *Bus) SetSpeed(physic.Frequency) error { return nil }

// Tx implements i2c.Bus.
func (b *Bus) Tx(addr uint16, w, r []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if addr != b.chip.address() || b.dead() {
		return fmt.Errorf("%s: address %#x: %w", b.name, addr, errNoAnswer)
	}
	if err := b.chip.tx(time.Now(), w, r); err != nil {
		return fmt.Errorf("%s: address %#x: %w", b.name, addr, err)
	}
	return nil
}
