// Package sensor reads the thermo-hygrometers that are sold for branches, over any I²C bus of periph's: the chips for
// which periph has a driver through that driver, Sensirion's by their data sheets.
package sensor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
)

// Reading is one measurement.
type Reading struct {
	Celsius          float64
	RelativeHumidity float64 // percent
}

// Reader measures. Read makes no bus transaction after its context is done, but one that is under way may hang as long
// as the bus does.
type Reader interface {
	Read(ctx context.Context) (Reading, error)
}

// ErrNoHumidity is of a chip that answers at the right address and measures temperature only, like the BMP280 that is
// often sold as a BME280.
var ErrNoHumidity = errors.New("the chip does not measure humidity")

// driver is a chip that has been set up.
type driver interface {
	Sense(*physic.Env) error
}

// model is a kind of chip.
type model struct {
	address uint16 // the usual one
	open    func(bus i2c.Bus, address uint16) (driver, error)
}

var models = map[string]model{
	"aht20":   {aht20Address, openAHT20},
	"bme280":  {0x76, openBME280},
	"hdc302x": {0x44, openHDC302x},
	"scd4x":   {scd4xAddress, openSCD4x},
	"sht3x":   {0x44, openSHT3x},
	"sht4x":   {0x44, openSHT4x},
}

// Kinds are the kinds that Open knows.
func Kinds() []string { return slices.Sorted(maps.Keys(models)) }

// Open makes a reader of a chip. Address 0 is the usual one of its kind. The chip is not touched before it is read: one
// that is not there yet, or was away for a while, is set up when it answers.
func Open(kind string, bus i2c.Bus, address uint16) (Reader, error) {
	m, known := models[kind]
	if !known {
		return nil, fmt.Errorf("sensor kind %q is none of %v", kind, Kinds())
	}
	if address == 0 {
		address = m.address
	}
	return &chip{kind: kind, bus: &contextBus{Bus: bus}, address: address, open: m.open}, nil
}

type chip struct {
	kind    string
	bus     *contextBus
	address uint16
	open    func(i2c.Bus, uint16) (driver, error)

	mu     sync.Mutex
	driver driver // nil: not set up, or in doubt
}

// Read implements Reader.
func (c *chip) Read(ctx context.Context) (Reading, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bus.ctx = ctx
	reading, err := c.sense()
	if err != nil {
		c.driver = nil
		if ctx.Err() != nil {
			err = ctx.Err() // drivers do not wrap it
		}
		return Reading{}, fmt.Errorf("%s at 0x%02x: %w", c.kind, c.address, err)
	}
	return reading, nil
}

func (c *chip) sense() (Reading, error) {
	if c.driver == nil {
		d, err := c.open(c.bus, c.address)
		if err != nil {
			return Reading{}, err
		}
		c.driver = d
	}
	var env physic.Env
	if err := c.driver.Sense(&env); err != nil {
		return Reading{}, err
	}
	return Reading{
		Celsius:          env.Temperature.Celsius(),
		RelativeHumidity: min(max(float64(env.Humidity)/float64(physic.PercentRH), 0), 100), // raw values reach beyond, by the data sheets
	}, nil
}

// contextBus ends the patience of drivers that know no context, periph's BME280 for one, which asks a chip that says it
// is busy again and again for ever.
type contextBus struct {
	i2c.Bus
	ctx context.Context // of the reading under way
}

// Tx implements i2c.Bus.
func (b *contextBus) Tx(address uint16, w, r []byte) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	return b.Bus.Tx(address, w, r)
}
