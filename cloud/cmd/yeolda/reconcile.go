package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/service"
)

// reconcileCmd is `yeolda reconcile`: the comparison with the payment provider's books that runs every night, now.
type reconcileCmd struct {
	Settings config.Settings `embed:""`
	Since    time.Duration   `name:"since" default:"168h" help:"How far back to compare."`
}

// Run compares, and fails if an order could not be compared.
func (c *reconcileCmd) Run(p *program) error {
	settings := c.Settings.Effective()
	return p.withRawDatabase(settings.Database, func(db *postgres.DB) error {
		report, err := service.Reconcile(p.ctx, settings, db, p.logger(), c.Since)
		for _, d := range report.Discrepancies {
			fmt.Fprintln(p.out, d.OrderID, d.Kind, d.Detail, d.Resolution)
		}
		fmt.Fprintf(p.out, "%d orders compared, %d discrepancies, %d not compared\n", report.Compared, len(report.Discrepancies), len(report.Failed))
		if len(report.Retired) > 0 {
			fmt.Fprintln(p.out, "not read, because they are retired:", strings.Join(report.Retired, ", "))
		}
		return err
	})
}
