package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// slots returns the slots of a room from one time up to another, in the format of the interface.
func slots(room int, from, to time.Time) []string {
	list := []string{}
	for t := from; t.Before(to); t = t.Add(10 * time.Minute) {
		list = append(list, fmt.Sprintf("%d-%s", room, wire(t)))
	}
	return list
}

// hourOf returns the query of both V1 look-ups for the hour that contains t.
func hourOf(branch string, t time.Time) string {
	return url.Values{"branch": {branch}, "base_date": {t.In(seoul).Format("20060102")}, "base_hour": {t.In(seoul).Format("15")}}.Encode()
}

// dayOf returns the query of the V2 look-up for the given number of hours, from the hour that contains t.
func dayOf(t time.Time, hours int) string {
	return url.Values{"date": {t.In(seoul).Format("2006-01-02")}, "baseHour": {t.In(seoul).Format("15")}, "hours": {fmt.Sprint(hours)}}.Encode()
}

type v1 struct{ Booking, Paid, BookingMargin, PaidMargin, DisabledRooms []string }

type v2 struct {
	Rooms []struct {
		RoomNo, Machine string
		Grade           *string
		Enabled         bool
		Pricing         struct{ Min10, Min30, Min60 *int }
	}
	UnavailableSlots struct{ Paid, Booking, PaidMargin, BookingMargin, BreakTime, ClosedTime []string }
}

