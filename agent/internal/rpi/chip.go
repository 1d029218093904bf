package rpi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warthog618/go-gpiocdev"
)

// headerChips begin the labels of the chips behind the pin header: pinctrl-rp1, pinctrl-bcm2711, pinctrl-bcm2835.
const headerChips = "pinctrl-"

// place is where a line is.
type place struct {
	chip   string // "gpiochip0"; moves between models and kernels
	label  string
	offset int
}

// locate finds a line by its name, on the chips with a label or, when that is empty, on those of the header or any.
func locate(label, name string) (place, error) {
	var found []place
	for _, chip := range gpiocdev.Chips() {
		p, ok, err := lookUp(chip, name)
		if err != nil {
			return place{}, err
		}
		if ok && (label == "" || p.label == label) {
			found = append(found, p)
		}
	}
	return choose(found, label, name)
}

func lookUp(chip, name string) (p place, ok bool, err error) {
	c, err := gpiocdev.NewChip(chip)
	if err != nil {
		return place{}, false, fmt.Errorf("open %s: %w", chip, err)
	}
	defer func() { _ = c.Close() }() // only looked at
	offset, err := c.FindLine(name)
	return place{chip: chip, label: c.Label, offset: offset}, err == nil, nil
}

// choose takes the only place there is. The header goes before expanders, which may use the same names.
func choose(found []place, label, name string) (place, error) {
	if header := slices.DeleteFunc(slices.Clone(found), func(p place) bool { return !strings.HasPrefix(p.label, headerChips) }); len(header) > 0 {
		found = header
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return place{}, fmt.Errorf("line %s is on both %s and %s: name the chip", name, found[0].label, found[1].label)
	case label != "":
		return place{}, fmt.Errorf("there is no line %s on a chip %s", name, label)
	default:
		return place{}, fmt.Errorf("there is no line %s", name)
	}
}
