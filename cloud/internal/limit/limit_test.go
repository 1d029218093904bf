package limit_test

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

var rule = limit.Rule{Name: "test", Max: 3, Window: time.Minute}

func TestWindowBeginsWithTheFirstTry(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Date(2026, 11, 21, 12, 0, 59, 0, time.UTC)
	db.Now = func() time.Time { return now }
	l := &limit.Limiter{DB: db}
	for step, c := range []struct {
		after time.Duration
		wait  time.Duration // 0 means allowed
	}{
		{0, 0}, {time.Second, 0}, {time.Second, 0}, // crosses a full minute of the clock
		{time.Second, 57 * time.Second},
		{56 * time.Second, time.Second},
		{time.Second, 0}, {0, 0}, {0, 0},
		{time.Second, 59 * time.Second},
	} {
		now = now.Add(c.after)
		err := l.Take(t.Context(), rule, "a")
		exceeded := new(limit.ExceededError)
		if (c.wait == 0) != (err == nil) || (c.wait != 0 && (!errors.As(err, &exceeded) || exceeded.RetryAfter != c.wait)) {
			t.Errorf("step %d: %v, want a wait of %s", step, err, c.wait)
		}
	}
	if err := l.Take(t.Context(), rule, "b"); err != nil {
		t.Errorf("attempt of another subject: %v", err)
	}
	if err := l.Take(t.Context(), limit.Rule{Name: "other", Max: 1, Window: time.Minute}, "a"); err != nil {
		t.Errorf("attempt under another rule: %v", err)
	}
	if err := postgres.PurgeRateLimits(t.Context(), db.Pool, now); err != nil {
		t.Error(err)
	}
}

// TestWindowOfAFastClockDoesNotLast exhausts a limit while the clock of the database is nine hours ahead, as in a machine that keeps local
// time. Once the clock is right, the subject must not wait nine hours.
func TestWindowOfAFastClockDoesNotLast(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	right := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	now := right.Add(9 * time.Hour)
	db.Now = func() time.Time { return now }
	l := &limit.Limiter{DB: db}
	for range rule.Max + 1 {
		_ = l.Take(t.Context(), rule, "a") // the last one is refused
	}
	if err := l.Check(t.Context(), rule, "a"); !errors.Is(err, limit.ErrExceeded) {
		t.Fatalf("while the clock is ahead: got %v, want ErrExceeded", err)
	}
	now = right
	if err := l.Check(t.Context(), rule, "a"); err != nil {
		t.Errorf("check by the right clock: %v", err)
	}
	for n := range rule.Max {
		if err := l.Take(t.Context(), rule, "a"); err != nil {
			t.Errorf("attempt %d by the right clock: %v", n, err)
		}
	}
	now = right.Add(-time.Second) // of a replica that lags behind
	if err := l.Take(t.Context(), rule, "a"); !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("beyond the limit, a second behind the window: got %v, want ErrExceeded", err)
	}
	if err := l.Check(t.Context(), rule, "a"); !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("checked a second behind the window: got %v, want ErrExceeded", err)
	}
}

func TestCountIsExactUnderLoad(t *testing.T) {
	t.Parallel()
	l := &limit.Limiter{DB: pgtest.New(t)}
	var allowed atomic.Int32
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			switch err := l.Take(t.Context(), rule, "a"); {
			case err == nil:
				allowed.Add(1)
			case !errors.Is(err, limit.ErrExceeded):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 3 {
		t.Errorf("%d were allowed, not 3", allowed.Load())
	}
}

func TestCheckCountsNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	db.Now = func() time.Time { return now }
	l := &limit.Limiter{DB: db}
	for try := range 3 {
		for range 5 {
			if err := l.Check(t.Context(), rule, "a"); err != nil {
				t.Fatalf("after %d attempts: %v", try, err)
			}
		}
		if err := l.Take(t.Context(), rule, "a"); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(20 * time.Second)
	exceeded := new(limit.ExceededError)
	if err := l.Check(t.Context(), rule, "a"); !errors.As(err, &exceeded) || exceeded.RetryAfter != 40*time.Second {
		t.Errorf("after 3 attempts: %v", err)
	}
	now = now.Add(40 * time.Second)
	if err := l.Check(t.Context(), rule, "a"); err != nil {
		t.Errorf("after one window: %v", err)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"203.0.113.7":          "203.0.113.7",
		"::ffff:203.0.113.7":   "203.0.113.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1:2:3:4%eth0":   "fe80::/64",
		"2001:db8:1:2:ffff::1": "2001:db8:1:2::/64",
		"2001:db8:1:3:3:4:5:6": "2001:db8:1:3::/64",
	} {
		if got := limit.Address(netip.MustParseAddr(in)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for client, want := range map[string]string{
		"203.0.113.7": "203.0.113.0/24", "2001:db8:1:2::/64": "2001:db8:1::/48", "": "", "cli": "cli",
	} {
		if got := limit.Network(client); got != want {
			t.Errorf("network of %q: got %q, want %q", client, got, want)
		}
	}
}
