package branchfile

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// weekdays are the keys of hours and breaks, from Monday.
var weekdays = []struct {
	key string
	day time.Weekday
}{
	{"mon", time.Monday}, {"tue", time.Tuesday}, {"wed", time.Wednesday}, {"thu", time.Thursday},
	{"fri", time.Friday}, {"sat", time.Saturday}, {"sun", time.Sunday},
}

// everyday is the key for all weekdays; a weekday's own key overrides it.
const everyday = "everyday"

const closed = "closed"

// readHours reads opening hours by weekday: a span, a list of spans, or closed.
func (r *reader) readHours(n *yaml.Node, s *booking.Schedule) {
	r.week(n, "hours", func(n *yaml.Node, days ...time.Weekday) {
		isClosed := n.Kind == yaml.ScalarNode && n.Value == closed
		var spans []booking.ClockSpan
		if !isClosed {
			spans = r.spans(n, "10:00-22:00, a list of such spans, or closed")
		}
		for _, day := range days {
			s.Week[day].Closed, s.Week[day].Open = isClosed, spans
		}
	})
	var hours booking.Schedule
	for i, day := range s.Week {
		hours.Week[i].Open = day.Open
	}
	r.check(n, hours.Validate())
}

// readBreaks reads breaks by weekday.
func (r *reader) readBreaks(n *yaml.Node, s *booking.Schedule) {
	r.week(n, "breaks", func(n *yaml.Node, days ...time.Weekday) {
		spans := r.spans(n, "15:00-16:00 or a list of such spans")
		for _, day := range days {
			s.Week[day].Breaks = spans
		}
	})
	var breaks booking.Schedule
	for i, day := range s.Week {
		breaks.Week[i].Breaks = day.Breaks
	}
	r.check(n, breaks.Validate())
}

func (r *reader) week(n *yaml.Node, what string, read func(n *yaml.Node, days ...time.Weekday)) {
	fields := []field{optional(everyday, func(n *yaml.Node) {
		read(n, time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday, time.Sunday)
	})}
	for _, w := range weekdays {
		fields = append(fields, optional(w.key, func(n *yaml.Node) { read(n, w.day) }))
	}
	r.mapping(n, what, fields...)
}

// spans reads one span or a list of them.
func (r *reader) spans(n *yaml.Node, expected string) []booking.ClockSpan {
	var spans []booking.ClockSpan
	read := func(n *yaml.Node) {
		from, to, found := strings.Cut(n.Value, "-")
		if n.Kind != yaml.ScalarNode || !found {
			r.problem(n, "%s is not a span of time; expected %s", kindOf(n), expected)
			return
		}
		span, err := booking.ParseClockSpan(strings.TrimSpace(from), strings.TrimSpace(to))
		if err != nil {
			r.problem(n, "%s; expected %s", strings.TrimPrefix(err.Error(), booking.ErrInvalid.Error()+": "), expected)
			return
		}
		spans = append(spans, span)
	}
	if n.Kind == yaml.SequenceNode && len(n.Content) > 0 {
		r.list(n, "the day", read)
	} else {
		read(n)
	}
	slices.SortFunc(spans, func(a, b booking.ClockSpan) int { return a.From - b.From })
	return spans
}

func (r *reader) readClosures(n *yaml.Node, s *booking.Schedule) {
	r.list(n, "closures", func(n *yaml.Node) {
		var (
			c          booking.Closure
			from, upTo bool
		)
		r.mapping(n, "a closure",
			required("from", func(n *yaml.Node) { c.From, from = r.date(n, "from") }),
			required("to", func(n *yaml.Node) { c.To, upTo = r.date(n, "to") }),
			required("reason", func(n *yaml.Node) { c.Reason, _ = r.text(n, "reason", booking.MaxReason) }),
		)
		if from && upTo {
			r.check(n, booking.Schedule{Closures: []booking.Closure{c}}.Validate())
		}
		s.Closures = append(s.Closures, c)
	})
}

func (r *reader) readHolidays(n *yaml.Node, s *booking.Schedule) {
	dates := func(what string, to *[]booking.Date) func(*yaml.Node) {
		return func(n *yaml.Node) {
			r.list(n, what, func(n *yaml.Node) {
				if d, ok := r.date(n, "a date"); ok {
					*to = append(*to, d)
				}
			})
		}
	}
	r.mapping(n, "holidays",
		optional(closed, func(n *yaml.Node) { s.ClosedOnHolidays = r.truth(n, closed) }),
		optional("open", dates("open", &s.OpenHolidays)),
		optional("extra", func(n *yaml.Node) {
			s.ExtraHolidays = map[booking.Date]string{}
			r.list(n, "extra", func(n *yaml.Node) {
				var (
					date booking.Date
					ok   bool
					name string
				)
				r.mapping(n, "an extra holiday",
					required("date", func(n *yaml.Node) { date, ok = r.date(n, "date") }),
					required("name", func(n *yaml.Node) { name, _ = r.text(n, "name", booking.MaxReason) }),
				)
				if _, twice := s.ExtraHolidays[date]; ok && twice {
					r.problem(n, "duplicate extra holiday %s", date)
				}
				if ok {
					s.ExtraHolidays[date] = name
				}
			})
		}),
		optional("removed", dates("removed", &s.RemovedHolidays)),
	)
}

func (r *reader) date(n *yaml.Node, what string) (booking.Date, bool) {
	if n.Kind == yaml.ScalarNode {
		if d, err := booking.ParseDate(n.Value); err == nil {
			return d, true
		}
	}
	r.problem(n, "%s is %s; expected a date such as 2026-12-25", what, kindOf(n))
	return booking.Date{}, false
}
