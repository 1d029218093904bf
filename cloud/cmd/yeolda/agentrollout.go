package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/rollout"
)

// agentRolloutCmd is `yeolda agent rollout`.
type agentRolloutCmd struct {
	Version  string          `arg:"" optional:"" help:"Version of the package."`
	Waves    []int           `default:"1,10,100" help:"Percent of the agents in each wave."`
	Settle   time.Duration   `default:"5m" help:"How long an agent must do well with the new version."`
	Stop     bool            `xor:"how" help:"Stop the rollout; updated agents return to the previous version."`
	Resume   bool            `xor:"how" help:"Continue the stopped rollout at its wave, without the agents that failed."`
	Skip     bool            `name:"skip-offline" xor:"how" help:"Do not wait for the agents that are not connected."`
	MQTT     config.MQTT     `embed:""`
	Secrets  config.Secrets  `embed:""`
	Database config.Database `embed:""`
}

// Run begins, changes or shows a rollout. The running service carries it out.
func (c *agentRolloutCmd) Run(p *program) error {
	if c.Version != "" && (c.Stop || c.Resume || c.Skip) {
		return errors.New("--stop, --resume and --skip-offline are about the last rollout and take no version")
	}
	set := config.Settings{MQTT: c.MQTT, Secrets: c.Secrets}.Effective()
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		s := &rollout.Service{DB: db, Log: p.logger(), Packages: set.MQTT.AgentPackages}
		var err error
		switch {
		case c.Stop:
			err = s.Stop(p.ctx, p.by())
		case c.Resume:
			err = s.Resume(p.ctx, p.by())
		case c.Skip:
			err = s.SkipOffline(p.ctx, p.by())
		case c.Version != "":
			err = s.Start(p.ctx, c.Version, c.Waves, c.Settle, p.by())
		}
		switch {
		case errors.Is(err, rollout.ErrOpen):
			return errors.New("a rollout is in progress; see yeolda agent rollout")
		case errors.Is(err, rollout.ErrInvalid):
			return errors.New("invalid version, waves (percentages that rise to 100) or settle time (5s to 1h)")
		case errors.Is(err, rollout.ErrNone):
			return errors.New("no rollout is in progress; see yeolda agent rollout")
		case errors.Is(err, rollout.ErrNotStopped):
			return errors.New("the last rollout was not stopped, or every agent of it failed; see yeolda agent rollout")
		case err != nil:
			return err
		}
		return showRollout(p, s)
	})
}

func showRollout(p *program, s *rollout.Service) error {
	r, err := s.Last(p.ctx)
	if errors.Is(err, rollout.ErrNone) {
		fmt.Fprintln(p.out, "there was no rollout yet")
		return nil
	}
	if err != nil {
		return err
	}
	what := "version " + r.Version
	if r.Kind == postgres.RolloutSettings {
		what = "changed settings"
	}
	fmt.Fprintf(p.out, "%s: %s, wave %d of %d %s\n", what, r.State, r.Wave, len(r.Waves), r.Reason)
	table := newTable(p.out, "USERNAME", "BRANCH", "WAVE", "STATE", "VERSION", "DETAIL")
	for _, m := range r.Members {
		table.row(m.Username, m.Branch, fmt.Sprint(m.Wave), m.State, m.Version, m.Detail)
	}
	return table.flush()
}
