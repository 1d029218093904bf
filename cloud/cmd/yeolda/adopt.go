package main

import (
	"errors"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/installation"
)

// adoptCmd is `yeolda adopt`.
type adoptCmd struct {
	Lost     bool            `help:"Confirm that the keys of the database are lost: what they sealed can never be read again."`
	Database config.Database `embed:""`
	Secrets  config.Secrets  `embed:""`
}

// Run records the keys of the settings as those of the database.
func (c *adoptCmd) Run(p *program) error {
	if !c.Lost {
		return errors.New("the service works with the keys that the database was written with: set them, or confirm with --lost that they are lost")
	}
	keys, err := installation.Of(config.Settings{Secrets: c.Secrets}.Effective())
	if err != nil {
		return err
	}
	return p.withGrantKeys(c.Database, c.Secrets, func(ring *grantkey.Ring) error {
		changed, err := keys.Adopt(p.ctx, ring.DB, p.by())
		if err != nil {
			return err
		}
		replaced, err := ring.ReplaceLost(p.ctx, p.by())
		switch {
		case err != nil:
			return err
		case replaced:
			fmt.Fprintln(p.out, "the key that signs grants was lost, too, and there is a new one: enroll each Pi again that yeolda agent keys list names")
			fallthrough
		case changed:
			fmt.Fprintln(p.out, "the keys of the settings are those of the database from now on; yeolda doctor names the PINs that cannot be read. "+
				"If YEOLDA_GRANT_KEY is new, no door opens until its Pi is enrolled again: yeolda agent list names them")
		default:
			fmt.Fprintln(p.out, "these are the keys of the database already")
		}
		return nil
	})
}
