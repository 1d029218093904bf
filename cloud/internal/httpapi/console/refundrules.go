package console

import (
	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// wireRefundRules are the refund policy and the compensation of a branch. A field that a change omits keeps its value; an
// empty policy is the default, and compensation null is none.
type wireRefundRules struct {
	RefundPolicy *booking.RefundPolicy           `json:"refundPolicy"`
	RefundText   *wireRefundText                 `json:"refundPolicyText,omitempty"`
	Compensation optional[*booking.Compensation] `json:"compensation"`
}

// wireRefundText is the sentence that guests read, in both languages.
type wireRefundText struct {
	Korean  string `json:"ko"`
	English string `json:"en"`
}

func toWireRefundRules(b booking.Branch) wireRefundRules {
	policy := b.RefundPolicy.OrDefault()
	rules := wireRefundRules{RefundPolicy: &policy, RefundText: &wireRefundText{policy.Korean(), policy.English()}}
	if b.Compensation.On() {
		rules.Compensation.value = &b.Compensation
	}
	return rules
}

func (r wireRefundRules) apply(b *booking.Branch) {
	if r.RefundPolicy != nil {
		b.RefundPolicy = *r.RefundPolicy
	}
	if r.Compensation.given {
		b.Compensation = booking.Compensation{}
		if r.Compensation.value != nil {
			b.Compensation = *r.Compensation.value
		}
	}
}
