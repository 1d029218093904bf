package booking

import (
	"testing"
	"time"
)

func TestRefundableUntil(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		policy RefundPolicy
		until  time.Time
	}{
		"default":                       {nil, start.Add(-RefundLead)},
		"the last share":                {RefundPolicy{{24 * 60, 100}, {60, 50}}, start.Add(-time.Hour)},
		"nothing after the first share": {RefundPolicy{{24 * 60, 100}, {60, 0}}, start.Add(-24 * time.Hour)},
		"nothing at all":                {RefundPolicy{{24 * 60, 0}}, time.Time{}},
	} {
		if until := test.policy.RefundableUntil(start); !until.Equal(test.until) {
			t.Errorf("%s: %s, want %s", name, until, test.until)
		}
	}
}
