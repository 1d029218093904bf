package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/rollout"
)

type agentSettingsCmd struct {
	List agentSettingsListCmd `cmd:"" help:"List the versions of an agent's settings."`
	Show agentSettingsShowCmd `cmd:"" help:"Print an agent's settings."`
	Set  agentSettingsSetCmd  `cmd:"" help:"Give an agent other settings. It checks them and returns to the previous ones if it does not reach the service with them."`

	Replace agentSettingsReplaceCmd `cmd:"" help:"Change the settings of many agents in waves; yeolda agent rollout shows and stops it."`
}

// withDevices runs do with the devices of the database, and explains errors about agents and settings.
func (p *program) withDevices(database config.Database, username string, do func(*device.Service) error) error {
	return p.withDatabase(database, func(db *postgres.DB) error {
		_, err := postgres.BranchOfAgent(p.ctx, db.Pool, username)
		if err == nil {
			err = do(&device.Service{DB: db, Log: p.logger()})
		}
		switch {
		case errors.Is(err, postgres.ErrNoAgent):
			return fmt.Errorf("there is no agent %q that is not revoked; see yeolda agent list", username)
		case errors.Is(err, device.ErrNoDiagnostics):
			return fmt.Errorf("the version of agent %s is too old to send its log; update it with yeolda agent rollout", username)
		case errors.Is(err, device.ErrNoSettings):
			return fmt.Errorf("agent %s has no such version of settings; see yeolda agent settings list %s", username, username)
		case errors.Is(err, device.ErrSettingsChanged):
			return fmt.Errorf("there is a later version; see yeolda agent settings list %s", username)
		}
		return err
	})
}

// agentSettingsListCmd is `yeolda agent settings list`.
type agentSettingsListCmd struct {
	Username string          `arg:"" help:"User name of the credential."`
	Database config.Database `embed:""`
}

// Run lists the versions.
func (c *agentSettingsListCmd) Run(p *program) error {
	return p.withDevices(c.Database, c.Username, func(devices *device.Service) error {
		versions, err := devices.ListSettings(p.ctx, c.Username)
		if err != nil {
			return err
		}
		table := newTable(p.out, "VERSION", "STATE", "SINCE", "BY", "DETAIL")
		for _, v := range versions {
			table.row(fmt.Sprint(v.Version), v.State, when(v.StateAt), v.CreatedBy, v.Detail)
		}
		return table.flush()
	})
}

// agentSettingsShowCmd is `yeolda agent settings show`.
type agentSettingsShowCmd struct {
	Username string          `arg:"" help:"User name of the credential."`
	Version  uint64          `help:"A version; by default the last one."`
	Database config.Database `embed:""`
}

// Run prints a version.
func (c *agentSettingsShowCmd) Run(p *program) error {
	return p.withDevices(c.Database, c.Username, func(devices *device.Service) error {
		found, err := devices.ShowSettings(p.ctx, c.Username, c.Version)
		if err != nil {
			return err
		}
		_, err = io.WriteString(p.out, found.Text)
		return err
	})
}

// agentSettingsSetCmd is `yeolda agent settings set`.
type agentSettingsSetCmd struct {
	Username string          `arg:"" help:"User name of the credential."`
	File     string          `arg:"" help:"Settings in TOML; - is standard input."`
	Base     *uint64         `help:"Only if this is the last version; 0: only if there is none."`
	Database config.Database `embed:""`
}

// Run adds a version. The running service sends it.
func (c *agentSettingsSetCmd) Run(p *program) error {
	text, err := p.read(c.File)
	if err != nil {
		return err
	}
	return p.withDevices(c.Database, c.Username, func(devices *device.Service) error {
		version, err := devices.ChangeSettings(p.ctx, c.Username, c.Base, string(text), p.by())
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "version %d is sent to agent %s as soon as it is connected; see yeolda agent settings list %s\n", version, c.Username, c.Username)
		return nil
	})
}

// read reads a file, or standard input for -.
func (p *program) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(p.in)
	}
	return os.ReadFile(file)
}

// agentSettingsReplaceCmd is `yeolda agent settings replace`.
type agentSettingsReplaceCmd struct {
	Old      string          `arg:"" help:"A text that is replaced wherever it occurs in settings in use."`
	New      string          `arg:"" help:"The text instead of it."`
	Agents   []string        `placeholder:"USERNAME" help:"Only these agents; by default every active one whose settings contain the text."`
	Waves    []int           `default:"1,10,100" help:"Percent of the agents in each wave."`
	Settle   time.Duration   `default:"5m" help:"How long an agent must do well with the new settings."`
	Database config.Database `embed:""`
}

// Run begins a rollout. The running service carries it out.
func (c *agentSettingsReplaceCmd) Run(p *program) error {
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		s := &rollout.Service{DB: db, Log: p.logger()}
		err := s.StartSettings(p.ctx, rollout.Change{Agents: c.Agents, Old: c.Old, New: c.New}, c.Waves, c.Settle, p.by())
		switch {
		case errors.Is(err, rollout.ErrOpen):
			return errors.New("a rollout is in progress; see yeolda agent rollout")
		case errors.Is(err, rollout.ErrInvalid):
			return errors.New("invalid text to replace (1 byte or more), waves (percentages that rise to 100) or settle time (5s to 1h)")
		case errors.Is(err, rollout.ErrUnchanged):
			return errors.New("no active agent has settings in use that contain this text")
		case err != nil:
			return err
		}
		return showRollout(p, s)
	})
}
