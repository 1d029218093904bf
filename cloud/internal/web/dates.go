package web

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const monthLayout = "2006-01"

// dateScreen is the content of the choice of a day.
type dateScreen struct {
	Branch         branchFacts
	Chips          []dayView
	Month          string
	Previous, Next string // addresses; "" for none
	Weekdays       []string
	Weeks          [][]*dayView // nil: not in the month
	Reasons        []reasonList
}

// dayView is a day in the chips or the calendar.
type dayView struct {
	Path, Label, Number, Text string
	Off                       string // why it cannot be chosen
	Never                     string // the same if it is past or too far ahead
	Reason                    string // why it is closed, or its holiday; Korean
	Past, Today, Festive      bool
}

// reasonList lists the days of a month that are closed or open for the same reasons.
type reasonList struct {
	Title string
	Rows  []struct{ Reason, Days string }
}

func (s *site) dates(v *screenView, shell *shellData) error {
	b, err := v.branch()
	if err != nil {
		return err
	}
	v.Back = "/"
	shown := b.today.Format(monthLayout)
	if asked := v.Query.Get("month"); asked >= shown && asked <= b.last.Format(monthLayout) {
		shown = asked
	}
	first, err := time.Parse(monthLayout, shown)
	if err != nil {
		return ErrNoData
	}
	chips, months := []time.Time{}, []string{shown}
	for i := range 7 {
		if day := b.today.AddDate(0, 0, i); !day.After(b.last) {
			chips, months = append(chips, day), append(months, day.Format(monthLayout))
		}
	}
	days, err := v.calendar(b.Branch, months...)
	if err != nil {
		return err
	}
	content := dateScreen{Branch: b.branchFacts, Month: shell.Month(first)}
	for i, day := range chips {
		content.Chips = append(content.Chips, chipOf(shell.speech, b, days, day, i))
	}
	if previous := first.AddDate(0, -1, 0).Format(monthLayout); previous >= b.today.Format(monthLayout) {
		content.Previous = b.Path() + "?month=" + previous
	}
	if next := first.AddDate(0, 1, 0).Format(monthLayout); next <= b.last.Format(monthLayout) {
		content.Next = b.Path() + "?month=" + next
	}
	for day := range 7 {
		content.Weekdays = append(content.Weekdays, shell.Weekday(time.Weekday(day)))
	}
	content.Weeks = weeksOf(shell.speech, b, days, first)
	content.Reasons = reasonsOf(shell.speech, b, days, first)
	v.Content = content
	name := shell.Name(b.branchFacts)
	shell.Title, shell.Description = shell.say("branchPage", "branch", name), shell.say("branchAbout", "branch", name)
	return s.describe(v, shell.speech, b, nil)
}

func dayPath(b openBranch, day time.Time) string { return b.Path() + "/" + day.Format(time.DateOnly) }

func chipOf(speech speech, b openBranch, days map[string]calendarDay, day time.Time, i int) dayView {
	label := speech.Weekday(day.Weekday())
	if near := []string{"today", "tomorrow"}; i < len(near) && speech.say(near[i]) != "" {
		label = speech.say(near[i])
	}
	return dayView{
		Path: dayPath(b, day), Label: label, Number: strconv.Itoa(day.Day()), Text: speech.Date(day),
		Off: speech.Shut(days[day.Format(time.DateOnly)]),
	}
}

// weeksOf returns the rows of a month's calendar, each from Sunday to Saturday.
func weeksOf(speech speech, b openBranch, days map[string]calendarDay, first time.Time) (weeks [][]*dayView) {
	next := first.AddDate(0, 1, 0)
	for sunday := first.AddDate(0, 0, -int(first.Weekday())); sunday.Before(next); sunday = sunday.AddDate(0, 0, 7) {
		week := make([]*dayView, 7)
		for i := range week {
			if day := sunday.AddDate(0, 0, i); !day.Before(first) && day.Before(next) {
				week[i] = cellOf(speech, b, days[day.Format(time.DateOnly)], day)
			}
		}
		weeks = append(weeks, week)
	}
	return weeks
}

func cellOf(speech speech, b openBranch, found calendarDay, day time.Time) *dayView {
	cell := &dayView{
		Path: dayPath(b, day), Number: strconv.Itoa(day.Day()), Off: speech.Shut(found),
		Past: day.Before(b.today), Today: day.Equal(b.today), Festive: found.Reason != nil,
	}
	cell.Reason = cmp.Or(cell.Off, value(found.Reason))
	switch {
	case cell.Past:
		cell.Never = speech.say("dayPast")
	case day.After(b.last):
		cell.Never = speech.say("dayFar")
	}
	if cell.Never != "" {
		cell.Off, cell.Reason = cell.Never, ""
	}
	cell.Text = speech.Date(day)
	if cell.Today {
		cell.Text = speech.say("today") + " " + cell.Text
	}
	return cell
}

// reasonsOf returns the reasons of the days of a month from today on, grouped by reason in the order of their first day.
func reasonsOf(speech speech, b openBranch, days map[string]calendarDay, first time.Time) (lists []reasonList) {
	closed, open := reasonList{Title: speech.say("closedDays")}, reasonList{Title: speech.say("openHolidays")}
	numbers := map[*reasonList]map[string][]string{&closed: {}, &open: {}}
	for _, date := range slices.Sorted(maps.Keys(days)) {
		if day := days[date]; strings.HasPrefix(date, first.Format(monthLayout)) && date >= b.today.Format(time.DateOnly) {
			if reason := speech.Shut(day); reason != "" {
				closed.add(reason, numbers[&closed], date)
			} else if day.Reason != nil {
				open.add(*day.Reason, numbers[&open], date)
			}
		}
	}
	for _, list := range []*reasonList{&closed, &open} {
		for i, row := range list.Rows {
			list.Rows[i].Days = speech.say("days", "list", strings.Join(numbers[list][row.Reason], ", "))
		}
		if len(list.Rows) > 0 {
			lists = append(lists, *list)
		}
	}
	return lists
}

func (l *reasonList) add(reason string, numbers map[string][]string, date string) {
	if numbers[reason] == nil {
		l.Rows = append(l.Rows, struct{ Reason, Days string }{Reason: reason})
	}
	numbers[reason] = append(numbers[reason], strings.TrimPrefix(date[len(date)-2:], "0"))
}
