package rpi

import (
	"fmt"

	"github.com/warthog618/go-gpiocdev"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// Consumer begins what the agent's lines are labelled with.
const Consumer = "yeolda "

// LineInfo is what the kernel says about a line.
type LineInfo struct {
	Chip, Label string
	Offset      int
	Used        bool
	Consumer    string // of a line in use
}

func (i LineInfo) String() string {
	return fmt.Sprintf("line %d of %s (%s)", i.Offset, i.Chip, i.Label)
}

// Inspect looks a line up without touching it.
func Inspect(settings config.Line) (LineInfo, error) {
	p, err := locate(settings.Chip, settings.Name)
	if err != nil {
		return LineInfo{}, err
	}
	chip, err := gpiocdev.NewChip(p.chip)
	if err != nil {
		return LineInfo{}, fmt.Errorf("open %s: %w", p.chip, err)
	}
	defer func() { _ = chip.Close() }() // only looked at
	info, err := chip.LineInfo(p.offset)
	if err != nil {
		return LineInfo{}, fmt.Errorf("line %s of %s: %w", settings.Name, p.label, err)
	}
	return LineInfo{Chip: p.chip, Label: p.label, Offset: p.offset, Used: info.Used, Consumer: info.Consumer}, nil
}

// Chips describes every GPIO chip there is.
func Chips() ([]string, error) {
	var list []string
	for _, name := range gpiocdev.Chips() {
		chip, err := gpiocdev.NewChip(name)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
		list = append(list, fmt.Sprintf("%s: %s, %d lines", name, chip.Label, chip.Lines()))
		if err := chip.Close(); err != nil {
			return nil, fmt.Errorf("close %s: %w", name, err)
		}
	}
	return list, nil
}
