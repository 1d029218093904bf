package main

import (
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
// removed.
func (c *resealCmd) Run(p *program) error {
	keys, err := keyring(c.Secrets)
	if err != nil {
		return err
	}
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		for _, column := range postgres.SealedColumns {
			n, err := postgres.Reseal(p.ctx, db, column, keys.SealingKeyID(), func(sealed []byte) ([]byte, error) {
				plain, err := keys.Open(column.Purpose, sealed)
				if err != nil {
					return nil, err
				}
				return keys.Seal(column.Purpose, plain), nil
			})
			if err != nil {
				return fmt.Errorf("%w; is the key it was sealed with in YEOLDA_ENCRYPTION_KEY, behind a comma?", err)
			}
			fmt.Fprintf(p.out, "%s.%s: %d sealed with the new key\n", column.Table, column.Column, n)
		}
		return nil
	})
}
