// Package sensor reads common thermo-hygrometers on an I²C bus of periph: with periph's drivers where they exist, and
// Sensirion's chips according to their data sheets.
package sensor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
)

// Reading is one measurement.
type Reading struct {
	Celsius          float64
	RelativeHumidity float64 // percent
}

// Reader reads a sensor. Read starts no bus transfer after ctx is done, but waits for a transfer in progress.
type Reader interface {
	Read(ctx context.Context) (Reading, error)
}

// ErrNoHumidity is returned for a chip that measures only the temperature, such as a BMP280, which is often sold as a BME280.
var ErrNoHumidity = errors.New("the chip does not measure humidity")

// driver is an initialised chip.
type driver interface {
	Sense(*physic.Env) error
}

// model is a kind of chip.
type model struct {
	address uint16 // the default
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

// Kinds returns the kinds of chips that Open supports.
func Kinds() []string { return slices.Sorted(maps.Keys(models)) }

// Open returns a reader of a chip. Address 0 selects the default of the kind. The chip is initialised on the first reading, and
// again after a failed one, so it may be connected later.
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
	driver driver // nil: not initialised, or its last reading failed
}

// A reading is repeated after a transfer error: long wires corrupt single bytes.
const (
	attempts   = 3
	retryDelay = 50 * time.Millisecond
)

// Read implements Reader.
func (c *chip) Read(ctx context.Context) (Reading, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bus.ctx = ctx
	var err error
	for attempt := range attempts {
		if attempt > 0 {
			time.Sleep(retryDelay)
		}
		var reading Reading
		if reading, err = c.sense(); err == nil {
			return reading, nil
		}
		c.driver = nil
		if ctx.Err() != nil {
			err = ctx.Err() // drivers do not wrap it
			break
		}
	}
	return Reading{}, fmt.Errorf("%s at 0x%02x: %w", c.kind, c.address, err)
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
		RelativeHumidity: percent(float64(env.Humidity) / float64(physic.PercentRH)),
	}, nil
}

// percent limits a humidity: raw values may exceed the range, by the data sheets.
func percent(humidity float64) float64 { return min(max(humidity, 0), 100) }

// contextBus cancels drivers that do not support contexts, such as periph's BME280, which polls a busy chip indefinitely.
type contextBus struct {
	i2c.Bus
	ctx context.Context // of the current reading
}

// Tx implements i2c.Bus.
func (b *contextBus) Tx(address uint16, w, r []byte) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	return b.Bus.Tx(address, w, r)
}