type idTime struct{ ID, Time string }

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t)) // with a paid hour in room 1
	const minute = time.Minute
	start := c.start
	base := start.Add(-minute * time.Duration(start.In(seoul).Minute())) // the full hour
	// Room 2 has a hold of 20 minutes and, after its margin, a reservation that waits for a deposit. Room 3 has an
	// administrator's reservation. Room 10 is added to check that room numbers are sorted as numbers.
	if _, err := c.s.DB.Pool.Exec(t.Context(), `
		insert into room (branch_id, no, machine, min60) select id, 10, '큰 룸', 50000 from branch where code = $1`, "gangnam"); err != nil {
		t.Fatal(err)
	}
	c.Nobody.Post("/reservation", holdBody(2, start, 20*minute)).OK(t)
	waiting := c.s.Client(t)
	waiting.Post("/payment/confirm", order(t, c.s, waiting, 2, start.Add(30*minute), 10*minute, 5000, "가상계좌")).OK(t)
	register(t, c.Manager, 3, start)
	register(t, c.Manager, 10, start)
	c.Manager.Patch("/admin/machines/gangnam/6", map[string]bool{"enabled": false}).OK(t)
	at := func(m int) time.Time { return start.Add(time.Duration(m) * minute) }

	paid := slices.Concat(slots(1, at(0), at(60)), slots(3, at(0), at(60)), slots(10, at(0), at(60)))
	paidMargin := slices.Concat(slots(1, at(-10), at(0)), slots(1, at(60), at(70)), slots(3, at(-10), at(0)), slots(3, at(60), at(70)),
		slots(10, at(-10), at(0)), slots(10, at(60), at(70)))
	booking := slices.Concat(slots(2, at(0), at(20)), slots(2, at(30), at(40)))
	// The margin between the two reservations is one slot, which is listed once.
	bookingMargin := slices.Concat(slots(2, at(-10), at(0)), slots(2, at(20), at(30)), slots(2, at(40), at(50)))
	if base.Equal(start) { // then the margin before the reservation is outside the window
		before := fmt.Sprint("-", wire(at(-10)))
		outside := func(s string) bool { return s[len(s)-len(before):] == before }
		paidMargin, bookingMargin = slices.DeleteFunc(paidMargin, outside), slices.DeleteFunc(bookingMargin, outside)
	}
	whole := v1{booking, paid, bookingMargin, paidMargin, []string{"6"}}

	t.Run("V1", func(t *testing.T) {
		var got v1
		c.Nobody.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &got)
		equal(t, "four hours", got, whole)
		c.HQ.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &got)
		equal(t, "with a session", got, whole)
		// The window covers four hours from the base hour. This one ends before the reservations, the next one contains their
		// first hour.
		c.Nobody.Get("/reservations?"+hourOf("gangnam", base.Add(-4*time.Hour))).OK(t).Into(t, &got)
		for name, list := range map[string][]string{"booking": got.Booking, "paid": got.Paid} {
			if len(list) != 0 {
				t.Errorf("%s before it begins: %v", name, list)
			}
		}
		c.Nobody.Get("/reservations?"+hourOf("gangnam", base.Add(-3*time.Hour))).OK(t).Into(t, &got)
		inside := func(list []string) (in []string) {
			for _, s := range list {
				if s[len(s)-12:] < wire(base.Add(time.Hour)) {
					in = append(in, s)
				}
			}
			return in
		}
		equal(t, "cut by the end of the window", got.Paid, inside(paid))
		equal(t, "cut by the end of the window", got.Booking, inside(booking))
		c.Nobody.Get("/reservations?"+hourOf("hongdae", start)).OK(t).Into(t, &got)
		equal(t, "another branch", got, v1{[]string{}, []string{}, []string{}, []string{}, []string{}})
	})

	t.Run("administrators", func(t *testing.T) {
		var got struct {
			Booking, Paid                            []idTime
			BookingMargin, PaidMargin, DisabledRooms []string
		}
		c.Viewer.Get("/admin/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &got)
		times := func(list []idTime) (slots []string) {
			for _, x := range list {
				slots = append(slots, x.Time)
			}
			return slots
		}
		equal(t, "booking", times(got.Booking), booking)
		equal(t, "paid", times(got.Paid), paid)
		equal(t, "the rest", v1{nil, nil, got.BookingMargin, got.PaidMargin, got.DisabledRooms}, v1{nil, nil, bookingMargin, paidMargin, []string{"6"}})
		for _, x := range []struct {
			list []idTime
			room int
		}{{got.Paid, 1}, {got.Booking, 2}} {
			if id := reservationAt(t, c.s, x.room, start); x.list[0].ID != id {
				t.Errorf("room %d: id %s, want %s", x.room, x.list[0].ID, id)
			}
		}
	})

	t.Run("V2", func(t *testing.T) {
		var got v2
		c.Nobody.Get("/v2/branches/gangnam/reservations?"+dayOf(start, 4)).OK(t).Into(t, &got)
		u := got.UnavailableSlots
		equal(t, "slots", v1{u.Booking, u.Paid, u.BookingMargin, u.PaidMargin, nil}, v1{booking, paid, bookingMargin, paidMargin, nil})
		equal(t, "never closed", []any{u.BreakTime, u.ClosedTime}, []any{[]string{}, []string{}})
		var order []string
		for _, room := range got.Rooms {
			order = append(order, room.RoomNo)
			if enabled := room.RoomNo != "6"; room.Enabled != enabled {
				t.Errorf("room %s: enabled %v", room.RoomNo, room.Enabled)
			}
		}
		// 50000, 30000, 25000, 22000, 20000, 15000, 13000 won an hour
		equal(t, "rooms", order, []string{"10", "1", "2", "3", "4", "5", "6"})
		first, last := got.Rooms[1], got.Rooms[6]
		if *first.Grade != "Stella" || first.Machine != "아쿠아 스파 베드 A1" || *first.Pricing.Min10 != 6000 || *first.Pricing.Min30 != 16000 || *first.Pricing.Min60 != 30000 {
			t.Errorf("room %+v", first)
		}
		if last.Pricing.Min10 != nil || *last.Pricing.Min30 != 7000 || got.Rooms[0].Grade != nil {
			t.Errorf("nulls: %+v, grade %v", last.Pricing, got.Rooms[0].Grade)
		}

		var byDefault v2
		c.Nobody.Get("/v2/branches/gangnam/reservations?date="+start.In(seoul).Format("2006-01-02")+"&baseHour="+start.In(seoul).Format("15")).OK(t).Into(t, &byDefault)
		equal(t, "hours is 4 by default", byDefault, got)
		c.Nobody.Get("/v2/branches/gangnam/reservations?"+dayOf(base.Add(-time.Hour), 1)).OK(t).Into(t, &got)
		if len(got.UnavailableSlots.Paid) != 0 {
			t.Errorf("paid in the hour before: %v", got.UnavailableSlots.Paid)
		}
		c.Nobody.Get("/v2/branches/gangnam/reservations?"+dayOf(base.Add(-23*time.Hour), 24)).OK(t).Into(t, &got)
		equal(t, "a day, past midnight", got.UnavailableSlots.Paid[0], paid[0])
	})

	t.Run("order of rooms", func(t *testing.T) {
		for no, price := range map[int][3]any{11: {nil, 12500, nil}, 12: {nil, nil, nil}, 13: {4000, nil, nil}, 20: {nil, nil, nil}, 21: {nil, nil, 25000}} {
			if _, err := c.s.DB.Pool.Exec(t.Context(), `
				insert into room (branch_id, no, min10, min30, min60) select id, $1, $2, $3, $4 from branch where code = 'gangnam'`, no, price[0], price[1], price[2]); err != nil {
				t.Fatal(err)
			}
		}
		var got v2
		c.Nobody.Get("/v2/branches/gangnam/reservations?"+dayOf(start, 1)).OK(t).Into(t, &got)
		var order []string
		for _, room := range got.Rooms {
			order = append(order, room.RoomNo)
		}
		// Room 13 costs 6 x 4000. Rooms 2, 11 (2 x 12500) and 21 cost the same. Rooms 12 and 20 have no price.
		equal(t, "rooms", order, []string{"10", "1", "2", "11", "21", "13", "3", "4", "5", "6", "12", "20"})
	})

	t.Run("released and expired holds", func(t *testing.T) {
		var got v1
		c.Nobody.Delete("/reservation", nil).OK(t)
		c.Nobody.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &got)
		equal(t, "after the release", got.Booking, slots(2, at(30), at(40)))
		c.Nobody.Post("/reservation", holdBody(2, start, 20*minute)).OK(t)
		c.s.Clock.Advance(10 * minute)
		c.Nobody.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &got)
		if slices.Contains(got.Booking, slots(2, at(0), at(10))[0]) {
			t.Errorf("an expired hold: %v", got.Booking)
		}
	})
}

