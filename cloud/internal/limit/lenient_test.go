package limit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
)

// Each of two replicas lets a tenth pass without the database, and they share the rest.
func TestLenient(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	limits := &limit.Limiter{DB: db}
	rule := limit.Rule{Name: "lenient", Max: 20, Window: time.Hour}
	var here, there limit.Lenient
	counted := func() (n int) {
		if err := db.Pool.QueryRow(t.Context(), `select coalesce(sum(count), 0) from rate_limit`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	take := func(replica *limit.Lenient, subject string, times int) {
		t.Helper()
		for range times {
			if err := replica.Take(t.Context(), limits, rule, subject); err != nil {
				t.Fatal(err)
			}
		}
	}
	take(&here, "a", 2)
	take(&there, "a", 2)
	if n := counted(); n != 0 {
		t.Errorf("%d tries of a well-behaved client are in the database, want 0", n)
	}
	take(&here, "a", 12)
	take(&there, "a", 8)
	exceeded := new(limit.ExceededError)
	for _, replica := range []*limit.Lenient{&here, &there} {
		if err := replica.Take(t.Context(), limits, rule, "a"); !errors.As(err, &exceeded) || exceeded.RetryAfter <= 0 {
			t.Errorf("got %v", err)
		}
	}
	take(&here, "b", 1)
	take(new(limit.Lenient), "a", 2)
	limits.Off = true
	take(&here, "a", 100)
}
