package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/service"
)

// rebuildCmd is `yeolda rebuild`: it makes the reservations again that a restored backup lacks.
type rebuildCmd struct {
	Settings config.Settings `embed:""`
	Since    time.Duration   `name:"since" default:"168h" help:"How far back to read the provider's books; longer than the backup is old."`
	End      bool            `name:"end" help:"End the rebuild although orders are left: new reservations are taken again."`
}

// Run rebuilds, and fails if an order could not be decided: the rebuild stays open, so that its time is not sold again.
func (c *rebuildCmd) Run(p *program) error {
	settings := c.Settings.Effective()
	return p.withRawDatabase(asOwner(settings.Database), func(db *postgres.DB) error {
		if c.End {
			return postgres.EndRebuild(p.ctx, db.Pool, db.Now())
		}
		if err := beginRebuild(p.ctx, db); err != nil {
			return err
		}
		result, err := service.Rebuild(p.ctx, settings, db, p.logger(), c.Since)
		for _, order := range result.Left {
			fmt.Fprintln(p.out, order, "is listed as an orphan: refund it in the console")
		}
		fmt.Fprintf(p.out, "%d orders rebuilt, %d listed, %d failed\n", result.Orders-len(result.Left)-len(result.Failed), len(result.Left), len(result.Failed))
		if len(result.Retired) > 0 {
			fmt.Fprintln(p.out, "not read, because they are retired:", strings.Join(result.Retired, ", "))
		}
		return err
	})
}

func beginRebuild(ctx context.Context, db *postgres.DB) error {
	return db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return postgres.BeginRebuild(ctx, tx) })
}
