package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/stage"
)

type runCommand struct {
	connection
	HTTPAddr    string        `name:"http-addr" env:"YEOLDA_HTTP_ADDR" default:"127.0.0.1:8080" help:"Address of the service, for the stage."`
	SandboxAddr string        `env:"YEOLDA_SANDBOX_ADDR" default:"127.0.0.1:8090" help:"Address of the sandbox, for the stage."`
	StageOrigin string        `env:"YEOLDA_STAGE_ORIGIN" placeholder:"ORIGIN" help:"Origin at which browsers open the stage (default: http:// and the address of the panel)."`
	StagePace   time.Duration `env:"YEOLDA_STAGE_PACE" default:"2s" help:"Time to read a step of a scene."`

	File string `type:"existingfile" env:"YEOLDA_SIM_FILE" help:"File of the simulated branches; the demo branches are built in."`
}

// Run runs the branches of a simulation file.
func (c *runCommand) Run(ctx context.Context, log *slog.Logger) error {
	if u, err := url.Parse(c.StageOrigin); c.StageOrigin != "" && (err != nil || u.Host == "" || c.StageOrigin != u.Scheme+"://"+u.Host) {
		return errors.New("YEOLDA_STAGE_ORIGIN is not exactly one origin: scheme, host and port, such as http://127.0.0.1:8070")
	}
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
		Service: "http://" + reachable(c.HTTPAddr), Sandbox: "http://" + reachable(c.SandboxAddr), Origin: c.StageOrigin, Pace: c.StagePace, Log: log,
	}}
	return p.run(ctx)
}
