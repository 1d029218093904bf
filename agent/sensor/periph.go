package sensor

import (
	"fmt"
	"strings"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/devices/v3/aht20"
	"periph.io/x/devices/v3/bmxx80"
	"periph.io/x/devices/v3/hdc302x"
)

const aht20Address = 0x38

func openAHT20(bus i2c.Bus, address uint16) (driver, error) {
	if address != aht20Address {
		return nil, fmt.Errorf("the address of an AHT20 is always 0x%02x", aht20Address)
	}
	return aht20.NewI2C(bus, nil)
}

// bme280 configures the chip for each measurement. One whose power was away for a moment measures no humidity until it is configured again, and
// reports a constant instead, without an error.
type bme280 struct {
	bus     i2c.Bus
	address uint16
}

func openBME280(bus i2c.Bus, address uint16) (driver, error) { return bme280{bus, address}, nil }

// Sense implements driver.
func (c bme280) Sense(env *physic.Env) error {
	d, err := bmxx80.NewI2C(c.bus, c.address, &bmxx80.Opts{Temperature: bmxx80.O1x, Humidity: bmxx80.O1x})
	if err != nil {
		return err
	}
	if !strings.HasPrefix(d.String(), "BME280") {
		return ErrNoHumidity // the driver would report 0 %
	}
	return d.Sense(env)
}

// openHDC302x takes a second, because the chip measures once a second.
func openHDC302x(bus i2c.Bus, address uint16) (driver, error) {
	return hdc302x.NewI2C(bus, address, hdc302x.RateHertz)
}
