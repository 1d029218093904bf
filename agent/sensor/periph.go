package sensor

import (
	"fmt"
	"strings"

	"periph.io/x/conn/v3/i2c"
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

func openBME280(bus i2c.Bus, address uint16) (driver, error) {
	d, err := bmxx80.NewI2C(bus, address, &bmxx80.Opts{Temperature: bmxx80.O1x, Humidity: bmxx80.O1x})
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(d.String(), "BME280") {
		return nil, ErrNoHumidity // the driver would report 0 %
	}
	return d, nil
}

// openHDC302x takes a second, because the chip measures once a second.
func openHDC302x(bus i2c.Bus, address uint16) (driver, error) {
	return hdc302x.NewI2C(bus, address, hdc302x.RateHertz)
}
