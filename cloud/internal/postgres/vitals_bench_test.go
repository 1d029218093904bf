package postgres_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// BenchmarkVitals reads the figures of a scrape with a history of YEOLDA_BENCH_RESERVATIONS reservations (100,000), ten
// minutes apart, and as many payments, callbacks, door requests and messages. deploy/README.md, Operations, has the figures.
func BenchmarkVitals(b *testing.B) {
	n := 100_000
	if text := os.Getenv("YEOLDA_BENCH_RESERVATIONS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	db := pgtest.New(b)
	began := time.Now()
	history(b, db, n)
	b.Logf("%d reservations within %s", n, time.Since(began).Round(time.Second))
	const rounds = 50
	var took []float64
	for range rounds {
		began := time.Now()
		if _, err := postgres.ReadVitals(b.Context(), db.Pool, time.Now(), time.Second); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(began).Microseconds())/1000)
	}
	b.ReportMetric(took[0], "first-ms")
	b.ReportMetric(median(took), "p50-ms")
	b.ReportMetric(slices.Max(took), "max-ms")
	b.ReportMetric(0, "ns/op")
}
