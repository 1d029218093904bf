//go:build hw

package hwtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/warthog618/go-gpiosim"
)

// The lines of the machine. Their pulls set the idle level before any software runs, as on a Pi's header.
const (
	gpioHigh    = 17 // relay, energised High
	gpioLow     = 4  // relay, energised Low
	gpioSensed  = 27 // relay with a sense line
	gpioSense   = 22
	gpioContact = 23
	gpioExit    = 24
	gpioBusy    = 25 // relay that another program holds
	gpios       = 28
)

var chip *gpiosim.Chip

func TestMain(m *testing.M) {
	os.Exit(func() int {
		options := make([]gpiosim.NewBankOption, gpios)
		for i := range options {
			options[i] = gpiosim.WithNamedLine(i, fmt.Sprintf("GPIO%d", i))
		}
		sim, err := gpiosim.NewSim(gpiosim.WithName("hwtest"), gpiosim.WithBank(gpiosim.NewBank("pinctrl-sim", gpios, options...)))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer sim.Close()
		chip = &sim.Chips[0]
		if err := chip.Pullup(gpioLow); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// settings are those of the branch in the machine, with the broker's address.
const settings = `
broker = "mqtt://%s"

[[door]]
device = "front_1"
relay = { line = "GPIO17" }
contact = { line = "GPIO23", pull = "down" }
exit = { line = "GPIO24", pull = "up", active_low = true }

[[door]]
device = "front_2"
relay = { line = "GPIO4", active_low = true }

[[door]]
device = "room_1"
relay = { chip = "pinctrl-sim", line = "GPIO27" }
sense = { line = "GPIO22", pull = "down" }

[[door]]
device = "room_2"
relay = { line = "GPIO25" }

[[air_conditioner]]
name = "LG"
codes = "lg2"
transmitter = "rc-loopback"

[[air_conditioner]]
name = "Samsung"
codes = "samsung"
transmitter = "/dev/lirc0"

[[air_conditioner]]
name = "long"
codes = "/tmp/long.json"
transmitter = "rc-loopback"
`
