package condition

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReminders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := Condition{Log: slog.New(slog.NewTextHandler(&out, nil)), Name: "relay line"}
		lines := func() int { return strings.Count(out.String(), "\n") }
		c.Set(nil)
		for i := range 10 {
			if lasted := c.Set(errors.New("no such device")); lasted != time.Duration(i)*time.Second {
				t.Errorf("the failure has lasted for %v, want %ds", lasted, i)
			}
			time.Sleep(time.Second)
		}
		if n := lines(); n != 1 {
			t.Errorf("%d lines for a new failure, want 1:\n%s", n, out.String())
		}
		for range 24 * 60 * 60 {
			c.Set(errors.New("no such device"))
			time.Sleep(time.Second)
		}
		if n := lines(); n < 24 || n > 32 {
			t.Errorf("%d lines a day, want one or two an hour", n)
		}
		c.Set(nil)
		c.Set(nil)
		if !strings.HasSuffix(strings.TrimSpace(out.String()), `msg="relay line works again" after=24h0m10s`) {
			t.Errorf("the end is not logged:\n%s", out.String())
		}
	})
}

// TestFlapping checks that a loose contact, which fails and recovers every second, does not fill the log.
func TestFlapping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := Condition{Log: slog.New(slog.NewTextHandler(&out, nil)), Name: "sensor"}
		for range 12 * 60 * 60 {
			c.Set(errors.New("remote I/O error"))
			time.Sleep(time.Second)
			c.Set(nil)
			time.Sleep(time.Second)
		}
		if n := strings.Count(out.String(), "\n"); n < 24 || n > 80 {
			t.Errorf("%d lines a day, want a few an hour", n)
		}
		time.Sleep(2 * maxReminder)
		before := out.Len()
		c.Set(errors.New("remote I/O error"))
		if out.Len() == before {
			t.Error("a new failure after hours without one is not logged at once")
		}
	})
}
