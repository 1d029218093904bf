package branchfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// weekdays are the keys of hours and breaks, from Monday as Korean calendars of shops go.
var weekdays = []struct {
	key string
	day time.Weekday
}{
	{"mon", time.Monday}, {"tue", time.Tuesday}, {"wed", time.Wednesday}, {"thu", time.Thursday},
	{"fri", time.Friday}, {"sat", time.Saturday}, {"sun", time.Sunday},
}

// everyday is the key that sets all weekdays; those that have a key of their own override it.
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
	r.overnight(n, "hours", s, func(d booking.Day) []booking.ClockSpan { return d.Open })
}

// readBreaks reads breaks by weekday.
func (r *reader) readBreaks(n *yaml.Node, s *booking.Schedule) {
	r.week(n, "breaks", func(n *yaml.Node, days ...time.Weekday) {
		spans := r.spans(n, "15:00-16:00 or a list of such spans")
		for _, day := range days {
			s.Week[day].Breaks = spans
		}
	})
	r.overnight(n, "breaks", s, func(d booking.Day) []booking.ClockSpan { return d.Breaks })
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

var spanForm = regexp.MustCompile(`^([0-9]{1,2}):([0-9]{2}) *- *([0-9]{1,2}):([0-9]{2})$`)

// spans reads one span or a list of them, and reports those that overlap.
func (r *reader) spans(n *yaml.Node, expected string) []booking.ClockSpan {
	var spans []booking.ClockSpan
	read := func(n *yaml.Node) {
		span, err := parseSpan(n)
		if err != nil {
			r.problem(n, "%v; expected %s", err, expected)
			return
		}
		for _, earlier := range spans {
			if span.From < earlier.To && earlier.From < span.To {
				r.problem(n, "%s overlaps with %s", formatSpan(span), formatSpan(earlier))
				return
			}
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

// parseSpan reads HH:MM-HH:MM. An end that is not after the start lies on the next day; 24:00 is midnight.
func parseSpan(n *yaml.Node) (booking.ClockSpan, error) {
	if n.Kind != yaml.ScalarNode {
		return booking.ClockSpan{}, fmt.Errorf("%s", kindOf(n))
	}
	parts := spanForm.FindStringSubmatch(n.Value)
	if parts == nil {
		return booking.ClockSpan{}, fmt.Errorf("%s is not a span of time", kindOf(n))
	}
	var m [4]int
	for i := range m {
		m[i], _ = strconv.Atoi(parts[i+1]) // digits
	}
	from, to := m[0]*60+m[1], m[2]*60+m[3]
	switch {
	case m[1] > 59 || m[3] > 59 || from >= 24*60 || to > 24*60:
		return booking.ClockSpan{}, fmt.Errorf("%q is not a time of day", n.Value)
	case from%10 != 0 || to%10 != 0:
		return booking.ClockSpan{}, fmt.Errorf("%q is not on ten-minute marks", n.Value)
	}
	if to <= from {
		to += 24 * 60
	}
	return booking.ClockSpan{From: from, To: to}, nil
}

// overnight reports spans that run past midnight into one of the next day.
func (r *reader) overnight(n *yaml.Node, what string, s *booking.Schedule, spans func(booking.Day) []booking.ClockSpan) {
	const day = 24 * 60
	for i, w := range weekdays {
		next := weekdays[(i+1)%7]
		for _, late := range spans(s.Week[w.day]) {
			for _, early := range spans(s.Week[next.day]) {
				if early.From+day < late.To {
					r.problem(n, "%s of %s, %s, overlap with those of %s, %s", what, w.key, formatSpan(late), next.key, formatSpan(early))
				}
			}
		}
	}
}

func formatSpan(s booking.ClockSpan) string {
	clock := func(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }
	to := s.To
	if to > 24*60 {
		to -= 24 * 60
	}
	return clock(s.From) + "-" + clock(to)
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
			required("reason", func(n *yaml.Node) { c.Reason, _ = r.text(n, "reason", 100) }),
		)
		if from && upTo && c.To.Before(c.From) {
			r.problem(n, "a closure ends on %s, before it begins on %s", c.To, c.From)
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
					required("name", func(n *yaml.Node) { name, _ = r.text(n, "name", 50) }),
				)
				if _, twice := s.ExtraHolidays[date]; ok && twice {
					r.problem(n, "extra holiday %s stands here twice", date)
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

// formatWeek writes opening hours or breaks in a line, days that are alike together: "mon closed, tue-sun 10:00-22:00".
func formatWeek(week [7]booking.Day, format func(booking.Day) string) string {
	var parts []string
	for i := 0; i < len(weekdays); {
		text := format(week[weekdays[i].day])
		last := i
		for last+1 < len(weekdays) && format(week[weekdays[last+1].day]) == text {
			last++
		}
		days := weekdays[i].key
		if last > i {
			days += "-" + weekdays[last].key
		}
		if text != "" {
			parts = append(parts, days+" "+text)
		}
		i = last + 1
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func formatOpen(d booking.Day) string {
	switch {
	case d.Closed:
		return closed
	case len(d.Open) == 0:
		return "00:00-24:00"
	}
	return formatSpans(d.Open)
}

func formatBreaks(d booking.Day) string { return formatSpans(d.Breaks) }

func formatSpans(spans []booking.ClockSpan) string {
	texts := make([]string, len(spans))
	for i, s := range spans {
		texts[i] = formatSpan(s)
	}
	return strings.Join(texts, " and ")
}
