package rpi

import (
	"fmt"

	"github.com/warthog618/go-gpiocdev"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// Consumer is the prefix of the consumer labels of the agent's lines.
const Consumer = "yeolda "

// LineInfo is the kernel's description of a line.
type LineInfo struct {
	Chip, Label string
	Offset      int
	Used        bool
	Consumer    string // if the line is in use
}

func (i LineInfo) String() string {
	return fmt.Sprintf("line %d of %s (%s)", i.Offset, i.Chip, i.Label)
}

// Inspect looks up a line without requesting it.
func Inspect(settings config.Line) (LineInfo, error) {
	p, err := locate(settings)
	if err != nil {
		return LineInfo{}, err
	}
	chip, err := gpiocdev.NewChip(p.chip)
	if err != nil {
		return LineInfo{}, fmt.Errorf("open %s: %w", p.chip, err)
	}
	defer func() { _ = chip.Close() }() // opened for reading only
	info, err := chip.LineInfo(p.offset)
	if err != nil {
		return LineInfo{}, fmt.Errorf("line %s of %s: %w", settings, p.label, err)
	}
	return LineInfo{Chip: p.chip, Label: p.label, Offset: p.offset, Used: info.Used, Consumer: info.Consumer}, nil
}

// Chips describes all GPIO chips.
func Chips() ([]string, error) {
	var list []string
	for _, name := range gpiocdev.Chips() {
		chip, err := gpiocdev.NewChip(name)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
		about := chip.Label
		if d := device(chipFolder, name); d != "" {
			about += " (" + d + ")"
		}
		list = append(list, fmt.Sprintf("%s: %s, %d lines", name, about, chip.Lines()))
		if err := chip.Close(); err != nil {
			return nil, fmt.Errorf("close %s: %w", name, err)
		}
	}
	return list, nil
}
