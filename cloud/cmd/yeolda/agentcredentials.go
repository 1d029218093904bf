package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

type agentCredentialsCmd struct {
	Rotate agentCredentialsRotateCmd `cmd:"" help:"Replace the secrets of a credential by new ones that its agent makes: a copied SD card cannot connect any more."`
}

// agentCredentialsRotateCmd is `yeolda agent credentials rotate`.
type agentCredentialsRotateCmd struct {
	Username string          `arg:"" help:"User name of the credential."`
	Database config.Database `embed:""`
}

// Run rotates the secrets of a credential.
func (c *agentCredentialsRotateCmd) Run(p *program) error {
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		devices := &device.Service{DB: db, Log: slog.New(slog.DiscardHandler)}
		err := devices.RotateCredential(p.ctx, c.Username, p.by())
		if errors.Is(err, postgres.ErrNoAgent) {
			return fmt.Errorf("there is no agent %q that is not revoked; see yeolda agent list", c.Username)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "agent %s makes new secrets as soon as it is connected; see yeolda agent list\n", c.Username)
		return nil
	})
}
