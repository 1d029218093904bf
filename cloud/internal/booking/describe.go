package booking

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Fact is one property of a branch or a room in words. Equal texts mean equal values.
type Fact struct{ Name, Text string }

// Facts describes the settings of a branch, its rooms aside.
func (b Branch) Facts() []Fact {
	return []Fact{
		{"name", fmt.Sprintf("%q", b.NameKo)},
		{"English name", fmt.Sprintf("%q", b.NameEn)},
		{"address", fmt.Sprintf("%q", b.Address)},
		{"location", b.Location.text()},
		{"phone", fmt.Sprintf("%q", b.Phone)},
		{"time zone", b.Zone.String()},
		{"horizon", fmt.Sprintf("%d days", b.Horizon/(24*time.Hour))},
		{"front doors", strings.Join(b.FrontDoors, " ")},
		{"keypads", formatKeypads(b.Keypads)},
		{"hours", formatWeek(b.Schedule.Week, formatOpen)},
		{"breaks", formatWeek(b.Schedule.Week, formatBreaks)},
		{"closures", formatClosures(b.Schedule.Closures)},
		{"holidays", formatHolidays(b.Schedule)},
		{"refund policy", b.RefundPolicy.text()},
		{"compensation", b.Compensation.text()},
	}
}

// Facts describes the settings of a room.
func (r Room) Facts() []Fact {
	facts := []Fact{
		{"machine", fmt.Sprintf("%q", r.Machine)},
		{"grade", cmp.Or(string(r.Grade), "none")},
		{"price", r.Price.text() + formatPriceRules(r.PriceRules)},
	}
	if r.Enabled {
		return append(facts, Fact{"state", "enabled"})
	}
	return append(facts, Fact{"state", "disabled"})
}

// Differences describes each fact that changed, such as phone "02-1" → "02-2".
func Differences(old, shall []Fact) []string {
	var list []string
	for i, f := range shall {
		if old[i].Text != f.Text {
			list = append(list, fmt.Sprintf("%s %s → %s", f.Name, old[i].Text, f.Text))
		}
	}
	return list
}

// Sentence joins facts into one line.
func Sentence(facts []Fact) string {
	texts := make([]string, len(facts))
	for i, f := range facts {
		texts[i] = f.Name + " " + f.Text
	}
	return strings.Join(texts, ", ")
}

func formatClosures(closures []Closure) string {
	if len(closures) == 0 {
		return "none"
	}
	texts := make([]string, len(closures))
	for i, c := range closures {
		texts[i] = fmt.Sprintf("%s to %s %q", c.From, c.To, c.Reason)
	}
	return strings.Join(texts, "; ")
}

func formatHolidays(s Schedule) string {
	text := "open"
	if s.ClosedOnHolidays {
		text = "closed"
	}
	dates := func(name string, list []Date) {
		for _, d := range list {
			text += fmt.Sprintf("; %s %s", name, d)
		}
	}
	dates("open on", s.OpenHolidays)
	for _, d := range slices.SortedFunc(maps.Keys(s.ExtraHolidays), func(a, b Date) int {
		return cmp.Compare(a.String(), b.String())
	}) {
		text += fmt.Sprintf("; also %s %q", d, s.ExtraHolidays[d])
	}
	dates("not", s.RemovedHolidays)
	return text
}

// formatWeek formats opening hours or breaks in one line and groups equal days: "mon closed, tue-sun 10:00-22:00".
func formatWeek(week [7]Day, format func(Day) string) string {
	var parts []string
	fromMonday := func(i int) time.Weekday { return time.Weekday((i + 1) % 7) }
	short := func(i int) string { return strings.ToLower(fromMonday(i).String()[:3]) }
	for i := 0; i < len(week); {
		text := format(week[fromMonday(i)])
		last := i
		for last+1 < len(week) && format(week[fromMonday(last+1)]) == text {
			last++
		}
		days := short(i)
		if last > i {
			days += "-" + short(last)
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

func formatOpen(d Day) string {
	switch {
	case d.Closed:
		return "closed"
	case len(d.Open) == 0:
		return "00:00-24:00"
	}
	return formatSpans(d.Open)
}

func formatBreaks(d Day) string { return formatSpans(d.Breaks) }

func formatSpans(spans []ClockSpan) string {
	texts := make([]string, len(spans))
	for i, s := range spans {
		texts[i] = s.String()
	}
	return strings.Join(texts, " and ")
}
