package booking_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

var (
	noon   = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	policy = booking.RefundPolicy{{UntilMinutesBefore: 24 * 60, Percent: 100}, {UntilMinutesBefore: 90, Percent: 33}, {UntilMinutesBefore: 60, Percent: 0}}
)

// TestRefundPolicyAtItsDeadlines: a deadline belongs to the share that it ends.
func TestRefundPolicyAtItsDeadlines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy  booking.RefundPolicy
		before  time.Duration // the start
		percent int
		refund  int // of 1000 won
	}{
		{nil, 48 * time.Hour, 100, 1000},
		{nil, booking.RefundLead, 100, 1000},
		{nil, booking.RefundLead - 1, 0, 0},
		{policy, 24 * time.Hour, 100, 1000},
		{policy, 24*time.Hour - 1, 33, 330},
		{policy, 90 * time.Minute, 33, 330},
		{policy, 90*time.Minute - 1, 0, 0},
		{policy, time.Minute, 0, 0},
		{policy, -time.Hour, 0, 0},
	} {
		now := noon.Add(-c.before)
		if got := c.policy.Percent(noon, now); got != c.percent {
			t.Errorf("%v before: %d %%, want %d", c.before, got, c.percent)
		}
		if got := c.policy.Refund(1000, noon, now); got != c.refund {
			t.Errorf("%v before: %d won, want %d", c.before, got, c.refund)
		}
	}
	// Shares of a won are not returned.
	if got := policy.Refund(199, noon, noon.Add(-2*time.Hour)); got != 65 {
		t.Errorf("33 %% of 199 won: %d, want 65", got)
	}
}

func TestRefundableUntil(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		policy booking.RefundPolicy
		until  time.Time
	}{
		{"default", nil, noon.Add(-booking.RefundLead)},
		{"the last share that returns money", policy, noon.Add(-90 * time.Minute)},
		{"nothing at all", booking.RefundPolicy{{UntilMinutesBefore: 60, Percent: 0}}, time.Time{}},
	} {
		if until := c.policy.RefundableUntil(noon); !until.Equal(c.until) {
			t.Errorf("%s: %s, want %s", c.what, until, c.until)
		}
	}
}

func TestRefundPolicyTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{booking.RefundPolicy(nil).Korean(), "시작 30분 전까지 취소하면 100%를 환불해 드려요. 그 뒤에는 환불되지 않아요."},
		{booking.RefundPolicy(nil).English(), "We refund 100% if you cancel at least 30 minutes before the start. After that nothing is refunded."},
		{
			policy.Korean(),
			"시작 1일 전까지 취소하면 100%, 시작 1시간 30분 전까지 취소하면 33%, 시작 1시간 전까지 취소하면 0%를 환불해 드려요. 그 뒤에는 환불되지 않아요.",
		},
		{
			booking.RefundPolicy{{UntilMinutesBefore: 24*60 + 60 + 1, Percent: 50}}.English(),
			"We refund 50% if you cancel at least 1 day 1 hour 1 minute before the start. After that nothing is refunded.",
		},
		{
			booking.RefundPolicy{{UntilMinutesBefore: 3*24*60 + 2*60 + 31, Percent: 50}}.English(),
			"We refund 50% if you cancel at least 3 days 2 hours 31 minutes before the start. After that nothing is refunded.",
		},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

func TestParseRefundPolicy(t *testing.T) {
	t.Parallel()
	if p, err := booking.ParseRefundPolicy(nil); p != nil || err != nil {
		t.Errorf("nothing stored: %v, %v", p, err)
	}
	p, err := booking.ParseRefundPolicy([]byte(`[{"untilMinutesBefore": 90, "percent": 33}]`))
	if err != nil || len(p) != 1 || p[0] != policy[1] {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := booking.ParseRefundPolicy([]byte(`{`)); err == nil {
		t.Error("a damaged policy was read")
	}
}

// TestCompensation: minutes and slots that have begun count whole, and never more is returned than was paid.
func TestCompensation(t *testing.T) {
	t.Parallel()
	byMinute := booking.Compensation{AfterMinutes: 3, WonPerMinute: 100, FullAfterMinutes: 20}
	never := booking.Compensation{AfterMinutes: 3, WonPerMinute: 100}
	for _, c := range []struct {
		rule      booking.Compensation
		stuck     time.Duration
		won       int // of 1500
		extension time.Duration
	}{
		{byMinute, 3 * time.Minute, 300, 10 * time.Minute},
		{byMinute, 3*time.Minute + 1, 400, 10 * time.Minute},
		{byMinute, 0, 0, 10 * time.Minute},
		{byMinute, 10 * time.Minute, 1000, 10 * time.Minute},
		{byMinute, 10*time.Minute + 1, 1100, 20 * time.Minute},
		{byMinute, 19 * time.Minute, 1500, 20 * time.Minute},
		{byMinute, 20 * time.Minute, 1500, 20 * time.Minute},
		{booking.Compensation{AfterMinutes: 3, FullAfterMinutes: 20}, 19 * time.Minute, 0, 20 * time.Minute},
		{booking.Compensation{AfterMinutes: 3, FullAfterMinutes: 20}, 19*time.Minute + 1, 1500, 20 * time.Minute},
		{never, 5 * time.Minute, 500, 10 * time.Minute},
	} {
		if got := c.rule.Won(1500, c.stuck); got != c.won {
			t.Errorf("%+v after %v: %d won, want %d", c.rule, c.stuck, got, c.won)
		}
		if got := c.rule.Extension(c.stuck); got != c.extension {
			t.Errorf("%+v after %v: %v longer, want %v", c.rule, c.stuck, got, c.extension)
		}
	}
	once := booking.Compensation{AfterMinutes: 3, FullAfterMinutes: 3}
	for _, c := range []struct {
		rule  booking.Compensation
		stuck time.Duration
		want  bool
	}{{byMinute, 20*time.Minute - 1, false}, {byMinute, 20 * time.Minute, true}, {never, time.Hour, false}, {once, time.Hour, false}} {
		if got := c.rule.Whole(c.stuck); got != c.want {
			t.Errorf("%+v: everything after %v: %t, want %t", c.rule, c.stuck, got, c.want)
		}
	}
	if (booking.Compensation{WonPerMinute: 100}).On() || !never.On() {
		t.Error("a branch compensates from a number of minutes on")
	}
}