func TestOpeningHours(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	day := func(month time.Month, d, hour, minute int) time.Time {
		return time.Date(2027, month, d, hour, minute, 0, 0, seoul)
	}
	look := func(t *testing.T, branch string, from time.Time, hours int) v2 {
		t.Helper()
		var got v2
		c.Get("/v2/branches/"+branch+"/reservations?"+dayOf(from, hours)).OK(t).Into(t, &got)
		return got
	}
	rooms := func(from, to time.Time) []string {
		return slices.Concat(slots(1, from, to), slots(2, from, to), slots(3, from, to))
	}
	// A Wednesday: open from 10:00 to 22:00, with a break from 15:00 to 16:00.
	got := look(t, "hongdae", day(time.May, 12, 8, 0), 24).UnavailableSlots
	equal(t, "break", got.BreakTime, rooms(day(time.May, 12, 15, 0), day(time.May, 12, 16, 0)))
	var closed []string
	for room := 1; room <= 3; room++ {
		closed = slices.Concat(closed, slots(room, day(time.May, 12, 8, 0), day(time.May, 12, 10, 0)), slots(room, day(time.May, 12, 22, 0), day(time.May, 13, 8, 0)))
	}
	equal(t, "after hours", got.ClosedTime, closed)
	// On a Monday and on a public holiday, the whole day is closed and has no break.
	for name, d := range map[string]int{"Monday": 10, "children's day": 5} {
		got := look(t, "hongdae", day(time.May, d, 0, 0), 24).UnavailableSlots
		equal(t, name, got.ClosedTime, rooms(day(time.May, d, 0, 0), day(time.May, d+1, 0, 0)))
		equal(t, name, got.BreakTime, []string{})
	}
	// Disabled rooms also have breaks.
	admin := s.Admin(t, "hq", "hq-demo")
	admin.Patch("/admin/machines/hongdae/2", map[string]bool{"enabled": false}).OK(t)
	equal(t, "with a disabled room", look(t, "hongdae", day(time.May, 12, 15, 0), 1).UnavailableSlots.BreakTime, rooms(day(time.May, 12, 15, 0), day(time.May, 12, 16, 0)))
	equal(t, "a holiday of a branch that opens on it", look(t, "gangnam", day(time.May, 5, 0, 0), 24).UnavailableSlots.ClosedTime, []string{})
}

