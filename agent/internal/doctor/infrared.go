package doctor

import (
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/lirc"
	"github.com/yeolda/yeolda/agent/internal/rpi"
)

func (d *Doctor) infrared(units []config.AirConditioner) {
	sys, err := fs.Sub(d.Root, "sys")
	if err != nil {
		d.fail("infrared", err.Error(), "mount /sys")
		return
	}
	devices, err := lirc.Devices(sys)
	if err != nil {
		d.fail("infrared", err.Error(), "mount /sys")
		return
	}
	for _, device := range devices {
		d.ok("infrared", fmt.Sprintf("%s: %s", device.Path, device.Driver))
	}
	for _, u := range units {
		t, err := lirc.Choose(devices, u.Transmitter)
		if err != nil {
			d.fail("infrared", fmt.Sprintf("%s: %v", u.Name, err), "dtoverlay=pwm-ir-tx,gpio_pin=12,func=4 in config.txt, and restart")
			continue
		}
		if err := unix.Access(t.Path, unix.W_OK); err != nil {
			d.fail("infrared", fmt.Sprintf("%s: %s: %v", u.Name, t.Path, err), "the agent's user must be in the group video")
		}
		if t.Driver == "pwm-ir-tx" && strings.Contains(d.model(), "Raspberry Pi 5") {
			d.warn("infrared", u.Name+": on a Pi 5 pwm-ir-tx works only on GPIO12 (header pin 32); on any other pin the driver reports success and the LED stays dark",
				"connect the LED to GPIO12")
		}
	}
	if _, err := rpi.AirConditioners(units, sys); err != nil {
		d.fail("infrared", err.Error(), "set codes to a built-in remote or a SmartIR file; `yeolda-agent ir record` creates one from a remote control")
	}
}
