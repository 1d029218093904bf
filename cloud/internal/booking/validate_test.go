package booking_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

const daily = 24 * time.Hour

// clockSpan is a span of opening hours, in minutes of a day.
func clockSpan(from, to int) booking.ClockSpan { return booking.ClockSpan{From: from, To: to} }

func clockSpans(n int) (list []booking.ClockSpan) {
	for i := range n {
		list = append(list, clockSpan(i*20, i*20+10))
	}
	return list
}

// validBranch has a value for every setting that has limits.
func validBranch() booking.Branch {
	b := booking.DefaultBranch()
	b.NameKo, b.NameEn = "강남점", "Gangnam"
	b.Rooms = []booking.Room{{No: 1, Machine: "M", Grade: booking.Gold, Price: perHour(6000)}}
	return b
}

// TestBranchLimits changes one setting at a time, up to its limit and past it.
func TestBranchLimits(t *testing.T) {
	t.Parallel()
	const valid = ""
	long := func(n int) string { return strings.Repeat("가", n) }
	week := func(b *booking.Branch, day time.Weekday) *booking.Day { return &b.Schedule.Week[day] }
	open := func(list ...booking.ClockSpan) func(*booking.Branch) {
		return func(b *booking.Branch) { week(b, time.Tuesday).Open = list }
	}
	overnight := func(tuesday, wednesday booking.Day) func(*booking.Branch) {
		return func(b *booking.Branch) { *week(b, time.Tuesday), *week(b, time.Wednesday) = tuesday, wednesday }
	}
	room := func(change func(*booking.Room)) func(*booking.Branch) {
		return func(b *booking.Branch) { change(&b.Rooms[0]) }
	}
	rule := func(change func(*booking.PriceRule)) func(*booking.Branch) {
		return func(b *booking.Branch) {
			r := booking.PriceRule{From: always, Price: perHour(6000)}
			change(&r)
			b.Rooms[0].PriceRules = []booking.PriceRule{r}
		}
	}
	price := func(n int) func(*booking.Branch) { return room(func(r *booking.Room) { r.Price.Min30 = won(n) }) }
	horizon := func(d time.Duration) func(*booking.Branch) { return func(b *booking.Branch) { b.Horizon = d } }
	turnover := func(n int) func(*booking.Branch) { return room(func(r *booking.Room) { r.TurnoverMinutes = n }) }
	place := func(latitude, longitude float64) func(*booking.Branch) {
		return func(b *booking.Branch) { b.Location = &booking.Location{Latitude: latitude, Longitude: longitude} }
	}
	policy := func(tiers ...booking.RefundTier) func(*booking.Branch) {
		return func(b *booking.Branch) { b.RefundPolicy = tiers }
	}
	compensation := func(c booking.Compensation) func(*booking.Branch) {
		return func(b *booking.Branch) { b.Compensation = c }
	}
	closure := func(from, to int, reason string) func(*booking.Branch) {
		return func(b *booking.Branch) {
			b.Schedule.Closures = []booking.Closure{{From: always.AddDays(from), To: always.AddDays(to), Reason: reason}}
		}
	}
	days := func(n int) (list []booking.Date) {
		for i := range n {
			list = append(list, always.AddDays(i))
		}
		return list
	}
	holidays := func(n int, name string) map[booking.Date]string {
		named := map[booking.Date]string{}
		for _, d := range days(n) {
			named[d] = name
		}
		return named
	}
	for _, c := range []struct {
		what, field string // field is empty if the branch is valid
		change      func(b *booking.Branch)
	}{
		{"nothing", valid, func(*booking.Branch) {}},

		{"no Korean name", "nameKo", func(b *booking.Branch) { b.NameKo = " " }},
		{"no English name", "nameEn", func(b *booking.Branch) { b.NameEn = "" }},
		{"no address and phone", valid, func(b *booking.Branch) { b.Address, b.Phone = "", "" }},
		{"longest name", valid, func(b *booking.Branch) { b.NameKo = long(booking.MaxBranchName) }},
		{"longer name", "nameKo", func(b *booking.Branch) { b.NameKo = long(booking.MaxBranchName + 1) }},
		{"longest address", valid, func(b *booking.Branch) { b.Address = long(booking.MaxAddress) }},
		{"longer address", "address", func(b *booking.Branch) { b.Address = long(booking.MaxAddress + 1) }},
		{"longer phone", "phone", func(b *booking.Branch) { b.Phone = strings.Repeat("1", booking.MaxPhone+1) }},
		{"phone", valid, func(b *booking.Branch) { b.Phone = "+82 (0)2-123-4567" }},
		{"phone with letters", "phone", func(b *booking.Branch) { b.Phone = "02-CALL" }},

		{"shortest horizon", valid, horizon(daily)},
		{"less than a day", "bookingHorizonDays", horizon(daily - time.Hour)},
		{"longest horizon", valid, horizon(booking.MaxHorizonDays * daily)},
		{"longer horizon", "bookingHorizonDays", horizon((booking.MaxHorizonDays + 1) * daily)},

		{"room 0", "room", room(func(r *booking.Room) { r.No = 0 })},
		{"last room number", valid, room(func(r *booking.Room) { r.No = booking.MaxRoomNo })},
		{"room number", "room", room(func(r *booking.Room) { r.No = booking.MaxRoomNo + 1 })},
		{"longest machine", valid, room(func(r *booking.Room) { r.Machine = long(booking.MaxMachine) })},
		{"longer machine", "machine", room(func(r *booking.Room) { r.Machine = long(booking.MaxMachine + 1) })},
		{"no grade", valid, room(func(r *booking.Room) { r.Grade = "" })},
		{"grade", "grade", room(func(r *booking.Room) { r.Grade = "Best" })},
		{"turnover as long as the margin", valid, turnover(10)},
		{"shorter turnover", "turnoverMinutes", turnover(9)},
		{"longest turnover", valid, turnover(60)},
		{"longer turnover", "turnoverMinutes", turnover(61)},
		{"negative turnover", "turnoverMinutes", turnover(-10)},
		{"lowest price", valid, price(booking.MinPrice)},
		{"lower price", "price", price(booking.MinPrice - 1)},
		{"highest price", valid, price(booking.MaxPrice)},
		{"higher price", "price", price(booking.MaxPrice + 1)},

		{"price rule", valid, rule(func(*booking.PriceRule) {})},
		{"rule without a day", "priceRules", rule(func(p *booking.PriceRule) { p.From = booking.Date{} })},
		{"rule without a price", "priceRules", rule(func(p *booking.PriceRule) { p.Price = booking.Price{} })},
		{"rule with a low price", "price", rule(func(p *booking.PriceRule) { p.Price = booking.Price{Min10: won(booking.MinPrice - 1)} })},
		{"rule for hours", valid, rule(func(p *booking.PriceRule) { p.Hours = &booking.ClockSpan{From: 600, To: 660} })},
		{"rule off the grid", "priceRules", rule(func(p *booking.PriceRule) { p.Hours = &booking.ClockSpan{From: 605, To: 660} })},
		{"rule for the weekend", valid, rule(func(p *booking.PriceRule) { p.Days = []time.Weekday{time.Sunday, time.Saturday} })},
		{"rule with a day twice", "priceRules", rule(func(p *booking.PriceRule) { p.Days = []time.Weekday{time.Monday, time.Monday} })},
		{"rule for day -1", "priceRules", rule(func(p *booking.PriceRule) { p.Days = []time.Weekday{time.Sunday - 1} })},
		{"rule for day 7", "priceRules", rule(func(p *booking.PriceRule) { p.Days = []time.Weekday{time.Saturday + 1} })},
		{"most rules", valid, room(func(r *booking.Room) { r.PriceRules = manyRules(booking.MaxPriceRules) })},
		{"more rules", "priceRules", room(func(r *booking.Room) { r.PriceRules = manyRules(booking.MaxPriceRules + 1) })},

		{"location", valid, place(37.5, 127)},
		{"north pole", valid, place(90, 180)},
		{"south pole", valid, place(-90, -180)},
		{"latitude", "location", place(90.1, 0)},
		{"southern latitude", "location", place(-90.1, 0)},
		{"longitude", "location", place(0, 180.1)},
		{"no number", "location", place(math.NaN(), 0)},
		{"no number east", "location", place(0, math.NaN())},

		{"hours with breaks", valid, func(b *booking.Branch) { b.Schedule = hongdae() }},
		{"hours past midnight", valid, func(b *booking.Branch) { b.Schedule = nights() }},
		{"span of ten minutes", valid, open(clockSpan(600, 610))},
		{"empty span", "open", open(clockSpan(600, 600))},
		{"backwards", "open", open(clockSpan(610, 600))},
		{"24 hours", valid, func(b *booking.Branch) {
			week(b, time.Tuesday).Open, week(b, time.Wednesday).Closed = []booking.ClockSpan{clockSpan(600, 600+24*60)}, true
		}},
		{"longer than 24 hours", "open", func(b *booking.Branch) {
			week(b, time.Tuesday).Open, week(b, time.Wednesday).Closed = []booking.ClockSpan{clockSpan(600, 610+24*60)}, true
		}},
		{"from midnight", valid, open(clockSpan(0, 10))},
		{"before midnight", "open", open(clockSpan(-10, 10))},
		{"last start", valid, open(clockSpan(24*60-10, 24*60))},
		{"start on the next day", "open", open(clockSpan(24*60, 24*60+10))},
		{"start off the grid", "open", open(clockSpan(605, 660))},
		{"end off the grid", "open", open(clockSpan(600, 655))},
		{"adjacent", valid, open(clockSpan(660, 720), clockSpan(600, 660))},
		{"overlap", "open", open(clockSpan(650, 720), clockSpan(600, 660))},
		{"most spans", valid, open(clockSpans(booking.MaxSpans)...)},
		{"more spans", "open", open(clockSpans(booking.MaxSpans + 1)...)},
		{"break off the grid", "breaks", func(b *booking.Branch) { week(b, time.Monday).Breaks = []booking.ClockSpan{clockSpan(605, 660)} }},
		{"overlapping breaks", "breaks", func(b *booking.Branch) {
			week(b, time.Monday).Breaks = []booking.ClockSpan{clockSpan(600, 660), clockSpan(650, 700)}
		}},
		{"until the next day opens", valid, overnight(booking.Day{Open: []booking.ClockSpan{clockSpan(1200, 1600)}}, booking.Day{Open: []booking.ClockSpan{clockSpan(160, 600)}})},
		{"into the next day", "open", overnight(booking.Day{Open: []booking.ClockSpan{clockSpan(1200, 1610)}}, booking.Day{Open: []booking.ClockSpan{clockSpan(160, 600)}})},
		{"into a closed day", valid, overnight(booking.Day{Open: []booking.ClockSpan{clockSpan(1200, 1610)}}, booking.Day{Closed: true, Open: []booking.ClockSpan{clockSpan(160, 600)}})},
		{"out of a closed day", valid, overnight(booking.Day{Closed: true, Open: []booking.ClockSpan{clockSpan(1200, 1610)}}, booking.Day{Open: []booking.ClockSpan{clockSpan(160, 600)}})},
		{"from Saturday into Sunday", "open", func(b *booking.Branch) {
			week(b, time.Saturday).Open, week(b, time.Sunday).Open = []booking.ClockSpan{clockSpan(1200, 1610)}, []booking.ClockSpan{clockSpan(160, 600)}
		}},

		{"closure of a day", valid, closure(3, 3, long(booking.MaxReason))},
		{"closure backwards", "closures", closure(3, 2, "")},
		{"longer reason", "reason", closure(3, 3, long(booking.MaxReason+1))},
		{"most closures", valid, func(b *booking.Branch) { b.Schedule.Closures = make([]booking.Closure, booking.MaxClosures) }},
		{"more closures", "closures", func(b *booking.Branch) { b.Schedule.Closures = make([]booking.Closure, booking.MaxClosures+1) }},
		{"most holidays", valid, func(b *booking.Branch) { b.Schedule.OpenHolidays = days(booking.MaxHolidays) }},
		{"more open holidays", "openHolidays", func(b *booking.Branch) { b.Schedule.OpenHolidays = days(booking.MaxHolidays + 1) }},
		{"more removed holidays", "removedHolidays", func(b *booking.Branch) { b.Schedule.RemovedHolidays = days(booking.MaxHolidays + 1) }},
		{"most extra holidays", valid, func(b *booking.Branch) {
			b.Schedule.ExtraHolidays = holidays(booking.MaxHolidays, long(booking.MaxReason))
		}},
		{"more extra holidays", "extraHolidays", func(b *booking.Branch) { b.Schedule.ExtraHolidays = holidays(booking.MaxHolidays+1, "x") }},
		{"holiday without a name", "holidayName", func(b *booking.Branch) { b.Schedule.ExtraHolidays = holidays(1, " ") }},
		{"longer name of a holiday", "holidayName", func(b *booking.Branch) { b.Schedule.ExtraHolidays = holidays(1, long(booking.MaxReason+1)) }},

		{"policy", valid, policy(booking.RefundTier{UntilMinutesBefore: 60, Percent: 100}, booking.RefundTier{UntilMinutesBefore: 30, Percent: 0})},
		{"equal shares", valid, policy(booking.RefundTier{UntilMinutesBefore: 60, Percent: 50}, booking.RefundTier{UntilMinutesBefore: 30, Percent: 50})},
		{"growing share", "refundPolicy", policy(booking.RefundTier{UntilMinutesBefore: 60, Percent: 50}, booking.RefundTier{UntilMinutesBefore: 30, Percent: 51})},
		{"equal deadlines", "refundPolicy", policy(booking.RefundTier{UntilMinutesBefore: 60, Percent: 100}, booking.RefundTier{UntilMinutesBefore: 60, Percent: 50})},
		{"later deadline", "refundPolicy", policy(booking.RefundTier{UntilMinutesBefore: 60, Percent: 100}, booking.RefundTier{UntilMinutesBefore: 61, Percent: 50})},
		{"after the PIN is disclosed", "refundPolicy", policy(booking.RefundTier{UntilMinutesBefore: 29, Percent: 100})},
		{"the longest horizon before", valid, policy(booking.RefundTier{UntilMinutesBefore: booking.MaxHorizonDays * 24 * 60, Percent: 100})},
		{"before that", "refundPolicy", policy(booking.RefundTier{UntilMinutesBefore: booking.MaxHorizonDays*24*60 + 1, Percent: 100})},
		{"more than everything", "refundPolicy", policy(booking.RefundTier{UntilMinutesBefore: 60, Percent: 101})},
		{"negative share", "refundPolicy", policy(booking.RefundTier{UntilMinutesBefore: 60, Percent: -1})},
		{"most tiers", valid, policy(manyTiers(booking.MaxRefundTiers)...)},
		{"more tiers", "refundPolicy", policy(manyTiers(booking.MaxRefundTiers + 1)...)},

		{"time only", valid, compensation(booking.Compensation{AfterMinutes: 60, ExtendFirst: true})},
		{"money by the minute", valid, compensation(booking.Compensation{AfterMinutes: 1, WonPerMinute: booking.MaxPrice, PerPhonePerMonth: 1000})},
		{"money at once", valid, compensation(booking.Compensation{AfterMinutes: 1, FullAfterMinutes: 300})},
		{"neither", "compensation", compensation(booking.Compensation{AfterMinutes: 1})},
		{"an hour", "compensation", compensation(booking.Compensation{AfterMinutes: 61, ExtendFirst: true})},
		{"negative time", "compensation", compensation(booking.Compensation{AfterMinutes: -1})},
		{"too much money", "compensation", compensation(booking.Compensation{AfterMinutes: 1, WonPerMinute: booking.MaxPrice + 1})},
		{"negative money", "compensation", compensation(booking.Compensation{AfterMinutes: 1, WonPerMinute: -1})},
		{"after the longest stay", "compensation", compensation(booking.Compensation{AfterMinutes: 1, FullAfterMinutes: 301})},
		{"too often", "compensation", compensation(booking.Compensation{AfterMinutes: 1, ExtendFirst: true, PerPhonePerMonth: 1001})},
	} {
		b := validBranch()
		c.change(&b)
		err := b.Validate()
		if c.field == valid {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		if problem := new(booking.InvalidError); !errors.As(err, &problem) || problem.Field != c.field || !errors.Is(err, booking.ErrInvalid) {
			t.Errorf("%s: %v, want a problem of %s", c.what, err, c.field)
		}
	}
}

func manyRules(n int) (rules []booking.PriceRule) {
	for range n {
		rules = append(rules, booking.PriceRule{From: always, Price: perHour(6000)})
	}
	return rules
}

func manyTiers(n int) (tiers []booking.RefundTier) {
	for i := range n {
		tiers = append(tiers, booking.RefundTier{UntilMinutesBefore: 100 - i, Percent: 50})
	}
	return tiers
}

// TestInvalidErrorNamesTheDay: a problem of the opening hours is on a weekday.
func TestInvalidErrorNamesTheDay(t *testing.T) {
	t.Parallel()
	b := validBranch()
	b.Schedule.Week[time.Friday].Open = []booking.ClockSpan{clockSpan(650, 720), clockSpan(600, 660)}
	err := b.Validate()
	if want := booking.ErrInvalid.Error() + ": Friday, open: 10:50-12:00 overlaps with 10:00-11:00"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	b = validBranch()
	b.NameKo = ""
	if want := booking.ErrInvalid.Error() + ": nameKo: it is empty"; b.Validate().Error() != want {
		t.Errorf("got %v, want %s", b.Validate(), want)
	}
}

func TestParseClockSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     booking.ClockSpan // zero: refused
		text     string
	}{
		{"10:00", "22:00", clockSpan(600, 1320), "10:00-22:00"},
		{"9:30", "9:40", clockSpan(570, 580), "09:30-09:40"},
		{"18:00", "02:00", clockSpan(1080, 1560), "18:00-02:00"},
		{"18:00", "00:00", clockSpan(1080, 1440), "18:00-24:00"},
		{"18:00", "24:00", clockSpan(1080, 1440), "18:00-24:00"},
		{"00:00", "24:00", clockSpan(0, 1440), "00:00-24:00"},
		{"10:00", "10:00", clockSpan(600, 2040), "10:00-10:00"},
		{"23:50", "0:10", clockSpan(1430, 1450), "23:50-00:10"},
		{from: "24:00", to: "02:00"},
		{from: "10:00", to: "24:10"},
		{from: "10:05", to: "11:00"},
		{from: "10:00", to: "11:05"},
		{from: "10:60", to: "12:00"},
		{from: "010:00", to: "12:00"},
		{from: ":00", to: "12:00"},
		{from: "10:0", to: "12:00"},
		{from: "10:000", to: "12:00"},
		{from: "1000", to: "12:00"},
		{from: "1x:00", to: "12:00"},
		{from: "10:00", to: "noon"},
		{from: "-1:00", to: "12:00"},
	} {
		got, err := booking.ParseClockSpan(c.from, c.to)
		if refused := c.want == (booking.ClockSpan{}); refused != (err != nil) || refused != errors.Is(err, booking.ErrInvalid) {
			t.Errorf("%s to %s: %v, %v", c.from, c.to, got, err)
			continue
		}
		if err == nil && (got != c.want || got.String() != c.text) {
			t.Errorf("%s to %s: %v (%s), want %v (%s)", c.from, c.to, got, got, c.want, c.text)
		}
	}
}
