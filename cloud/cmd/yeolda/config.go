package main

import (
	"github.com/yeolda/yeolda/cloud/internal/config"
)

// configCmd is `yeolda config`.
type configCmd struct {
	Settings config.Settings `embed:""`
}

// Run prints every setting. Problems of the settings are the command's error.
func (c *configCmd) Run(p *program) error {
	table := newTable(p.out, "VARIABLE", "VALUE", "ORIGIN")
	for _, line := range config.Explain(p.parsed, &c.Settings) {
		table.row(line.Variable, line.Value, line.Origin)
	}
	if err := table.flush(); err != nil {
		return err
	}
	return c.Settings.Check()
}
