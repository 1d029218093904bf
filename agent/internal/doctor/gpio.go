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
		d.fail("gpio", err.Error(), "the agent's user must be in the group gpio, and the unit must not hide /dev/gpiochip*")
		return
	case len(chips) == 0 && len(doors) > 0:
		d.fail("gpio", "the kernel has no GPIO chip", "is this the Pi of the branch? Its kernel must be 5.10 or newer")
		return
	}
	for _, c := range chips {
		d.ok("gpio", c)
	}
	for _, door := range doors {
		for _, l := range []struct {
			what string
			line *config.Line
		}{{"relay", &door.Relay}, {"sense", door.Sense}, {"contact", door.Contact}, {"exit", door.Exit}} {
			if l.line != nil {
				d.line(door.Device+" "+l.what, *l.line)
			}
		}
		d.bootLevel(door)
	}
}

func (d *Doctor) line(name string, l config.Line) {
	info, err := rpi.Inspect(l)
	switch {
	case err != nil:
		d.fail("line", name+": "+err.Error(), "gpioinfo lists the names of all lines and chips")
	case info.Used && !strings.HasPrefix(info.Consumer, rpi.Consumer):
		d.fail("line", fmt.Sprintf("%s: %s is held by %q", name, info, info.Consumer), "stop that program, or take its overlay out of config.txt")
	case info.Used:
		d.ok("line", fmt.Sprintf("%s: %s, held by the agent", name, info))
	default:
		d.ok("line", fmt.Sprintf("%s: %s, free", name, info))
	}
}

var headerName = regexp.MustCompile(`^GPIO(\d+)$`)

// lastPulledUp: at reset, before any software, GPIO0 to 8 are pulled up and all others down.
const lastPulledUp = 8

// bootLevel warns of relays that are energised from power-on until Linux runs.
func (d *Doctor) bootLevel(door config.Door) {
	m := headerName.FindStringSubmatch(door.Relay.Name)
	if m == nil {
		return
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return
	}
	if up := n <= lastPulledUp; up == door.Relay.ActiveLow {
		return
	}
	level, better := "high", "GPIO9 to 27"
	if door.Relay.ActiveLow {
		level, better = "low", "GPIO4 to 8"
	}
	d.warn("line", fmt.Sprintf("%s relay: %s is pulled the wrong way at power-on for a relay that is active %s: the door may open while the Pi boots",
		door.Device, door.Relay.Name, level), "use "+better+", or pin the level with a gpio= line in config.txt")
}

// persistence: what becomes of an energised relay when the agent dies is the kernel's choice.
func (d *Doctor) persistence() {
	found, _ := fs.Glob(d.Root, "sys/module/pinctrl_*/parameters/persist_gpio_outputs") // the pattern is right
	for _, name := range found {
		value, err := fs.ReadFile(d.Root, name)
		driver := strings.Split(name, "/")[2]
		switch {
		case err != nil:
			d.warn("gpio", err.Error(), "run the doctor as root")
		case strings.TrimSpace(string(value)) == "Y":
			d.warn("gpio", driver+" leaves outputs as they are when the agent dies: a door could stay open until it is started again",
				"add dtparam=strict_gpiod to config.txt and restart")
		default:
			d.ok("gpio", driver+" releases outputs when the agent dies")
		}
	}
}

// model is what the Pi calls itself.
func (d *Doctor) model() string {
	text, err := fs.ReadFile(d.Root, path.Join("proc", "device-tree", "model"))
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(text), "\x00\n")
}
