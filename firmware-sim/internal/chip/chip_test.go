package chip_test

import (
	"math"
	"testing"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/devices/v3/aht20"
	"periph.io/x/devices/v3/bmxx80"

	"github.com/yeolda/yeolda/agent/sensor"
	"github.com/yeolda/yeolda/firmware-sim/internal/chip"
)

// air is a summer day indoors.
var air = chip.Air{Celsius: 23.47, Humidity: 46.2}

func newBus(t *testing.T, kind string) *chip.Bus {
	t.Helper()
	bus, err := chip.NewBus("sim", kind, func() chip.Air { return air }, func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return bus
}

// TestPeriphDriversReadTheAir runs the drivers that the agent uses.
func TestPeriphDriversReadTheAir(t *testing.T) {
	t.Parallel()
	type senser interface{ Sense(*physic.Env) error }
	tests := map[string]func(*chip.Bus) (senser, error){
		"aht20": func(b *chip.Bus) (senser, error) { return aht20.NewI2C(b, nil) },
		"bme280": func(b *chip.Bus) (senser, error) {
			return bmxx80.NewI2C(b, b.Address(), &bmxx80.Opts{Temperature: bmxx80.O1x, Humidity: bmxx80.O1x})
		},
	}
	for kind, open := range tests {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dev, err := open(newBus(t, kind))
			if err != nil {
				t.Fatal(err)
			}
			var env physic.Env
			if err := dev.Sense(&env); err != nil {
				t.Fatal(err)
			}
			if got := env.Temperature.Celsius(); math.Abs(got-air.Celsius) > 0.02 {
				t.Errorf("temperature = %.3f °C, want %.2f", got, air.Celsius)
			}
			if got := float64(env.Humidity) / float64(physic.PercentRH); math.Abs(got-air.Humidity) > 0.1 {
				t.Errorf("humidity = %.3f %%, want %.2f", got, air.Humidity)
			}
		})
	}
}

// replaceable is a bus whose chip can lose its power.
type replaceable struct{ *chip.Bus }

// TestChipThatLostPower reads each chip before and after its power was away for a moment between two readings, as with a loose plug. No
// reading fails meanwhile, and the chip has lost its configuration.
func TestChipThatLostPower(t *testing.T) {
	t.Parallel()
	for _, kind := range chip.Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			bus := &replaceable{newBus(t, kind)}
			reader, err := sensor.Open(kind, bus, bus.Address())
			if err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"before", "after"} {
				got, err := reader.Read(t.Context())
				if err != nil || math.Abs(got.Celsius-air.Celsius) > 0.02 || math.Abs(got.RelativeHumidity-air.Humidity) > 0.1 {
					t.Errorf("%s the loss: got %+v, %v, want %+v", when, got, err, air)
				}
				bus.Bus = newBus(t, kind)
			}
		})
	}
}

func TestDeadChipDoesNotAcknowledge(t *testing.T) {
	t.Parallel()
	bus, err := chip.NewBus("sim", "aht20", func() chip.Air { return air }, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aht20.NewI2C(bus, nil); err == nil {
		t.Error("a dead chip answered")
	}
}

func TestReadBeforeTheConversionIsRefused(t *testing.T) {
	t.Parallel()
	for kind, measure := range map[string][]byte{"sht4x": {0xFD}, "sht3x": {0x24, 0x00}} {
		bus := newBus(t, kind)
		if err := bus.Tx(bus.Address(), measure, nil); err != nil {
			t.Fatal(err)
		}
		if err := bus.Tx(bus.Address(), nil, make([]byte, 6)); err == nil {
			t.Errorf("%s answered before its conversion was done", kind)
		}
	}
}

func TestUnknownKind(t *testing.T) {
	t.Parallel()
	if _, err := chip.NewBus("sim", "dht11", nil, nil); err == nil {
		t.Error("a DHT11 is not on I2C")
	}
}
