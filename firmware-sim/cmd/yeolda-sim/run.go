package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/stage"
)

type runCommand struct {
	connection
	HTTPAddr    string        `name:"http-addr" env:"YEOLDA_HTTP_ADDR" default:"127.0.0.1:8080" help:"Address of the service, for the stage."`
	SandboxAddr string        `env:"YEOLDA_SANDBOX_ADDR" default:"127.0.0.1:8090" help:"Address of the sandbox, for the stage."`
	StagePace   time.Duration `env:"YEOLDA_STAGE_PACE" default:"2s" help:"Time to read a step of a scene."`

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
	p := program{connection: c.connection, sites: sites, log: log, agentLog: log, stage: &stage.Stage{
		Service: "http://" + c.HTTPAddr, Sandbox: "http://" + c.SandboxAddr, Pace: c.StagePace,
	}}
	return p.run(ctx)
}
