package sandbox

import (
	"testing"
	"time"
)

// The provider pays out on business days.
func TestPayOutDay(t *testing.T) {
	t.Parallel()
	for sold, want := range map[string]string{
		"2026-11-23T03:00:00Z": "2026-11-25", // Monday
		"2026-11-26T03:00:00Z": "2026-11-30", // Thursday
		"2026-11-27T15:30:00Z": "2026-12-01", // Saturday in Seoul
		"2026-12-23T03:00:00Z": "2026-12-28", // Christmas and a weekend follow
		"2026-09-22T03:00:00Z": "2026-09-28", // 추석 and a weekend follow
	} {
		at, err := time.Parse(time.RFC3339, sold)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Transaction{TransactionAt: at}).settle().PaidOutDate; got != want {
			t.Errorf("sold at %s: paid out on %s, want %s", sold, got, want)
		}
	}
}
