package notify

import (
	"fmt"
	"strconv"
	"time"
)

var koreanDays = [...]string{"일", "월", "화", "수", "목", "금", "토"}

// Period formats a reservation's time as the variables date and time, in the time zone of start. end is the real end.
// A reservation that ends on the next day is marked as such; the end of a longer one has its date.
func Period(lang Language, start, end time.Time) (date, hours string) {
	end = end.In(start.Location())
	from, to := start.Format("15:04"), end.Format("15:04")
	midnights := midnights(start, end)
	if lang == English {
		switch {
		case midnights == 1:
			to += " (next day)"
		case midnights > 1:
			to = end.Format("Mon, 2 Jan 15:04")
		}
		return start.Format("Mon, 2 Jan 2006"), from + "~" + to
	}
	switch {
	case midnights == 1:
		to = "다음 날 " + to
	case midnights > 1:
		to = fmt.Sprintf("%d월 %d일(%s) %s", end.Month(), end.Day(), koreanDays[end.Weekday()], to)
	}
	return fmt.Sprintf("%d년 %d월 %d일(%s)", start.Year(), start.Month(), start.Day(), koreanDays[start.Weekday()]), from + "~" + to
}

// midnights returns the number of midnights after start until end, in their common time zone.
func midnights(start, end time.Time) int {
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(day(end).Sub(day(start)) / (24 * time.Hour))
}

// Due formats the time at which a deposit is due, with its date if that is not the date of now; both in the zone of due.
func Due(lang Language, due, now time.Time) string {
	date, _ := Period(lang, due, due)
	clock := due.Format("15:04")
	if today, _ := Period(lang, now.In(due.Location()), now); today == date {
		return clock
	}
	return date + " " + clock
}

// Won formats an amount with thousands separators: 18000 becomes 18,000.
func Won(amount int) string {
	s := strconv.Itoa(amount)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
