package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
)

type fleetCommand struct {
	connection
	Agents        int           `default:"100" help:"How many branches."`
	First         int           `default:"1" help:"Number of the first branch, so that a fleet can consist of several processes; with --light and --write-branches."`
	Light         bool          `help:"Run light agents, thousands of which fit into a few MiB, without hardware and panel. They connect at once. Counters are printed as JSON every second."`
	StartEvery    time.Duration `default:"5ms" help:"Time between the first connections of two agents; without --light."`
	Settings      bool          `help:"Give each Pi a settings file, which it sends to the service."`
	SettingsTrial time.Duration `help:"How long settings of the service may take until an agent has reached it with them."`
	WriteBranches string        `placeholder:"FILE" help:"Write the file for 'yeolda branch apply -f' and end; - is standard output."`
}

// Run runs the fleet, or writes its branch file.
func (c *fleetCommand) Run(ctx context.Context, log *slog.Logger) error {
	if c.WriteBranches != "" {
		return c.write()
	}
	if c.Light {
		return c.runLight(ctx)
	}
	sites, err := fleetconfig.Fleet(c.Agents)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300) // a fleet puts load on the service, often on the same machine
	}
	if c.Settings {
		for i := range sites {
			sites[i].Settings = fleetconfig.FleetSettings
		}
	}
	p := program{
		connection: c.connection, sites: sites, settingsTrial: c.SettingsTrial, startEvery: c.StartEvery, log: log,
		// The log lines of a thousand agents are of no use.
		agentLog: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	return p.run(ctx)
}

func (c *fleetCommand) write() error {
	text, err := fleetconfig.BranchFilePart(c.First-1, c.Agents)
	if err != nil {
		return err
	}
	if c.WriteBranches == "-" {
		_, err = os.Stdout.Write(text)
	} else {
		err = os.WriteFile(c.WriteBranches, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("branch file: %w", err)
	}
	return nil
}
