package branchfile

import (
	"go.yaml.in/yaml/v4"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// readRefundPolicy reads the tiers of a refund policy: [{untilMinutesBefore: 1440, percent: 100}, …].
func (r *reader) readRefundPolicy(n *yaml.Node) (policy booking.RefundPolicy) {
	r.list(n, "refundPolicy", func(item *yaml.Node) {
		var tier booking.RefundTier
		r.mapping(item, "a tier of refundPolicy",
			required("untilMinutesBefore", r.number("untilMinutesBefore", booking.MaxHorizonDays*24*60, &tier.UntilMinutesBefore)),
			required("percent", r.number("percent", 100, &tier.Percent)))
		policy = append(policy, tier)
	})
	policy = policy.Sorted()
	r.check(n, policy.Validate())
	return policy
}

// readCompensation reads the compensation of a branch.
func (r *reader) readCompensation(n *yaml.Node) (c booking.Compensation) {
	r.mapping(n, "compensation",
		required("afterMinutes", r.number("afterMinutes", 60, &c.AfterMinutes)),
		optional("extendFirst", func(n *yaml.Node) { c.ExtendFirst = r.truth(n, "extendFirst") }),
		optional("wonPerMinute", r.number("wonPerMinute", booking.MaxPrice, &c.WonPerMinute)),
		optional("fullAfterMinutes", r.number("fullAfterMinutes", 300, &c.FullAfterMinutes)),
		optional("perPhonePerMonth", r.number("perPhonePerMonth", 1000, &c.PerPhonePerMonth)))
	r.check(n, c.Validate())
	return c
}

func (r *reader) number(what string, most int, into *int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if value, ok := r.whole(n, what, 0, most); ok {
			*into = value
		}
	}
}
