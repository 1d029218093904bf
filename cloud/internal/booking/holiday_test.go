package booking_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Holidays that no rule of the calendar gives: lunar days, by Korea's new moons, elections and single decisions.
var (
	newYear = []string{"2025-01-29", "2026-02-17", "2027-02-07", "2028-01-27"}
	buddha  = []string{"2025-05-05", "2026-05-24", "2027-05-13", "2028-05-02"}
	chuseok = []string{"2025-10-06", "2026-09-25", "2027-09-15", "2028-10-03"}
	single  = map[string]string{
		"2025-01-27": "임시공휴일",
		"2025-06-03": "대통령 선거",
		"2026-06-03": "지방선거",
		"2028-04-12": "국회의원 선거",
	}
)

// A feast is a holiday of one to three days.
type feast struct {
	name       string
	day        booking.Date
	around     bool // with the days before and after
	substitute rule
}

type rule int

const (
	never     rule = iota // 신정, 현충일, elections, single declarations
	onWeekend             // replaced when it falls on a Saturday or Sunday
	onSunday              // replaced when one of its days falls on a Sunday
)

func (f feast) days() []booking.Date {
	if f.around {
		return []booking.Date{f.day.AddDays(-1), f.day, f.day.AddDays(1)}
	}
	return []booking.Date{f.day}
}

// feasts lists the holidays of a year by the law (관공서의 공휴일에 관한 규정, as of
// 2026-05), without substitutes: fixed days first, then lunar ones.
func feasts(year int) []feast {
	on := func(month time.Month, day int) booking.Date { return booking.Date{Year: year, Month: month, Day: day} }
	of := func(dates []string) booking.Date { return date(dates[year-2025]) }
	list := []feast{
		{"신정", on(1, 1), false, never},
		{"삼일절", on(3, 1), false, onWeekend},
		{"어린이날", on(5, 5), false, onWeekend},
		{"현충일", on(6, 6), false, never},
		{"광복절", on(8, 15), false, onWeekend},
		{"개천절", on(10, 3), false, onWeekend},
		{"한글날", on(10, 9), false, onWeekend},
		{"성탄절", on(12, 25), false, onWeekend},
		{"설날", of(newYear), true, onSunday},
		{"부처님오신날", of(buddha), false, onWeekend},
		{"추석", of(chuseok), true, onSunday},
	}
	if year >= 2026 {
		list = append(list, feast{"노동절", on(5, 1), false, onWeekend}, feast{"제헌절", on(7, 17), false, onWeekend})
	}
	for day, name := range single {
		if d := date(day); d.Year == year {
			list = append(list, feast{name, d, false, never})
		}
	}
	return list
}

// holidays computes the holidays of a year from the law.
func holidays(year int) map[booking.Date]string {
	table := make(map[booking.Date]string)
	type replaced struct {
		name string
		last booking.Date
	}
	var substitutes []replaced
	for _, f := range feasts(year) {
		days, due := f.days(), false
		for _, d := range days {
			name := f.name
			if d != f.day {
				name += " 연휴"
			}
			weekend := d.Weekday() == time.Saturday || d.Weekday() == time.Sunday
			other, collides := table[d]
			if collides {
				name = other + "·" + name
			}
			table[d] = name
			switch f.substitute {
			case onWeekend:
				due = due || weekend || collides
			case onSunday:
				due = due || d.Weekday() == time.Sunday || collides && !weekend
			}
		}
		if due {
			substitutes = append(substitutes, replaced{f.name, days[len(days)-1]})
		}
	}
	for _, s := range substitutes {
		d := s.last
		for taken := true; taken; {
			d = d.AddDays(1)
			_, taken = table[d]
			taken = taken || d.Weekday() == time.Saturday || d.Weekday() == time.Sunday
		}
		table[d] = fmt.Sprintf("대체공휴일(%s)", s.name)
	}
	return table
}

func TestKoreanHolidaysFollowTheLaw(t *testing.T) {
	t.Parallel()
	// The expected number of holidays; 2027's is the almanac's own.
	for year, count := range map[int]int{2025: 19, 2026: 22, 2027: 24, 2028: 18} {
		got := make(map[booking.Date]string)
		for d := (booking.Date{Year: year, Month: 1, Day: 1}); d.Year == year; d = d.AddDays(1) {
			if name, ok := booking.KoreanHoliday(d); ok {
				got[d] = name
			}
		}
		if diff := cmp.Diff(holidays(year), got); diff != "" {
			t.Errorf("%d: law -, table +\n%s", year, diff)
		}
		if len(got) != count {
			t.Errorf("%d has %d holidays, want %d", year, len(got), count)
		}
	}
}

func TestKoreanHoliday(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ date, want string }{
		{"2026-12-25", "성탄절"},
		{"2026-12-24", ""},
		{"2026-11-22", ""}, // a Sunday
		{"2027-01-01", "신정"},
		{"2027-02-07", "설날"}, // China's is the day before
		{"2027-02-10", ""},
		{"2025-05-01", ""}, // 노동절 and 제헌절 since 2026
		{"2025-07-17", ""},
		{"2024-12-31", ""},
		{"2029-01-01", ""}, // beyond the table
	} {
		name, ok := booking.KoreanHoliday(date(test.date))
		if name != test.want || ok != (test.want != "") {
			t.Errorf("%s is %q, %t; want %q", test.date, name, ok, test.want)
		}
	}
}

// TestBusinessDaysAfter counts from Korea's day, whatever the time, over weekends and public holidays.
func TestBusinessDaysAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from string // in Seoul
		n    int
		want string // the first moment after the last day
	}{
		{"2026-11-25 15:00", 0, "2026-11-26 00:00"},
		{"2026-11-25 15:00", 1, "2026-11-27 00:00"},
		{"2026-11-25 23:59", 3, "2026-12-01 00:00"}, // Thursday, Friday, Monday
		{"2026-11-26 00:00", 3, "2026-12-02 00:00"},
		{"2026-11-28 12:00", 1, "2026-12-01 00:00"}, // a Saturday
		{"2026-11-29 12:00", 1, "2026-12-01 00:00"}, // a Sunday
		{"2026-09-23 12:00", 1, "2026-09-29 00:00"}, // three days of 추석 and a Sunday
		{"2026-12-24 12:00", 1, "2026-12-29 00:00"}, // 성탄절 is a Friday
	} {
		if got := booking.BusinessDaysAfter(at(c.from, seoul), c.n); !got.Equal(at(c.want, seoul)) {
			t.Errorf("%d business days after %s: %s, want %s", c.n, c.from, got.In(seoul), c.want)
		}
	}
}
