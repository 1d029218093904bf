package main

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/agent/internal/rpi"
	cloudsettings "github.com/yeolda/yeolda/agent/settings"
	"github.com/yeolda/yeolda/protocol"
)

// keeper returns what keeps the settings of the cloud beside the settings file.
func (c *runCommand) keeper(log *slog.Logger) *cloudsettings.Keeper {
	k := cloudsettings.Config{
		File:  func() (string, error) { text, err := os.ReadFile(c.Settings); return string(text), err },
		Saved: func() string { text, _ := os.ReadFile(c.savedSettings()); return string(text) }, // empty if there is none
		Check: c.check, TrialTimeout: c.SettingsTrial, Log: log,
	}
	if c.State != "" {
		k.Disk = cloudsettings.Dir(c.State)
	}
	return cloudsettings.Open(k)
}

// stateDirectory is the state directory of the service, for commands that administrators type without options.
const stateDirectory = "/var/lib/yeolda-agent"

// settingsInUse returns the name of the file with the settings in use: the settings file, or the copy of those of the cloud.
func (f *files) settingsInUse() string {
	state := cmp.Or(f.State, stateDirectory)
	if copied := filepath.Join(state, "settings.toml"); cloudsettings.FromCloud(cloudsettings.Dir(state)) {
		return copied
	}
	return f.Settings
}

// load returns the settings of this run. The settings file has the last valid settings behind it.
func (c *runCommand) load(keeper *cloudsettings.Keeper) (config.Settings, []config.Problem) {
	text, fromFile := keeper.Text()
	if fromFile {
		return config.LoadSettings(c.Settings, c.savedSettings())
	}
	s, err := config.ParseSettings([]byte(text))
	var problems []config.Problem
	for _, err := range []error{err, keeper.Mistake()} {
		if err != nil {
			problems = append(problems, config.Problem{Err: err})
		}
	}
	return s, problems
}

// check returns the mistakes of settings of the cloud: everything that `yeolda-agent check` reports about a file. It requests no
// line: those of the settings in use are held by this process.
func (c *runCommand) check(text string) error {
	s, err := config.ParseSettings([]byte(text))
	credentials, credentialsErr := config.ReadCredentials(c.Credentials)
	if credentialsErr != nil {
		return errors.Join(err, credentialsErr)
	}
	board := agent.Board{Keypads: rpi.Keypads(s.Doors)}
	for _, d := range s.Doors {
		kind, _, _ := protocol.ParseDevice(d.Device) // validated with the settings
		board.Locks = append(board.Locks, agent.Lock{Device: d.Device, Kind: kind, Relay: gpio.INVALID})
	}
	board, problems := complete(board, s)
	return errors.Join(err, checkOutside(s, credentials), join(problems), board.Check())
}

// checkOutside returns the mistakes of settings in what connects the machine.
func checkOutside(s config.Settings, credentials config.Credentials) error {
	_, err := link.ParseURLs(cmp.Or(s.Broker, credentials.Broker))
	_, caErr := config.TLS(cmp.Or(s.CA, credentials.CA), nil)
	return errors.Join(err, caErr)
}

func join(problems []config.Problem) (err error) {
	for _, p := range problems {
		err = errors.Join(err, p)
	}
	return err
}

// restart replaces this process by a new one of the same program. The kernel releases all lines, and the service manager sees no
// end of the service.
func restart(log *slog.Logger) error {
	log.Info("starting again with other settings")
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ()) //nolint:gosec // this very program
}
