package main

import (
	"errors"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// keyring returns the keys that seal secrets at rest. It returns a *config.Problem.
func keyring(secrets config.Secrets) (*seal.Keyring, error) {
	keys, err := config.Settings{Secrets: secrets}.Effective().Keyring()
	if err != nil {
		return nil, &config.Problem{Variable: "YEOLDA_ENCRYPTION_KEY", Text: err.Error()}
	}
	return keys, nil
}

// resealCmd is `yeolda reseal`.
type resealCmd struct {
	Database config.Database `embed:""`
	Secrets  config.Secrets  `embed:""`
}

// Run seals every secret at rest with the first key of YEOLDA_ENCRYPTION_KEY. Afterwards the other keys may be
// removed. A value that no key opens does not keep the others from being sealed.
func (c *resealCmd) Run(p *program) error {
	keys, err := keyring(c.Secrets)
	if err != nil {
		return err
	}
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		var unread error
		for _, column := range postgres.SealedColumns {
			n, lost, err := postgres.Reseal(p.ctx, db, column, keys)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.out, "%s.%s: %d sealed with the new key\n", column.Table, column.Column, n)
			if lost > 0 {
				unread = errors.Join(unread, fmt.Errorf("%s.%s: %d values cannot be opened; is the key they were sealed with in YEOLDA_ENCRYPTION_KEY, behind a comma?",
					column.Table, column.Column, lost))
			}
		}
		return unread
	})
}
