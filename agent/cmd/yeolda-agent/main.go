// Command yeolda-agent runs on the Raspberry Pi of a branch. It opens doors, sends infrared codes and reads sensors on the
// cloud's behalf.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/enroll"
	"github.com/yeolda/yeolda/agent/internal/link"
)

type cli struct {
	Run           runCommand           `cmd:"" default:"withargs" help:"Run the agent (default)."`
	Enroll        enrollCommand        `cmd:"" help:"Make this machine the agent of a branch, with a token of 'yeolda agent enroll'."`
	Check         checkCommand         `cmd:"" help:"Check the settings and the credentials."`
	Doctor        doctorCommand        `cmd:"" help:"Examine this machine and report how to fix what would fail. Drives nothing."`
	IR            irCommand            `cmd:"" name:"ir" help:"Infrared codes."`
	InstallUpdate installUpdateCommand `cmd:"" hidden:"" help:"Install the update that the agent has fetched; run by systemd as root."`
	Version       versionCommand       `cmd:"" help:"Print the version."`

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
	slog.SetDefault(log) // for package log too, which periph's drivers use
	parsed.FatalIfErrorf(parsed.Run(log))
}

// parser returns the parser of the command line. Empty variables count as absent, as in the service.
func parser(c *cli, options ...kong.Option) *kong.Kong {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "YEOLDA_") && value == "" {
			_ = os.Unsetenv(name) // fails on no supported system
		}
	}
	return kong.Must(c, append(options, kong.Name("yeolda-agent"), kong.UsageOnError(),
		kong.Description("The agent of a branch."), kong.Vars{"credentials": packaged})...)
}

// files are the configuration files of the agent.
type files struct {
	Settings    string `env:"YEOLDA_AGENT_SETTINGS" default:"/etc/yeolda-agent/settings.toml" placeholder:"FILE" help:"The hardware of this machine (${default})."`
	Credentials string `env:"YEOLDA_AGENT_CREDENTIALS" placeholder:"FILE" help:"The identity of this machine; without it, the same variables of the environment."`
	State       string `env:"STATE_DIRECTORY" placeholder:"DIR" help:"Keeps the last valid settings, the grant keys and the health of the agent; systemd sets it."`
}

// usePackaged selects the packaged credentials file for commands that administrators type without options.
func (f *files) usePackaged() {
	if f.Credentials == "" && os.Getenv("YEOLDA_BRANCH") == "" {
		f.Credentials = packaged
	}
}

// packaged is the credentials file of the package.
const packaged = "/etc/yeolda-agent/credentials"

type enrollCommand struct {
	Server string `required:"" placeholder:"URL" help:"Address of the service."`
	Token  string `arg:"" help:"Valid once, for an hour."`
	File   string `default:"${credentials}" help:"Where to write the credentials (${default})."`
	CA     string `placeholder:"FILE" help:"Certificate of the private authority that issued the server's certificate."`
}

// Run enrolls the machine.
func (c *enrollCommand) Run(ctx context.Context, log *slog.Logger) error {
	server, err := url.Parse(c.Server)
	if err != nil {
		return fmt.Errorf("address of the service: %w", err)
	}
	if link.Exposed(enroll.Broker(server)) {
		log.Warn("the connection to this server is not encrypted: the network can read the agent's password", "server", server.Host)
	}
	if c.CA != "" {
		if c.CA, err = enroll.KeepCA(c.File, c.CA); err != nil {
			return err
		}
	}
	owner := enroll.ServiceOwner()
	if err := enroll.Reserve(c.File, owner); err != nil {
		return fmt.Errorf("the token is not used: %w", err)
	}
	key, err := enroll.Key(c.File, c.Token, owner)
	if err != nil {
		return fmt.Errorf("the token is not used: %w", err)
	}
	clock := newCertificateClock(files{Credentials: c.File})
	trust, err := config.TLS(c.CA, clock.now)
	if err != nil {
		return err
	}
	credentials, err := enroll.Exchange(ctx, c.Server, c.Token, trust, key)
	if clock.learn(err, trust.RootCAs) {
		credentials, err = enroll.Exchange(ctx, c.Server, c.Token, trust, key)
	}
	if err != nil {
		return err
	}
	credentials.CA = c.CA
	if err := enroll.Write(c.File, credentials, owner); err != nil {
		return err
	}
	if err := enroll.Done(c.File); err != nil {
		return err
	}
	_, err = fmt.Printf("this machine is now %s, the agent of branch %s\n", credentials.Username, credentials.Branch)
	return err
}

type checkCommand struct{ files }

// Run reports every problem of the configuration files.
func (c *checkCommand) Run() error {
	c.usePackaged()
	settings, err := config.ReadSettings(c.Settings)
	credentials, credentialsErr := config.ReadCredentials(c.Credentials)
	err = errors.Join(err, credentialsErr)
	_, problems := newBoard(settings)
	return errors.Join(err, checkOutside(settings, credentials), join(problems))
}

type doctorCommand struct{ files }

var errUnwell = errors.New("the machine needs attention")

// Run examines the machine.
func (c *doctorCommand) Run(ctx context.Context) error {
	c.usePackaged()
	d := c.doctor(os.Stdout)
	if n := d.Examine(ctx); n > 0 {
		return fmt.Errorf("%w: %d marked FAIL", errUnwell, n)
	}
	return nil
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run() error {
	_, err := fmt.Println("yeolda-agent", release())
	return err
}

// version is set by the linker (-X main.version).
var version string

// release returns the version, or the commit from which the program was built.
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
	if commit := buildSetting("vcs.revision"); commit != "" {
		return commit[:min(len(commit), 12)]
	}
	return "devel"
}

func buildSetting(key string) string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
