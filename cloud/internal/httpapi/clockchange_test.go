package httpapi_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// changingBranch adds a branch with two rooms in a zone whose clocks change.
func changingBranch(t *testing.T, s *servicetest.Stack, code, zone string) *time.Location {
	t.Helper()
	if _, err := s.DB.Pool.Exec(t.Context(), `
		with b as (insert into branch (code, name_ko, name_en, time_zone) values ($1, $1, $1, $2) returning id)
		insert into room (branch_id, no, machine, min10, min30, min60) select id, n, 'm', 2000, 5000, 9000 from b, generate_series(1,2) n`, code, zone); err != nil {
		t.Fatal(err)
	}
	z, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// stop sets the clocks of the service and of the provider.
func stop(s *servicetest.Stack, at time.Time) {
	s.Clock.Stop(at)
	s.Provider.Stop(at)
}

// buyAt buys a stay in room 1.
func buyAt(t *testing.T, s *servicetest.Stack, branch string, from, to string, amount int) {
	t.Helper()
	c := s.Client(t)
	hold := map[string]any{"branch": branch, "room": 1, "startDateTime": from, "endDateTime": to}
	c.Post("/payment/confirm", ordered(t, s, c, hold, amount, "카드")).OK(t)
}

// TestExtensionOverClockChange: on 7 November 2027, clocks in New York show 1:00 to 2:00 twice.
func TestExtensionOverClockChange(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	zone := changingBranch(t, s, "manhattan", "America/New_York")
	stop(s, time.Date(2027, 11, 6, 23, 0, 0, 0, zone))
	buyAt(t, s, "manhattan", "202711062330", "202711070030", 9000)
	var id int64
	if err := s.DB.Pool.QueryRow(t.Context(), `select max(id) from reservation where state = 'DONE'`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	path := "/v2/keys/" + ownerKey(t, s, fmt.Sprint(id)) + "/extension"
	var offer struct {
		Options []struct {
			EndDateTime string
			Amount      int
		}
	}
	s.Client(t).Get(path).OK(t).Into(t, &offer)
	if len(offer.Options) == 0 {
		t.Fatal("no end is offered")
	}
	seen := map[string]bool{}
	for _, o := range offer.Options {
		if seen[o.EndDateTime] {
			t.Errorf("%s is offered twice", o.EndDateTime)
		}
		seen[o.EndDateTime] = true
		var held struct{ Amount int }
		s.Client(t).Post(path, map[string]string{"endDateTime": o.EndDateTime}).OK(t).Into(t, &held)
		if held.Amount != o.Amount {
			t.Errorf("until %s: held for %d won, offered for %d", o.EndDateTime, held.Amount, o.Amount)
		}
	}
}

// TestDayWithoutMidnight: on 28 March 2027, clocks on the Azores go from 0:00 to 1:00.
func TestDayWithoutMidnight(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	zone := changingBranch(t, s, "azores", "Atlantic/Azores")
	s.Clock.Stop(time.Date(2027, 3, 27, 12, 0, 0, 0, zone))
	admin := s.Admin(t, "hq", "hq-demo")
	for _, d := range []string{"2027-03-27", "2027-03-28", "2027-03-29"} {
		var day struct{ Date string }
		admin.Get("/v2/admin/branches/azores/timeline?date="+d).OK(t).Into(t, &day)
		equal(t, "the day", day.Date, d)
		admin.Get("/v2/admin/branches/azores/audit?from=" + d + "&to=" + d).OK(t)
	}
}

// TestLookUpOverClockChange: on 7 November 2027, clocks in New York show 1:00 to 2:00 twice, and the day has 25 hours. On 14 March
// they skip 2:00 to 3:00.
func TestLookUpOverClockChange(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	zone := changingBranch(t, s, "manhattan", "America/New_York")
	s.Clock.Stop(time.Date(2027, 11, 6, 12, 0, 0, 0, zone))
	reserve := func(day, from, to string) servicetest.Answer {
		return s.Client(t).Post("/reservation", map[string]any{"branch": "manhattan", "room": 1, "startDateTime": day + from, "endDateTime": day + to})
	}
	look := func(query string) (v v2) {
		s.Client(t).Get("/v2/branches/manhattan/reservations?"+query).OK(t).Into(t, &v)
		return v
	}
	reserve("20271107", "2300", "2350").OK(t)
	reserve("20271107", "0030", "0230").OK(t) // three hours
	autumn := look("date=2027-11-07&baseHour=0&hours=24").UnavailableSlots
	listed := autumn.Booking
	equal(t, "the slot that lasts until the second 2:00", autumn.ClosedTime, []string{"1-202711070150", "2-202711070150"})
	if !slices.Contains(listed, "1-202711072340") {
		t.Error("the last hour of the day is not covered")
	}
	if len(slices.Compact(slices.Sorted(slices.Values(listed)))) != len(listed) {
		t.Errorf("a slot is listed twice: %v", listed)
	}

	s.Clock.Stop(time.Date(2027, 11, 7, 6, 21, 0, 0, time.UTC)) // the second 1:21
	reserve("20271107", "0120", "0150").OK(t)
	equal(t, "what is closed in the second hour", len(look("date=2027-11-07&baseHour=1&hours=2").UnavailableSlots.ClosedTime), 0)
	equal(t, "the second hour", look("date=2027-11-07&baseHour=1&hours=1").UnavailableSlots.Booking,
		[]string{"1-202711070120", "1-202711070130", "1-202711070140"})

	s.Clock.Stop(time.Date(2027, 3, 13, 12, 0, 0, 0, zone))
	closed := look("date=2027-03-14&baseHour=0&hours=24").UnavailableSlots.ClosedTime
	for _, slot := range []string{"1-202703140150", "1-202703140200", "1-202703140250", "2-202703140200", "2-202703140250"} {
		if !slices.Contains(closed, slot) {
			t.Errorf("%s is not closed: %v", slot, closed)
		}
	}
	equal(t, "the skipped times of two rooms, and the slot before them", len(closed), 14)
}

// TestOverviewOfALongDay: the payments of the last hour of a day with 25 hours count for the day.
func TestOverviewOfALongDay(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	zone := changingBranch(t, s, "manhattan", "America/New_York")
	stop(s, time.Date(2027, 11, 7, 23, 20, 0, 0, zone))
	buyAt(t, s, "manhattan", "202711080100", "202711080200", 9000)
	var o struct {
		Branches []struct {
			Branch      string
			TodayAmount int
		}
	}
	s.Admin(t, "hq", "hq-demo").Get("/v2/admin/overview").OK(t).Into(t, &o)
	for _, b := range o.Branches {
		if b.Branch == "manhattan" {
			equal(t, "the amount of the day", b.TodayAmount, 9000)
			return
		}
	}
	t.Error("the branch is not in the overview")
}
