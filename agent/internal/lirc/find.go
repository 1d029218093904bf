package lirc

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Transmitter is an infrared device of the kernel and its driver.
type Transmitter struct {
	Driver string // "pwm-ir-tx", "gpio-ir-tx", "rc-loopback"
	Path   string // "/dev/lirc0"; the number depends on the other devices
}

// drivers are the transmitter drivers of a Pi. Receivers are LIRC devices too.
var drivers = []string{"pwm-ir-tx", "gpio-ir-tx"}

func isTransmitter(driver string) bool { return slices.Contains(drivers, driver) }

// Devices lists all infrared devices, including receivers, below sys, the root of sysfs.
func Devices(sys fs.FS) ([]Transmitter, error) {
	remotes, err := fs.Glob(sys, "class/rc/rc*")
	if err != nil {
		return nil, err
	}
	var found []Transmitter
	for _, rc := range remotes {
		event, err := fs.ReadFile(sys, path.Join(rc, "uevent"))
		if err != nil {
			return nil, fmt.Errorf("infrared devices: %w", err)
		}
		t := Transmitter{Driver: variable(string(event), "DRV_NAME")}
		nodes, err := fs.Glob(sys, path.Join(rc, "lirc*"))
		if err != nil {
			return nil, err
		}
		if len(nodes) > 0 {
			t.Path = "/dev/" + path.Base(nodes[0])
			found = append(found, t)
		}
	}
	return found, nil
}

func variable(event, name string) string {
	for line := range strings.Lines(event) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	return ""
}

// Choose selects a transmitter by driver or device path. An empty name selects the only transmitter.
func Choose(devices []Transmitter, name string) (Transmitter, error) {
	named := func(t Transmitter) bool {
		if name == "" {
			return isTransmitter(t.Driver)
		}
		return t.Driver == name || t.Path == name
	}
	found := slices.DeleteFunc(slices.Clone(devices), func(t Transmitter) bool { return !named(t) })
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Transmitter{}, fmt.Errorf("%s and %s both match: name the device", found[0].Path, found[1].Path)
	case name == "":
		return Transmitter{}, errors.New("there is no infrared transmitter; is its overlay in config.txt?")
	default:
		return Transmitter{}, fmt.Errorf("there is no infrared transmitter %s; is its overlay in config.txt?", name)
	}
}
