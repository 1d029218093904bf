package main

import (
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// migrateCmd is `yeolda migrate`. `yeolda serve` migrates too; this command does it in advance.
type migrateCmd struct {
	Database config.Database `embed:""`
}

// Run migrates.
func (c *migrateCmd) Run(p *program) error {
	return p.withDatabase(c.Database, func(*postgres.DB) error {
		fmt.Fprintln(p.out, "the schema is up to date")
		return nil
	})
}
