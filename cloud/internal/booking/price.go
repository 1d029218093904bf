package booking

import "time"

// Price is what a room costs, in won per 10, 30 and 60 minutes. A nil tier is
// not on offer; a tier of zero is free.
type Price struct {
	Min10, Min30, Min60 *int
}

// For returns the price of a length: as many 60s as fit, then as many 30s, then
// 10s, a tier that is nil skipped (decisions.md 4). It is not ok when the tiers
// cannot make up the length exactly; then a customer cannot reserve it.
//
// Taking the longest tier first never misses a way, as each tier divides the
// next.
func (p Price) For(length time.Duration) (won int, ok bool) {
	if length <= 0 {
		return 0, false
	}
	for _, tier := range []struct {
		length time.Duration
		won    *int
	}{
		{60 * time.Minute, p.Min60},
		{30 * time.Minute, p.Min30},
		{10 * time.Minute, p.Min10},
	} {
		if tier.won != nil {
			won += int(length/tier.length) * *tier.won
			length %= tier.length
		}
	}
	if length != 0 {
		return 0, false
	}
	return won, true
}

// Hourly returns the price per hour by which rooms are ordered: min60, else
// 2 × min30, else 6 × min10 (decisions.md 3). It is not ok without any tier.
func (p Price) Hourly() (won int, ok bool) {
	switch {
	case p.Min60 != nil:
		return *p.Min60, true
	case p.Min30 != nil:
		return 2 * *p.Min30, true
	case p.Min10 != nil:
		return 6 * *p.Min10, true
	}
	return 0, false
}
