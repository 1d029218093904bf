package booking

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxRefundTiers bounds a refund policy.
const MaxRefundTiers = 10

// RefundTier is the share of a payment that a customer gets back when canceling in time.
type RefundTier struct {
	UntilMinutesBefore int `json:"untilMinutesBefore"` // the start; the moment itself is in time
	Percent            int `json:"percent"`
}

// deadline returns the last moment of the tier for a stay that starts then.
func (t RefundTier) deadline(start time.Time) time.Time {
	return start.Add(-time.Duration(t.UntilMinutesBefore) * time.Minute)
}

// RefundPolicy holds the shares from the earliest deadline to the latest. After the last one nothing is returned. Whatever
// the policy, a customer cannot cancel later than [RefundLead] before the start.
type RefundPolicy []RefundTier

// OrDefault returns the policy or, if it is empty, the rule of a branch without one (docs/specification.md, Refunds 1).
func (p RefundPolicy) OrDefault() RefundPolicy {
	if len(p) == 0 {
		return RefundPolicy{{UntilMinutesBefore: int(RefundLead / time.Minute), Percent: 100}}
	}
	return p
}

// Percent returns the share that a cancellation at now returns.
func (p RefundPolicy) Percent(start, now time.Time) int {
	for _, tier := range p.OrDefault() {
		if !now.After(tier.deadline(start)) {
			return tier.Percent
		}
	}
	return 0
}

// RefundableUntil returns the last moment at which a cancellation returns money, or the zero time if none does.
func (p RefundPolicy) RefundableUntil(start time.Time) (until time.Time) {
	for _, tier := range p.OrDefault() {
		if tier.Percent > 0 {
			until = tier.deadline(start)
		}
	}
	return until
}

// Refund returns the won of a balance that a cancellation at now returns, rounded down.
func (p RefundPolicy) Refund(balance int, start, now time.Time) int {
	return int(int64(balance) * int64(p.Percent(start, now)) / 100)
}

// Sorted returns the policy with the earliest deadline first: a file or a client may list the shares in any order.
func (p RefundPolicy) Sorted() RefundPolicy {
	return slices.SortedStableFunc(slices.Values(p), func(a, b RefundTier) int { return cmp.Compare(b.UntilMinutesBefore, a.UntilMinutesBefore) })
}

// Validate returns an [InvalidError] for a policy with deadlines out of order or out of bounds, or with a share that grows.
// No deadline is later than [RefundLead]: the PIN of a stay is disclosed then.
func (p RefundPolicy) Validate() error {
	const field = "refundPolicy"
	if len(p) > MaxRefundTiers {
		return invalid(field, "%d tiers; expected at most %d", len(p), MaxRefundTiers)
	}
	for i, tier := range p {
		switch {
		case tier.UntilMinutesBefore < int(RefundLead/time.Minute) || tier.UntilMinutesBefore > MaxHorizonDays*24*60:
			return invalid(field, "untilMinutesBefore %d; expected %d to %d", tier.UntilMinutesBefore, RefundLead/time.Minute, MaxHorizonDays*24*60)
		case tier.Percent < 0 || tier.Percent > 100:
			return invalid(field, "percent %d; expected 0 to 100", tier.Percent)
		case i > 0 && tier.UntilMinutesBefore >= p[i-1].UntilMinutesBefore:
			return invalid(field, "untilMinutesBefore %d is not below the one before it", tier.UntilMinutesBefore)
		case i > 0 && tier.Percent > p[i-1].Percent:
			return invalid(field, "percent %d is above that of an earlier deadline", tier.Percent)
		}
	}
	return nil
}

// Korean and English return the policy in one sentence, the same before the payment, in the terms and at the cancellation.
func (p RefundPolicy) Korean() string {
	var parts []string
	for _, tier := range p.OrDefault() {
		parts = append(parts, fmt.Sprintf("시작 %s 전까지 취소하면 %d%%", spanText(tier.UntilMinutesBefore, "일", "시간", "분", ""), tier.Percent))
	}
	return strings.Join(parts, ", ") + "를 환불해 드려요. 그 뒤에는 환불되지 않아요."
}

