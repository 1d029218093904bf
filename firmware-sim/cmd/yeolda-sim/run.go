package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
)

type runCommand struct {
	connection
	File string `type:"existingfile" env:"YEOLDA_SIM_FILE" help:"Site file; the demo branches are built in."`
}

// Run runs the branches of a simulation file.
func (c *runCommand) Run(ctx context.Context, log *slog.Logger) error {
	text := fleetconfig.Demo
	if c.File != "" {
		var err error
		if text, err = os.ReadFile(c.File); err != nil {
			return fmt.Errorf("simulation file: %w", err)
		}
	}
	sites, err := fleetconfig.Parse(text)
	if err != nil {
		return err
	}
	p := program{connection: c.connection, sites: sites, log: log, agentLog: log}
	return p.run(ctx)
}
