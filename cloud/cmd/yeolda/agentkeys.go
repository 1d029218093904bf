package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// withGrantKeys runs do with the keys that sign door grants.
func (p *program) withGrantKeys(database config.Database, secrets config.Secrets, do func(*grantkey.Ring) error) error {
	set := config.Settings{Secrets: secrets}.Effective()
	first, err := set.GrantKeys()
	if err != nil {
		return &config.Problem{Variable: "YEOLDA_GRANT_KEY", Text: err.Error()}
	}
	sealing, err := keyring(secrets)
	if err != nil {
		return err
	}
	return p.withDatabase(database, func(db *postgres.DB) error {
		return do(&grantkey.Ring{DB: db, Keys: sealing, First: first, Log: p.logger()})
	})
}

type agentKeysCmd struct {
	List   agentKeysListCmd   `cmd:"" help:"List the keys, and the active agents that do not have the newest one."`
	Rotate agentKeysRotateCmd `cmd:"" help:"Make a new key. Agents receive it by themselves; the old key is retired when every active agent has the new one."`
	Finish agentKeysFinishCmd `cmd:"" help:"Retire the old key now."`
}

// agentKeysListCmd is `yeolda agent keys list`.
type agentKeysListCmd struct {
	Database config.Database `embed:""`
	Secrets  config.Secrets  `embed:""`
}

// Run lists the keys.
func (c *agentKeysListCmd) Run(p *program) error {
	return p.withGrantKeys(c.Database, c.Secrets, func(ring *grantkey.Ring) error {
		keys, behind, err := ring.List(p.ctx)
		if err != nil {
			return err
		}
		table := newTable(p.out, "PUBLIC KEY", "SINCE EPOCH", "STATE", "MADE")
		for _, k := range keys {
			state := "trusted"
			switch {
			case !k.RetiredAt.IsZero():
				state = "retired " + when(k.RetiredAt)
			case k.Signs:
				state = "signs"
			}
			table.row(k.Public, fmt.Sprint(k.Epoch), state, when(k.CreatedAt))
		}
		if err := table.flush(); err != nil || len(behind) == 0 {
			return err
		}
		fmt.Fprintln(p.out, "\nActive agents without the newest list:")
		table = newTable(p.out, "USERNAME", "BRANCH", "EPOCH", "ONLINE", "LAST SEEN")
		for _, b := range behind {
			online := "no"
			if b.Online {
				online = "yes"
			}
			table.row(b.Agent.Username, b.Agent.Branch, fmt.Sprint(b.Epoch), online, when(b.SeenAt))
		}
		return table.flush()
	})
}

// agentKeysRotateCmd is `yeolda agent keys rotate`.
type agentKeysRotateCmd struct {
	Database config.Database `embed:""`
	Secrets  config.Secrets  `embed:""`
}

// Run begins a rotation.
func (c *agentKeysRotateCmd) Run(p *program) error {
	return p.withGrantKeys(c.Database, c.Secrets, func(ring *grantkey.Ring) error {
		epoch, err := ring.Rotate(p.ctx, p.by())
		switch {
		case errors.Is(err, grantkey.ErrInProgress):
			return errors.New("a rotation is in progress; see yeolda agent keys list")
		case errors.Is(err, grantkey.ErrNoKey):
			return errors.New("the private key that signs grants now is missing: YEOLDA_GRANT_KEY is not the key that the agents were enrolled with")
		case err != nil:
			return err
		}
		fmt.Fprintf(p.out, "new key made (epoch %d); the old key is retired when every active agent has the new one\n", epoch)
		return nil
	})
}

// agentKeysFinishCmd is `yeolda agent keys finish`.
type agentKeysFinishCmd struct {
	Force    bool            `help:"Even if active agents do not have the new key. They receive it when they connect; until then they open no door."`
	Database config.Database `embed:""`
	Secrets  config.Secrets  `embed:""`
}

// Run ends a rotation.
func (c *agentKeysFinishCmd) Run(p *program) error {
	return p.withGrantKeys(c.Database, c.Secrets, func(ring *grantkey.Ring) error {
		err := ring.Finish(p.ctx, p.by(), c.Force)
		switch {
		case errors.Is(err, grantkey.ErrNone):
			return errors.New("no rotation is in progress")
		case errors.Is(err, grantkey.ErrBehind):
			return errors.New("active agents do not have the new key yet: see yeolda agent keys list, or use --force")
		case err != nil:
			return err
		}
		fmt.Fprintf(p.out, "the old key is retired at %s\n", when(time.Now()))
		return nil
	})
}
