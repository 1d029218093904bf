package sensor

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// hwmon is a sensor that a kernel driver reads (dtoverlay=i2c-sensor,...). It is looked up by name for each reading, because
// the number of hwmonN may change.
type hwmon struct {
	sys  fs.FS
	name string
}

// OpenHwmon returns a reader of the sensor with the kernel name name ("sht4x", "aht10"); sys is the root of sysfs.
func OpenHwmon(sys fs.FS, name string) Reader { return hwmon{sys, name} }

// Read implements Reader.
func (h hwmon) Read(context.Context) (Reading, error) {
	dir, err := h.find()
	if err != nil {
		return Reading{}, err
	}
	celsius, err := h.value(path.Join(dir, "temp1_input"))
	if err != nil {
		return Reading{}, fmt.Errorf("hwmon %s: %w", h.name, err)
	}
	humidity, err := h.value(path.Join(dir, "humidity1_input"))
	if err != nil {
		return Reading{}, fmt.Errorf("hwmon %s: %w", h.name, err)
	}
	return Reading{Celsius: celsius, RelativeHumidity: percent(humidity)}, nil
}

func (h hwmon) find() (string, error) {
	dirs, err := fs.Glob(h.sys, "class/hwmon/hwmon*")
	if err != nil {
		return "", err
	}
	found := ""
	for _, dir := range dirs {
		name, err := fs.ReadFile(h.sys, path.Join(dir, "name"))
		if err != nil || strings.TrimSpace(string(name)) != h.name {
			continue // it may have been unplugged
		}
		if found != "" {
			return "", fmt.Errorf("hwmon %s: several sensors have this name; use their address on the bus", h.name)
		}
		found = dir
	}
	if found == "" {
		return "", fmt.Errorf("hwmon %s: the kernel has no such sensor", h.name)
	}
	return found, nil
}

// value reads a value in thousandths.
func (h hwmon) value(name string) (float64, error) {
	text, err := fs.ReadFile(h.sys, name)
	if err != nil {
		return 0, err
	}
	thousandths, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return 0, err
	}
	return float64(thousandths) / 1000, nil
}
