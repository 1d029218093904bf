package postgres_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// BenchmarkPaymentsOfASweep measures the search for payments that are due or stuck, when none is. Nearly all of it is planning, as in
// the service, where every sweep plans them again.
func BenchmarkPaymentsOfASweep(b *testing.B) {
	db, err := postgres.Open(b.Context(), pgtest.URL(b)+"&default_query_exec_mode=exec", slog.New(slog.DiscardHandler)) // without prepared statements
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for b.Loop() {
		if due, err := postgres.Unsettled(b.Context(), db.Pool, time.Now(), 100); err != nil || len(due) > 0 {
			b.Fatal(due, err)
		}
		if stuck, err := postgres.Stuck(b.Context(), db.Pool, 0, time.Now()); err != nil || len(stuck) > 0 {
			b.Fatal(stuck, err)
		}
	}
}
