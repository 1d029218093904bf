package main

import (
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/device"
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
	return p.withDevices(c.Database, c.Username, func(devices *device.Service) error {
		if err := devices.RotateCredential(p.ctx, c.Username, p.by()); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "agent %s makes new secrets as soon as it is connected; see yeolda agent list\n", c.Username)
		return nil
	})
}
