package doctor

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/rpi"
)

func (d *Doctor) lines(doors []config.Door) {
	chips, err := rpi.Chips()
	switch {
	case err != nil:
		d.fail("gpio", err.Error(), "the package's udev rule gives /dev/gpiochip* to the group gpio: run `udevadm trigger`, or restart; the agent's user must be in that group")
		return
	case len(chips) == 0 && len(doors) > 0:
		d.fail("gpio", "the kernel has no GPIO chip", "check that this is the Pi of the branch; its kernel must be 5.10 or newer")
		return
	}
	for _, c := range chips {
		d.ok("gpio", c)
	}
	d.access("gpio", "dev/gpiochip*")
	for _, door := range doors {
		for _, l := range []struct {
			what string
			line *config.Line
		}{{"relay", &door.Relay}, {"sense", door.Sense}, {"contact", door.Contact}, {"exit", door.Exit}} {
			if l.line != nil {
				d.line(door.Device+" "+l.what, *l.line)
			}
		}
	}
}

func (d *Doctor) line(name string, l config.Line) {
	info, err := rpi.Inspect(l)
	switch {
	case err != nil:
		d.fail("line", name+": "+err.Error(), "gpioinfo lists all chips and lines; a line without a usable name can be set by its offset")
	case info.Used && !strings.HasPrefix(info.Consumer, rpi.Consumer):
		d.fail("line", fmt.Sprintf("%s: %s is held by %q", name, info, info.Consumer), "stop that program, or remove its overlay from config.txt")
	case info.Used:
		d.ok("line", fmt.Sprintf("%s: %s, held by the agent", name, info))
	default:
		d.ok("line", fmt.Sprintf("%s: %s, free", name, info))
	}
}

// pinName matches the names of the lines on the pin header. Mainline device trees add a function, as in GPIO_GCLK, or use
// other names.
var pinName = regexp.MustCompile(`^GPIO(\d+)$`)

// mainlineNames are the names of the pins in mainline device trees that differ from GPIOn.
var mainlineNames = map[string]int{
	"SDA1": 2, "SCL1": 3, "GPIO_GCLK": 4, "SPI_CE1_N": 7, "SPI_CE0_N": 8, "SPI_MISO": 9, "SPI_MOSI": 10, "SPI_SCLK": 11,
	"TXD0": 14, "RXD0": 15, "TXD1": 14, "RXD1": 15,
}

// pin returns the number of a line on the pin header.
func pin(l config.Line) (int, bool) {
	if l.Offset != nil {
		return *l.Offset, l.Chip == "" || strings.HasPrefix(l.Chip, "pinctrl-")
	}
	if n, ok := mainlineNames[l.Name]; ok {
		return n, true
	}
	m := pinName.FindStringSubmatch(l.Name)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// lastPulledUp: at reset GPIO0 to 8 are pulled up and all other pins down, before any software runs.
const lastPulledUp = 8

// bootLevel finds relays that are energised from power-on until Linux runs.
func bootLevel(door config.Door) []finding {
	n, ok := pin(door.Relay)
	if up := n <= lastPulledUp; !ok || up == door.Relay.ActiveLow {
		return nil
	}
	level, better := "high", "GPIO9 to 27"
	if door.Relay.ActiveLow {
		level, better = "low", "GPIO4 to 8"
	}
	return []finding{{
		subject: "line", name: "boot level " + door.Device,
		text: fmt.Sprintf("%s relay: at power-on %s has the level that energises a relay that is active %s: the door may open while the Pi boots",
			door.Device, door.Relay, level),
		fix: "use " + better + ", or set the level with a gpio= line in config.txt",
	}}
}

// persistence reports whether the kernel releases an energised relay when the agent dies.
func persistence(root fs.FS) []finding {
	found, _ := fs.Glob(root, "sys/module/pinctrl_*/parameters/persist_gpio_outputs") // the pattern is valid
	var findings []finding
	for _, name := range found {
		value, err := fs.ReadFile(root, name)
		driver := strings.Split(name, "/")[2]
		f := finding{subject: "gpio", name: "strict_gpiod"}
		switch {
		case err != nil:
			f.text, f.fix = err.Error(), "run the doctor as root"
		case strings.TrimSpace(string(value)) == "Y":
			f.text = driver + " keeps outputs driven when the agent dies: a door could stay open until the agent restarts"
			f.fix = "add dtparam=strict_gpiod to config.txt and restart"
		default:
			f.text = driver + " releases outputs when the agent dies"
		}
		findings = append(findings, f)
	}
	return findings
}

// model returns the model name of the Pi.
func (d *Doctor) model() string {
	text, err := fs.ReadFile(d.Root, path.Join("proc", "device-tree", "model"))
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(text), "\x00\n")
}

// access reports devices that only root can use: the agent runs as a user in their groups.
func (d *Doctor) access(subject, pattern string) {
	names, _ := fs.Glob(d.Root, pattern) // the pattern is valid
	for _, name := range names {
		const group = 0o060
		if info, err := fs.Stat(d.Root, name); err == nil && info.Mode()&fs.ModeDevice != 0 && info.Mode().Perm()&group != group {
			d.fail(subject, fmt.Sprintf("/%s has mode %o: the agent cannot use it", name, info.Mode().Perm()),
				"the udev rule of the package sets group and mode: run `udevadm trigger` or restart")
		}
	}
}
