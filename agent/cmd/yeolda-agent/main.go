// Command yeolda-agent runs on the Raspberry Pi of a branch. It opens doors, sends infrared and reads sensors for the
// cloud, and does nothing by itself.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/doctor"
	"github.com/yeolda/yeolda/agent/internal/enroll"
	"github.com/yeolda/yeolda/agent/internal/rpi"
	"github.com/yeolda/yeolda/agent/internal/systemd"
)

type cli struct {
	Run     runCommand     `cmd:"" default:"withargs" help:"Run the agent (default)."`
	Enroll  enrollCommand  `cmd:"" help:"Make this machine the agent of a branch, with a token of 'yeolda agent enroll'."`
	Doctor  doctorCommand  `cmd:"" help:"Say what would fail on this machine, and how to mend it. Drives nothing."`
	Version versionCommand `cmd:"" help:"Print the version."`

	LogLevel slog.Level `env:"YEOLDA_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	parsed := kong.Parse(&c, kong.Name("yeolda-agent"), kong.UsageOnError(),
		kong.Description("The agent of a branch."), kong.Vars{"credentials": packaged}, kong.BindTo(ctx, (*context.Context)(nil)))
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	slog.SetDefault(log) // also for what periph's drivers write to package log
	parsed.FatalIfErrorf(parsed.Run(log))
}

// files are where the agent is told what it is.
type files struct {
	Settings    string `env:"YEOLDA_AGENT_SETTINGS" default:"/etc/yeolda-agent/settings.toml" placeholder:"FILE" help:"What hangs on this machine (${default})."`
	Credentials string `env:"YEOLDA_AGENT_CREDENTIALS" placeholder:"FILE" help:"Who this machine is; without it the same variables of the environment."`
}

type runCommand struct {
	files
	Broker string `env:"YEOLDA_BROKER_URL" placeholder:"URL" help:"Instead of the broker in the settings."`
}

// Run runs the agent until it is told to stop.
func (c *runCommand) Run(ctx context.Context, log *slog.Logger) error {
	settings, err := config.ReadSettings(c.Settings)
	if err != nil {
		return err
	}
	// The locks first: whatever else is wrong here, they are idle.
	board := agent.Board{Locks: rpi.Locks(settings.Doors, log)}
	sys := os.DirFS("/sys")
	if board.AirConditioners, err = rpi.AirConditioners(settings.AirConditioners, sys); err != nil {
		log.Error("left out", "error", err)
	}
	if board.Sensors, err = rpi.Sensors(settings.Sensors, sys); err != nil {
		log.Error("left out", "error", err)
	}
	credentials, err := config.ReadCredentials(c.Credentials)
	if err != nil {
		return err
	}
	trust, err := settings.TLS()
	if err != nil {
		return err
	}
	settings.Broker = cmp.Or(c.Broker, settings.Broker, credentials.Broker)
	notify := func(state string) {
		if err := systemd.Notify(state); err != nil {
			log.Warn("service manager", "error", err)
		}
	}
	ready := sync.OnceFunc(func() { notify(systemd.Ready) })
	defer notify(systemd.Stopping)
	return agent.Run(ctx, agent.Config{
		Branch: credentials.Branch, BrokerURL: settings.Broker, Username: credentials.Username, Password: credentials.Password,
		GrantKeys: credentials.GrantKeys, TLS: trust, Version: release(), Logger: log,
		// Ready means that the locks are idle, not that there is a network: a branch starts without one.
		Alive: func() { ready(); notify(systemd.Watchdog) },
	}, board)
}

type enrollCommand struct {
	Server string `required:"" placeholder:"URL" help:"Address of the service."`
	Token  string `arg:"" help:"Is good once, for an hour."`
	File   string `default:"${credentials}" help:"Where to write who this machine is."`
}

// Run enrolls the machine.
func (c *enrollCommand) Run(ctx context.Context) error {
	credentials, err := enroll.Exchange(ctx, c.Server, c.Token)
	if err != nil {
		return err
	}
	if err := enroll.Write(c.File, credentials); err != nil {
		return err
	}
	_, err = fmt.Printf("this machine is %s now, the agent of branch %s\n", credentials.Username, credentials.Branch)
	return err
}

type doctorCommand struct{ files }

// packaged is where enrolment writes who the machine is.
const packaged = "/etc/yeolda-agent/credentials"

var errUnwell = errors.New("something has to be mended")

// Run examines the machine.
func (c *doctorCommand) Run(ctx context.Context) error {
	if c.Credentials == "" && os.Getenv("YEOLDA_BRANCH") == "" { // the service is told, people forget
		c.Credentials = packaged
	}
	d := doctor.Doctor{Root: os.DirFS("/"), SettingsFile: c.Settings, CredentialsFile: c.Credentials, Out: os.Stdout}
	if n := d.Examine(ctx); n > 0 {
		return fmt.Errorf("%w: %d findings", errUnwell, n)
	}
	return nil
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run() error {
	_, err := fmt.Println("yeolda-agent", release())
	return err
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
