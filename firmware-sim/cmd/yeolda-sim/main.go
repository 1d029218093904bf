// Command yeolda-sim runs simulated branches: the real agent on simulated hardware, with a panel that shows them and
// controls their faults.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Run     runCommand     `cmd:"" default:"withargs" help:"Run the demo branches, or those of a file (default)."`
	Fleet   fleetCommand   `cmd:"" help:"Run many small branches load-0001... for load tests."`
	Version versionCommand `cmd:"" help:"Print the version."`

	LogLevel slog.Level `env:"YEOLDA_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	k := parser(&c, kong.BindTo(ctx, (*context.Context)(nil)))
	parsed, err := k.Parse(os.Args[1:])
	k.FatalIfErrorf(err)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	slog.SetDefault(log)
	parsed.FatalIfErrorf(parsed.Run(log))
}

// parser returns the parser of the command line. Empty variables count as absent, as in the service.
func parser(c *cli, options ...kong.Option) *kong.Kong {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "YEOLDA_") && value == "" {
			_ = os.Unsetenv(name) // fails on no supported system
		}
	}
	return kong.Must(c, append(options, kong.Name("yeolda-sim"), kong.UsageOnError(),
		kong.Description("Simulated branches running the real agent."), kong.Vars{"grantKey": demoGrantKey()})...)
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run() error {
	fmt.Println("yeolda-sim", release())
	return nil
}

// version is filled in by the linker (-X main.version).
var version string

// release is the version, or the commit that the program was built from.
func release() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return "devel"
}
