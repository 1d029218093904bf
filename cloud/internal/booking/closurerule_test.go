package booking_test

import (
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func TestClosureRule(t *testing.T) {
	t.Parallel()
	today := date("2027-02-28")
	for _, c := range []struct {
		what string
		rule booking.ClosureRule
		want string // the first days
		n    int    // within two years
	}{
		{"a span", booking.ClosureRule{From: date("2027-03-01"), To: date("2027-03-05")}, "2027-03-01 to 2027-03-05", 1},
		{"a fourth Sunday", booking.ClosureRule{Weekday: time.Sunday, Nth: 4}, "2027-02-28 2027-03-28 2027-04-25", 25},
		{"a first Monday", booking.ClosureRule{Weekday: time.Monday, Nth: 1}, "2027-03-01 2027-04-05 2027-05-03", 24},
		{"a fifth Wednesday", booking.ClosureRule{Weekday: time.Wednesday, Nth: 5}, "2027-03-31 2027-06-30 2027-09-29", 9},
		{"a day of the year", booking.ClosureRule{Yearly: date("2000-12-25")}, "2027-12-25 2028-12-25", 2},
		{"today", booking.ClosureRule{Yearly: date("2000-02-28")}, "2027-02-28 2028-02-28", 2},
		{"a leap day", booking.ClosureRule{Yearly: date("2000-02-29")}, "2028-02-29", 1},
	} {
		closures := c.rule.Closures(today, "점검")
		var days []string
		for _, closure := range closures[:min(3, len(closures))] {
			text := closure.From.String()
			if closure.To != closure.From {
				text += " to " + closure.To.String()
			}
			days = append(days, text)
			if closure.Reason != "점검" {
				t.Errorf("%s: reason %q", c.what, closure.Reason)
			}
		}
		if got := strings.Join(days, " "); got != c.want || len(closures) != c.n {
			t.Errorf("%s: %s, %d in all; want %s, %d in all", c.what, got, len(closures), c.want, c.n)
		}
	}
}

// Closures are added once and in order, and only those that are named are removed.
func TestScheduleWithClosures(t *testing.T) {
	t.Parallel()
	on := func(text string) booking.Closure { return booking.Closure{From: date(text), To: date(text)} }
	a, b, c := on("2027-01-01"), on("2027-02-01"), on("2027-03-01")
	before := booking.Schedule{Closures: []booking.Closure{b}}
	after := before.WithClosures([]booking.Closure{c, b, a})
	equal(t, "with further closures", after.Closures, []booking.Closure{a, b, c})
	again := on("2027-02-01")
	again.Reason = "b"
	equal(t, "with another reason", after.WithClosures([]booking.Closure{again}).Closures, []booking.Closure{a, b, again, c})
	equal(t, "with the first reason again", after.WithClosures([]booking.Closure{again}).WithClosures([]booking.Closure{b}).Closures, []booking.Closure{a, again, b, c})
	equal(t, "without one", after.WithoutClosures([]booking.Closure{b}).Closures, []booking.Closure{a, c})
	equal(t, "the schedule before", before.Closures, []booking.Closure{b})
	equal(t, "the schedule after", after.Closures, []booking.Closure{a, b, c})
}
