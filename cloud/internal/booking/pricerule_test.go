package booking_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func won(n int) *int { return &n }

func perHour(n int) booking.Price {
	return booking.Price{Min10: won(n / 6), Min30: won(n / 2), Min60: won(n)}
}

var always = booking.Date{Year: 2026, Month: 1, Day: 1}

func mustZone(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestPriceRules prices stays around midnight, holidays and the start of a rule.
func TestPriceRules(t *testing.T) {
	t.Parallel()
	zone := mustZone(t, "Asia/Seoul")
	evening := &booking.ClockSpan{From: 22 * 60, To: 26 * 60}
	branch := booking.Branch{Zone: zone}
	for i := range branch.Schedule.Week {
		branch.Schedule.Week[i].Open = []booking.ClockSpan{{From: 10 * 60, To: 26 * 60}} // until 02:00
	}
	room := booking.Room{Price: perHour(6000), PriceRules: []booking.PriceRule{
		{From: always, Days: []time.Weekday{time.Friday}, Price: perHour(12000)},
		{From: always, Days: []time.Weekday{time.Friday}, Hours: evening, Price: perHour(18000)},
		{From: always, Holidays: true, Price: perHour(24000)},
		{From: booking.Date{Year: 2027, Month: 1, Day: 1}, Days: []time.Weekday{time.Friday}, Price: perHour(30000)},
	}}
	at := func(text string) time.Time {
		start, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
		if err != nil {
			t.Fatal(err)
		}
		return start
	}
	for _, c := range []struct {
		what, start string
		minutes     int
		want        int
	}{
		{"Thursday", "2026-12-03 15:00", 60, 6000},
		{"Friday", "2026-12-04 15:00", 60, 12000},
		{"into the evening", "2026-12-04 21:30", 60, 12000}, // the hour begins in the afternoon
		{"two hours into the evening", "2026-12-04 21:30", 120, 12000 + 18000},
		{"half an hour into the evening", "2026-12-04 21:30", 90, 12000 + 9000},
		{"across midnight", "2026-12-04 23:30", 120, 36000},
		{"Saturday after midnight is Friday's evening", "2026-12-05 01:00", 60, 18000},
		{"Saturday's opening hours", "2026-12-05 10:00", 60, 6000},
		{"Friday before its opening hours is Thursday's night", "2026-12-04 00:30", 60, 6000},
		{"a holiday on a Friday", "2026-12-25 15:00", 60, 24000},
		{"the night of the holiday", "2026-12-26 01:00", 60, 24000},
		{"the night before the holiday", "2026-12-25 01:00", 60, 6000},
		{"the last Friday before the new prices", "2026-12-18 15:00", 60, 12000},
		{"the first day of the new prices is a holiday, too", "2027-01-01 15:00", 60, 30000},
		{"a Friday of the new prices", "2027-01-08 15:00", 10, 5000},
	} {
		stay := booking.Interval{Start: at(c.start), End: at(c.start).Add(time.Duration(c.minutes) * time.Minute)}
		if got, ok := branch.PriceOf(room, stay); !ok || got != c.want {
			t.Errorf("%s: %d won (%t), want %d", c.what, got, ok, c.want)
		}
	}
	branch.Schedule.RemovedHolidays = []booking.Date{{Year: 2026, Month: 12, Day: 25}}
	christmas := booking.Interval{Start: at("2026-12-25 15:00"), End: at("2026-12-25 16:00")}
	if got, _ := branch.PriceOf(room, christmas); got != 12000 {
		t.Errorf("a removed holiday: %d won, want Friday's 12000", got)
	}
}

// TestPriceRulesWhenTheClocksChange: rules follow the clock of the branch; a stay costs by its real length.
func TestPriceRulesWhenTheClocksChange(t *testing.T) {
	t.Parallel()
	zone := mustZone(t, "Europe/Berlin")
	branch := booking.Branch{Zone: zone}
	room := booking.Room{Price: perHour(6000), PriceRules: []booking.PriceRule{
		{From: always, Hours: &booking.ClockSpan{From: 2 * 60, To: 4 * 60}, Price: perHour(12000)},
	}}
	for _, c := range []struct {
		start time.Time
		hours int
		want  int
	}{
		{time.Date(2026, 3, 29, 0, 0, 0, 0, zone), 4, 6000 + 6000 + 12000 + 6000},           // 00, 01, 03, 04
		{time.Date(2026, 10, 25, 0, 0, 0, 0, zone), 5, 6000 + 6000 + 12000 + 12000 + 12000}, // 00, 01, 02, 02, 03
		{time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), 2, 12000 + 12000},                   // 02 and 02
		{time.Date(2026, 6, 1, 1, 0, 0, 0, zone), 4, 6000 + 12000 + 12000 + 6000},           // no change
	} {
		stay := booking.Interval{Start: c.start, End: c.start.Add(time.Duration(c.hours) * time.Hour)}
		if got, ok := branch.PriceOf(room, stay); !ok || got != c.want {
			t.Errorf("%d hours from %s: %d won (%t), want %d", c.hours, c.start, got, ok, c.want)
		}
	}
}