func TestCalendar(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	type date struct {
		Date, Status string
		Reason       *string
	}
	month := func(t *testing.T, branch, yearMonth string) map[string]date {
		t.Helper()
		var got struct {
			YearMonth string
			Dates     []date
		}
		c.Get("/v2/branches/"+branch+"/calendar?yearMonth="+yearMonth).OK(t).Into(t, &got)
		first, err := time.Parse("2006-01", yearMonth)
		if err != nil || got.YearMonth != yearMonth {
			t.Fatalf("%s: %v", got.YearMonth, err)
		}
		days := map[string]date{}
		for i, d := range got.Dates {
			if want := first.AddDate(0, 0, i).Format("2006-01-02"); d.Date != want {
				t.Fatalf("date %d is %s, want %s", i, d.Date, want)
			}
			days[d.Date] = d
		}
		if want := first.AddDate(0, 1, -1).Day(); len(days) != want {
			t.Errorf("%s has %d days, want %d", yearMonth, len(days), want)
		}
		return days
	}
	is := func(t *testing.T, d date, status, reason string) {
		t.Helper()
		got := ""
		if d.Reason != nil {
			got = *d.Reason
		}
		if d.Status != status || got != reason {
			t.Errorf("%s is %s %q, want %s %q", d.Date, d.Status, got, status, reason)
		}
	}
	hongdae := month(t, "hongdae", "2027-05")
	is(t, hongdae["2027-05-04"], "available", "")
	is(t, hongdae["2027-05-05"], "holiday", "어린이날")
	is(t, hongdae["2027-05-10"], "closed", "정기 휴무")
	is(t, hongdae["2027-05-03"], "holiday", "대체공휴일(노동절)") // also a Monday
	gangnam := month(t, "gangnam", "2027-05")
	is(t, gangnam["2027-05-05"], "available", "어린이날")
	is(t, gangnam["2027-05-10"], "available", "")
	for yearMonth, days := range map[string]int{"2027-02": 28, "2028-02": 29, "2027-12": 31, "2027-04": 30} {
		if got := month(t, "gangnam", yearMonth); len(got) != days {
			t.Errorf("%s: %d days", yearMonth, len(got))
		}
	}
	is(t, month(t, "hongdae", "2028-02")["2028-02-29"], "available", "")

	// A closure of the branch, and a public holiday on which it opens.
	if _, err := s.DB.Pool.Exec(t.Context(), `
		update branch set schedule = schedule || '{"Closures": [{"From": "2027-05-30", "To": "2027-06-01", "Reason": "시설 점검"}], "OpenHolidays": ["2027-05-05"]}' where code = $1`, "hongdae"); err != nil {
		t.Fatal(err)
	}
	hongdae = month(t, "hongdae", "2027-05")
	is(t, hongdae["2027-05-29"], "available", "")
	is(t, hongdae["2027-05-30"], "closed", "시설 점검")
	is(t, hongdae["2027-05-31"], "closed", "시설 점검") // rather than the Monday
	is(t, hongdae["2027-05-05"], "available", "어린이날")
	june := month(t, "hongdae", "2027-06")
	is(t, june["2027-06-01"], "closed", "시설 점검")
	is(t, june["2027-06-02"], "available", "")
}
