package console

import (
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// wireRefundRules are the refund policy and the compensation of a branch. A field that a change omits keeps its value; an
// empty policy means the default, and compensation null means none.
type wireRefundRules struct {
	RefundPolicy *[]wireRefundTier           `json:"refundPolicy"`
	RefundText   *wireRefundText             `json:"refundPolicyText,omitempty"`
	Compensation optional[*wireCompensation] `json:"compensation"`
}

// A share or a deadline that a change omits is not 0 but an error, as in the file of a branch.
type (
	wireRefundTier struct {
		UntilMinutesBefore *int `json:"untilMinutesBefore"`
		Percent            *int `json:"percent"`
	}
	wireCompensation struct {
		booking.Compensation
		AfterMinutes *int `json:"afterMinutes"`
	}
)

// wireRefundText is the sentence that guests read, in both languages.
type wireRefundText struct {
	Korean  string `json:"ko"`
	English string `json:"en"`
}

func toWireRefundRules(b booking.Branch) wireRefundRules {
	policy := b.RefundPolicy.OrDefault()
	tiers := []wireRefundTier{}
	for _, t := range policy {
		tiers = append(tiers, wireRefundTier{&t.UntilMinutesBefore, &t.Percent})
	}
	rules := wireRefundRules{RefundPolicy: &tiers, RefundText: &wireRefundText{policy.Korean(), policy.English()}}
	if b.Compensation.On() {
		rules.Compensation.value = &wireCompensation{b.Compensation, &b.Compensation.AfterMinutes}
	}
	return rules
}

func (r wireRefundRules) apply(b *booking.Branch) error {
	if r.RefundPolicy != nil {
		b.RefundPolicy = booking.RefundPolicy{}
		for _, t := range *r.RefundPolicy {
			if t.UntilMinutesBefore == nil {
				return wire.Missing("refundPolicy.untilMinutesBefore")
			}
			if t.Percent == nil {
				return wire.Missing("refundPolicy.percent")
			}
			b.RefundPolicy = append(b.RefundPolicy, booking.RefundTier{UntilMinutesBefore: *t.UntilMinutesBefore, Percent: *t.Percent})
		}
		b.RefundPolicy = b.RefundPolicy.Sorted()
	}
	if !r.Compensation.given {
		return nil
	}
	b.Compensation = booking.Compensation{}
	if c := r.Compensation.value; c != nil {
		if c.AfterMinutes == nil {
			return wire.Missing("compensation.afterMinutes")
		}
		b.Compensation = c.Compensation
		b.Compensation.AfterMinutes = *c.AfterMinutes
	}
	return nil
}