// English is described at [RefundPolicy.Korean].
func (p RefundPolicy) English() string {
	var parts []string
	for _, tier := range p.OrDefault() {
		parts = append(parts, fmt.Sprintf("%d%% if you cancel at least %s before the start", tier.Percent, spanText(tier.UntilMinutesBefore, " day", " hour", " minute", "s")))
	}
	return "We refund " + strings.Join(parts, ", ") + ". After that nothing is refunded."
}

// spanText returns minutes in the largest units, such as "1 day 2 hours".
func spanText(minutes int, day, hour, minute, plural string) string {
	var parts []string
	for _, unit := range []struct {
		minutes int
		name    string
	}{{24 * 60, day}, {60, hour}, {1, minute}} {
		n := minutes / unit.minutes
		minutes %= unit.minutes
		if n == 0 {
			continue
		}
		text := fmt.Sprint(n, unit.name)
		if n > 1 {
			text += plural
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// ParseRefundPolicy reads a stored policy; nothing is the default.
func ParseRefundPolicy(stored []byte) (p RefundPolicy, err error) {
	if len(stored) == 0 {
		return nil, nil
	}
	err = json.Unmarshal(stored, &p)
	return p, err
}

// Compensation is what a branch gives a guest whose door does not open. The zero value gives nothing.
type Compensation struct {
	AfterMinutes     int  `json:"afterMinutes"` // after the first failure; 0: no compensation
	ExtendFirst      bool `json:"extendFirst"`  // extend the stay if the next slots are free
	WonPerMinute     int  `json:"wonPerMinute"`
	FullAfterMinutes int  `json:"fullAfterMinutes"` // from then on the whole payment is refunded; 0: never
	PerPhonePerMonth int  `json:"perPhonePerMonth"` // at most; 0: unlimited
}

// On reports whether the branch compensates.
func (c Compensation) On() bool { return c.AfterMinutes > 0 }

// Won returns the refund for a guest who could not enter for a time, of a balance.
func (c Compensation) Won(balance int, stuck time.Duration) int {
	minutes := int((stuck + time.Minute - 1) / time.Minute)
	if c.FullAfterMinutes > 0 && minutes >= c.FullAfterMinutes {
		return balance
	}
	return min(balance, minutes*c.WonPerMinute)
}

// Whole reports whether everything is refunded to a guest who could not enter for a time, after a first step that gave less.
func (c Compensation) Whole(stuck time.Duration) bool {
	return c.FullAfterMinutes > c.AfterMinutes && stuck >= time.Duration(c.FullAfterMinutes)*time.Minute
}

// Extension returns how much longer a stay becomes: the time without entry in whole slots.
func (c Compensation) Extension(stuck time.Duration) time.Duration {
	return max(1, (stuck+SlotLength-1)/SlotLength) * SlotLength //nolint:durationcheck // a number of slots
}

// Validate returns an [InvalidError] for a value out of bounds.
func (c Compensation) Validate() error {
	const field = "compensation"
	for _, v := range []struct {
		name            string
		value, min, max int
	}{
		{"afterMinutes", c.AfterMinutes, 0, 60}, {"wonPerMinute", c.WonPerMinute, 0, MaxPrice},
		{"fullAfterMinutes", c.FullAfterMinutes, 0, 300}, {"perPhonePerMonth", c.PerPhonePerMonth, 0, 1000},
	} {
		if v.value < v.min || v.value > v.max {
			return invalid(field, "%s %d; expected %d to %d", v.name, v.value, v.min, v.max)
		}
	}
	if c.On() && !c.ExtendFirst && c.WonPerMinute == 0 && c.FullAfterMinutes == 0 {
		return invalid(field, "it gives neither time nor money")
	}
	return nil
}

func (p RefundPolicy) text() string {
	var parts []string
	for _, tier := range p.OrDefault() {
		parts = append(parts, fmt.Sprintf("%d%% until %d minutes before", tier.Percent, tier.UntilMinutesBefore))
	}
	return strings.Join(parts, ", ")
}

func (c Compensation) text() string {
	if !c.On() {
		return "none"
	}
	return fmt.Sprintf("after %d minutes, extend first %t, %d won per minute, all after %d minutes, %d per phone and month",
		c.AfterMinutes, c.ExtendFirst, c.WonPerMinute, c.FullAfterMinutes, c.PerPhonePerMonth)
}
