package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// BenchmarkAlertSweep looks for alerts in 10,000 branches with an agent and a reading sensor each: with the settings of the service's
// connections, and with the compilation of statements (jit) that is the server's default.
func BenchmarkAlertSweep(b *testing.B) {
	db := pgtest.New(b)
	for _, sql := range []string{
		`insert into branch (code) select 'b' || n from generate_series(1, 10000) n`,
		`insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory)
		 select id, '1', now(), now(), true, '{"sensors": ["sensor-1"]}' from branch where code ~ '^b[0-9]'`,
		`insert into sensor_reading (branch_id, location, at, celsius, humidity)
		 select branch_id, 'sensor-1', now(), 20, 50 from agent_inventory`,
		`analyze`,
	} {
		if _, err := db.Pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	for _, jit := range []string{"off", "on"} {
		b.Run("jit="+jit, func(b *testing.B) {
			for b.Loop() {
				err := db.InTx(b.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
					if jit == "on" {
						if _, err := tx.Exec(ctx, `set local jit = on`); err != nil {
							return err
						}
					}
					return postgres.SweepAlerts(ctx, tx, postgres.AlertSweep{AlertLimits: alert.Limits, Now: now, Up: now.Add(-time.Hour),
						Heard: now.Add(-time.Hour), KeyTemplates: notify.KeyTemplates()}, true)
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
