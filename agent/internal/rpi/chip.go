package rpi

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/warthog618/go-gpiocdev"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// headerChips is the common prefix of the labels of the chips behind the pin header: pinctrl-rp1, pinctrl-bcm2711,
// pinctrl-bcm2835.
const headerChips = "pinctrl-"

// chipFolder contains a link to the device of each chip.
const chipFolder = "/sys/bus/gpio/devices"

// headerLines is the number of lines on the pin header of a Pi.
const headerLines = 28

// place is the location of a line.
type place struct {
	chip   string // "gpiochip0"; differs between models and kernels
	label  string
	device string // "1-0020": the chip with address 0x20 on the I²C bus 1; empty if unknown
	offset int
}

// name returns a name that distinguishes the chip from others of its kind.
func (p place) name() string { return cmp.Or(p.device, p.chip) }

// device returns the name of a chip's device in folder. Two expanders of one kind may have one label.
func device(folder, chip string) string {
	target, err := os.Readlink(filepath.Join(folder, chip))
	if err != nil {
		return ""
	}
	return filepath.Base(filepath.Dir(target))
}

// onHeader reports whether the line is on the pin header, where the offset is the number of the GPIO.
func (p place) onHeader() bool {
	return strings.HasPrefix(p.label, headerChips) && p.offset < headerLines
}

// locate finds a line by its name or its offset, on the chips with the label or the device in the settings. Without either, the
// chip of the header takes precedence over expanders.
func locate(settings config.Line) (place, error) {
	var found []place
	for _, chip := range gpiocdev.Chips() {
		p, ok, err := find(chip, settings)
		if err != nil {
			return place{}, err
		}
		if ok && (settings.Chip == "" || p.label == settings.Chip || p.device == settings.Chip) {
			found = append(found, p)
		}
	}
	return choose(found, settings)
}

func find(chip string, settings config.Line) (p place, ok bool, err error) {
	c, err := gpiocdev.NewChip(chip)
	if err != nil {
		return place{}, false, fmt.Errorf("open %s: %w", chip, err)
	}
	defer func() { _ = c.Close() }() // opened for reading only
	p = place{chip: chip, label: c.Label, device: device(chipFolder, chip)}
	if settings.Offset != nil {
		p.offset = *settings.Offset
		return p, p.offset < c.Lines() && (settings.Chip != "" || p.onHeader()), nil
	}
	p.offset, err = c.FindLine(settings.Name)
	return p, err == nil, nil
}

// choose returns the only candidate. The header takes precedence over expanders, which may use the same names.
func choose(found []place, settings config.Line) (place, error) {
	if header := slices.DeleteFunc(slices.Clone(found), func(p place) bool { return !strings.HasPrefix(p.label, headerChips) }); len(header) > 0 {
		found = header
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && found[0].label == found[1].label:
		return place{}, fmt.Errorf("line %s is on both %s and %s, which have the label %s: set chip to one of the two names",
			settings, found[0].name(), found[1].name(), found[0].label)
	case len(found) > 1:
		return place{}, fmt.Errorf("line %s is on both %s and %s: name the chip", settings, found[0].label, found[1].label)
	case settings.Chip != "":
		return place{}, fmt.Errorf("there is no line %s on a chip %s", settings, settings.Chip)
	default:
		return place{}, fmt.Errorf("there is no line %s", settings)
	}
}
