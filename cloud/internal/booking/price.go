package booking

import "time"

// Price is the price list of a room, in won per 10, 30 and 60 minutes. A tier that is nil is not on offer.
type Price struct {
	Min10, Min30, Min60 *int
}

// For returns the price of a length: as many hours as fit, then half hours, then ten minutes; tiers that are nil are
// skipped (docs/specification.md, Prices 1). ok is false if the tiers cannot make up the length exactly; customers cannot
// reserve such a length. Taking the longest tier first never misses a combination, because each tier divides the next.
func (p Price) For(length time.Duration) (won int, ok bool) {
	if length <= 0 {
		return 0, false
	}
	for _, tier := range p.tiers() {
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

// tier is the price of a length.
type tier struct {
	length time.Duration
	won    *int // nil: not on offer
}

// tiers returns the tiers, the longest first.
func (p Price) tiers() [3]tier {
	return [3]tier{{60 * time.Minute, p.Min60}, {30 * time.Minute, p.Min30}, {10 * time.Minute, p.Min10}}
}

// Hourly returns the price by which rooms are sorted: min60, else 2 × min30, else 6 × min10 (docs/specification.md,
// Prices 2). ok is false without any tier.
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
