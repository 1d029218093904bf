package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// BenchmarkPaymentsOfASweep measures the search for payments that are due or stuck, when none is. Nearly all of it is planning, as in
// the service, where every sweep plans them again.
func BenchmarkPaymentsOfASweep(b *testing.B) {
	config, err := pgxpool.ParseConfig(pgtest.URL(b))
	if err != nil {
		b.Fatal(err)
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // without prepared statements
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	for b.Loop() {
		if due, err := postgres.Unsettled(b.Context(), pool, time.Now(), 100); err != nil || len(due) > 0 {
			b.Fatal(due, err)
		}
		if stuck, err := postgres.Stuck(b.Context(), pool, 0, time.Now()); err != nil || len(stuck) > 0 {
			b.Fatal(stuck, err)
		}
	}
}