// TestPriceRulesWithOneList: with one price list for all times, rules change no price.
func TestPriceRulesWithOneList(t *testing.T) {
	t.Parallel()
	branch, random := booking.Branch{Zone: mustZone(t, "Asia/Seoul")}, rand.New(rand.NewPCG(8, 21))
	for range 2000 {
		var list booking.Price
		for _, tier := range []**int{&list.Min10, &list.Min30, &list.Min60} {
			if random.IntN(3) > 0 {
				*tier = won(100 + random.IntN(50000))
			}
		}
		room := booking.Room{Price: list, PriceRules: []booking.PriceRule{{From: always, Days: []time.Weekday{time.Monday}, Price: list}}}
		start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(10000)) * 10 * time.Minute)
		stay := booking.Interval{Start: start, End: start.Add(time.Duration(1+random.IntN(30)) * 10 * time.Minute)}
		got, ok := branch.PriceOf(room, stay)
		want, wantOK := list.For(stay.Length())
		if ok != wantOK || ok && got != want {
			t.Fatalf("%s: %d %t, want %d %t", stay.Length(), got, ok, want, wantOK)
		}
	}
}

// TestPriceSpans divides an evening at the times at which another price list applies.
func TestPriceSpans(t *testing.T) {
	t.Parallel()
	day, evening := booking.Price{Min60: won(5000)}, booking.Price{Min30: won(4000), Min60: won(7000)}
	branch := booking.Branch{Zone: seoul}
	room := booking.Room{Price: day, PriceRules: []booking.PriceRule{
		{From: date("2026-12-01"), Hours: &booking.ClockSpan{From: 18 * 60, To: 19 * 60}, Price: evening},
		{From: date("2026-12-01"), Hours: &booking.ClockSpan{From: 19 * 60, To: 20 * 60}, Price: evening},
	}}
	equal(t, "an evening", branch.PriceSpans(room, span("2026-12-01 17:40", "2026-12-01 20:10", seoul)), []booking.PriceSpan{
		{Interval: span("2026-12-01 17:40", "2026-12-01 18:00", seoul), Price: day, Rule: -1},
		{Interval: span("2026-12-01 18:00", "2026-12-01 19:00", seoul), Price: evening, Rule: 0},
		{Interval: span("2026-12-01 19:00", "2026-12-01 20:00", seoul), Price: evening, Rule: 1},
		{Interval: span("2026-12-01 20:00", "2026-12-01 20:10", seoul), Price: day, Rule: -1},
	})
	equal(t, "nothing", branch.PriceSpans(room, span("2026-12-01 18:00", "2026-12-01 18:00", seoul)), []booking.PriceSpan(nil))
	if won, ok := branch.PriceOf(room, span("2026-12-01 18:00", "2026-12-01 18:00", seoul)); ok {
		t.Errorf("a stay without a length costs %d", won)
	}
	for _, c := range []struct {
		price booking.Price
		want  time.Duration
	}{{day, time.Hour}, {evening, 30 * time.Minute}, {perHour(6000), 10 * time.Minute}, {booking.Price{}, 0}} {
		if got := c.price.Shortest(); got != c.want {
			t.Errorf("the shortest of %+v: %v, want %v", c.price, got, c.want)
		}
	}
}
