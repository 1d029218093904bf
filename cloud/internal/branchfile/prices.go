package branchfile

import (
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// tiers returns the fields of a price list.
func (r *reader) tiers(p *booking.Price) []field {
	tier := func(name string, to **int) field {
		return optional(name, func(n *yaml.Node) {
			if won, ok := r.whole(n, name, booking.MinPrice, booking.MaxPrice); ok {
				*to = &won
			}
		})
	}
	return []field{tier("min10", &p.Min10), tier("min30", &p.Min30), tier("min60", &p.Min60)}
}

// readPriceRules reads the price rules of a room: the last one that applies counts.
func (r *reader) readPriceRules(n *yaml.Node) (rules []booking.PriceRule) {
	r.list(n, "prices", func(n *yaml.Node) {
		var rule booking.PriceRule
		fields := []field{
			required("from", func(n *yaml.Node) { rule.From, _ = r.date(n, "from") }),
			optional("days", func(n *yaml.Node) {
				r.list(n, "days", func(n *yaml.Node) {
					day, ok := weekday(n.Value)
					if !ok {
						r.problem(n, "day %q; expected mon, tue, wed, thu, fri, sat or sun", n.Value)
					}
					rule.Days = append(rule.Days, day)
				})
			}),
			optional("holidays", func(n *yaml.Node) { rule.Holidays = r.truth(n, "holidays") }),
			optional("hours", func(n *yaml.Node) {
				if spans := r.spans(n, "18:00-24:00"); len(spans) == 1 {
					rule.Hours = &spans[0]
				} else if len(spans) > 1 {
					r.problem(n, "several spans of time; expected one for each rule")
				}
			}),
		}
		r.mapping(n, "a price rule", append(fields, r.tiers(&rule.Price)...)...)
		r.check(n, rule.Validate())
		rules = append(rules, rule)
	})
	if len(rules) > booking.MaxPriceRules {
		r.problem(n, "%d price rules; expected at most %d", len(rules), booking.MaxPriceRules)
	}
	return rules
}

func weekday(key string) (time.Weekday, bool) {
	for _, w := range weekdays {
		if w.key == key {
			return w.day, true
		}
	}
	return 0, false
}
