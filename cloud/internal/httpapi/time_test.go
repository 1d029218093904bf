package httpapi_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// The tests of this file stop the clock on both sides of each limit. TestTimeZones runs them again in processes with other
// time zones, because only the time zone of the branch may matter.

// TestTimeZones runs the other tests of this file in processes with different time zones.
func TestTimeZones(t *testing.T) {
	const inner = "YEOLDA_TEST_IN_ZONE"
	if os.Getenv(inner) != "" {
		t.Skip("this is the other process")
	}
	t.Parallel()
	for _, zone := range []string{"UTC", "Asia/Seoul", "America/New_York"} {
		t.Run(zone, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTime", "-test.count=1", "-test.v")
			command.Env = append(os.Environ(), "TZ="+zone, inner+"=1")
			output, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			if passed := strings.Count(string(output), "--- PASS: TestTime"); passed < 8 {
				t.Errorf("%d tests passed:\n%s", passed, output)
			}
		})
	}
}

// someday returns noon of a Wednesday at least two days ahead.
func someday() time.Time {
	now := time.Now().In(seoul)
	day := time.Date(now.Year(), now.Month(), now.Day(), 12, 0, 0, 0, seoul).AddDate(0, 0, 2)
	for day.Weekday() != time.Wednesday {
		day = day.AddDate(0, 0, 1)
	}
	return day
}

// hold requests a room of gangnam with a new client.
func hold(t *testing.T, s *servicetest.Stack, room int, start time.Time, length time.Duration) servicetest.Answer {
	t.Helper()
	return s.Client(t).Post("/reservation", holdBody(room, start, length))
}

const second, minute, hour = time.Second, time.Minute, time.Hour

// The current slot can be held, an earlier one cannot. Customers can reserve at most 60 days ahead.
func TestTimeOfStart(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	noon := someday()
	s.Clock.Stop(noon)
	admin := s.Admin(t, "hq", "hq-demo")
	reserve := func(room int, start time.Time) servicetest.Answer {
		return admin.Post("/admin/reservation", holdBody(room, start, 10*minute))
	}
	for i, at := range []time.Duration{0, 1, 8*minute - 1} {
		s.Clock.Stop(noon.Add(at))
		hold(t, s, 1, noon.Add(time.Duration(i)*20*minute), 10*minute).OK(t)
		refuses(t, "the slot before", hold(t, s, 2, noon.Add(-10*minute), hour), "startDateTime")
		refuses(t, "the slot before, by an administrator", reserve(2, noon.Add(-10*minute)), "startDateTime")
	}
	s.Clock.Stop(noon.Add(8*minute - 1))
	hold(t, s, 3, noon, 10*minute).OK(t) // the last moment at which its doors can open
	reserve(4, noon).OK(t)
	s.Clock.Stop(noon.Add(8 * minute))
	refuses(t, "a slot whose doors can no longer open", hold(t, s, 5, noon, 10*minute), "startDateTime")
	refuses(t, "a slot whose doors can no longer open, by an administrator", reserve(5, noon), "startDateTime")
	s.Clock.Stop(noon.Add(10*minute - 1))
	hold(t, s, 5, noon, 20*minute).OK(t) // the last moment of a longer stay
	s.Clock.Stop(noon.Add(10 * minute))
	refuses(t, "a slot that is over", hold(t, s, 6, noon, 20*minute), "startDateTime")
	refuses(t, "a slot that is over, by an administrator", reserve(6, noon), "startDateTime")

	s.Clock.Stop(noon)
	const horizon = 60 * 24 * hour
	hold(t, s, 1, noon.Add(horizon), hour).OK(t)
	refuses(t, "beyond 60 days", hold(t, s, 2, noon.Add(horizon+10*minute), hour), "startDateTime")
	s.Clock.Stop(noon.Add(-1))
	refuses(t, "60 days, a moment too early", hold(t, s, 2, noon.Add(horizon), hour), "startDateTime")
	reserve(2, noon.Add(horizon+10*minute)).OK(t)
}

// A customer's hold expires after ten minutes, an administrator's after five. After that, step 2 is rejected.
func TestTimeOfHolds(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	noon := someday()
	start := noon.Add(6 * hour)
	s.Clock.Stop(noon)
	admin := s.Admin(t, "hq", "hq-demo")
	pay := func(c *servicetest.Client, amount int) servicetest.Answer {
		return c.Post("/payment", map[string]any{"amount": amount, "name": "홍길동", "mobileNum": "010-1234-5678"})
	}
	customer := s.Client(t)
	customer.Post("/reservation", holdBody(1, start, hour)).OK(t)
	admin.Post("/admin/reservation", holdBody(2, start, hour)).OK(t)
	account := map[string]any{"amount": 1, "orderName": "a", "name": "a", "mobileNum": "010-1234-5678", "bankCode": "20"}

	s.Clock.Stop(noon.Add(5*minute - 1))
	says(t, "the administrator's, before its end", hold(t, s, 2, start, hour), held)
	s.Clock.Stop(noon.Add(5 * minute))
	says(t, "registration", admin.Post("/admin/payment", map[string]any{}), holdExpired)
	says(t, "virtual account", admin.Post("/admin/v2/virtual-accounts", account), holdExpired)
	hold(t, s, 2, start, hour).OK(t)

	s.Clock.Stop(noon.Add(10*minute - 1))
	says(t, "the customer's, before its end", hold(t, s, 1, start, hour), held)
	pay(customer, 30000).OK(t) // the registration does not extend the hold
	s.Clock.Stop(noon.Add(10 * minute))
	says(t, "payment", pay(customer, 30000), holdExpired)
	hold(t, s, 1, start, hour).OK(t)

	admin.Post("/admin/reservation", holdBody(3, start, hour)).OK(t)
	s.Clock.Advance(5*minute - 1)
	admin.Post("/admin/payment", map[string]any{}).OK(t)
}

// If a hold has expired, its confirmation still succeeds unless another hold has taken the slot.
func TestTimeOfConfirmation(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	noon := someday()
	start := noon.Add(6 * hour)
	s.Clock.Stop(noon)
	free, lost := s.Client(t), s.Client(t)
	confirmFree := order(t, s, free, 1, start, hour, 30000, "카드")
	confirmLost := order(t, s, lost, 2, start, hour, 25000, "카드")
	s.Clock.Stop(noon.Add(10 * minute))
	hold(t, s, 2, start.Add(30*minute), hour).OK(t)
	free.Post("/payment/confirm", confirmFree).OK(t)
	says(t, "its place is taken", lost.Post("/payment/confirm", confirmLost), holdExpired)
	for _, call := range s.Sandbox.Ledger().Calls {
		if call.OrderID == confirmLost["orderId"] {
			t.Errorf("the provider was asked: %+v", call)
		}
	}
	if charged := s.Sandbox.Ledger().Charged; charged != 30000 {
		t.Errorf("charged %d won", charged)
	}
}

// TestTimeOfOpening uses a branch that is open from 10:00 to 22:00, with a break from 15:00 to 16:00, closed on Mondays and
// public holidays. For a branch that never closes it checks midnight, the end of a month and the leap day.
func TestTimeOfOpening(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	wednesday := someday()
	s.Clock.Stop(wednesday.Add(-12 * hour))
	at := func(h, m int) time.Time {
		return time.Date(wednesday.Year(), wednesday.Month(), wednesday.Day(), h, m, 0, 0, seoul)
	}
	hongdae := func(start time.Time, length time.Duration) servicetest.Answer {
		body := holdBody(1, start, length)
		body["branch"] = "hongdae"
		return s.Client(t).Post("/reservation", body)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set schedule = schedule - 'ClosedOnHolidays'`); err != nil {
		t.Fatal(err) // the Wednesday may be a public holiday; see below
	}
	hongdae(at(10, 0), hour).OK(t)
	hongdae(at(14, 30), 30*minute).OK(t)
	hongdae(at(16, 0), 30*minute).OK(t)
	hongdae(at(21, 0), hour).OK(t)
	for what, answer := range map[string]servicetest.Answer{
		"before it opens":   hongdae(at(9, 50), 30*minute),
		"after it closes":   hongdae(at(21, 50), 20*minute),
		"at night":          hongdae(at(23, 0), hour),
		"into the break":    hongdae(at(12, 0), 3*hour+10*minute),
		"out of the break":  hongdae(at(15, 50), 20*minute),
		"around the break":  hongdae(at(13, 0), 4*hour),
		"a weekly day off":  hongdae(at(12, 0).AddDate(0, 0, 5), hour),
		"through the night": hongdae(at(21, 0), 5*hour),
	} {
		refuses(t, what, answer, "startDateTime")
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set schedule = schedule || '{"ClosedOnHolidays": true}' || jsonb_build_object('ExtraHolidays', jsonb_build_object($1::text, '임시공휴일')) where code = 'hongdae'`,
		wednesday.AddDate(0, 0, 1).Format("2006-01-02")); err != nil {
		t.Fatal(err)
	}
	refuses(t, "a public holiday", hongdae(at(12, 0).AddDate(0, 0, 1), hour), "startDateTime")
}

// A reservation can extend over midnight, the end of a month or year, and the leap day.
func TestTimeOverMidnight(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	year := time.Now().Year() + 1
	leap := year
	for time.Date(leap, 2, 29, 0, 0, 0, 0, time.UTC).Month() != time.February {
		leap++
	}
	for i, midnight := range []time.Time{
		time.Date(year, 4, 12, 0, 0, 0, 0, seoul), time.Date(year, 5, 1, 0, 0, 0, 0, seoul), time.Date(year+1, 1, 1, 0, 0, 0, 0, seoul),
		time.Date(leap, 2, 29, 0, 0, 0, 0, seoul), time.Date(leap, 3, 1, 0, 0, 0, 0, seoul),
	} {
		s.Clock.Stop(midnight.Add(-24 * hour))
		c := s.Client(t)
		start := midnight.Add(-30 * minute)
		var receipt map[string]any
		c.Post("/payment/confirm", order(t, s, c, 1, start, hour, 30000, "카드")).OK(t).Into(t, &receipt)
		for field, want := range map[string]time.Time{"startDateTime": start, "endDateTime": midnight.Add(20 * minute), "refundableDateTime": start.Add(-30 * minute)} {
			if receipt[field] != wire(want) {
				t.Errorf("%d: %s is %v, want %s", i, field, receipt[field], wire(want))
			}
		}
		var got v1
		c.Get("/reservations?"+hourOf("gangnam", midnight.Add(-hour))).OK(t).Into(t, &got)
		equal(t, "the evening", got.Paid, slots(1, start, start.Add(hour)))
		c.Get("/reservations?"+hourOf("gangnam", midnight)).OK(t).Into(t, &got)
		equal(t, "the morning", got.Paid, slots(1, midnight, start.Add(hour)))
		equal(t, "its margin", got.PaidMargin, slots(1, start.Add(hour), start.Add(hour+10*minute)))
		says(t, "over it", hold(t, s, 1, midnight, 10*minute), taken)

		// endDateTime is the start of the last slot, so a reservation until midnight reports a time on the previous day.
		c = s.Client(t)
		c.Post("/payment/confirm", order(t, s, c, 2, midnight.Add(-hour), hour, 25000, "카드")).OK(t).Into(t, &receipt)
		if receipt["endDateTime"] != wire(midnight.Add(-10*minute)) {
			t.Errorf("%d: end %v", i, receipt["endDateTime"])
		}
	}
}

// Doors open from two minutes before the start until two minutes before the real end.
func TestTimeOfUnlocking(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	start, end := someday(), someday().Add(hour)
	key := uuid.NewString()
	if _, err := s.DB.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, doorlock_key)
		select b.id, r.id, 'DONE', 'CUSTOMER', $1, $2, tstzrange($1, $2::timestamptz + interval '10 minutes'), '카드', 1000, $3
		from branch b join room r on r.branch_id = b.id where b.code = 'gangnam' and r.no = 1`, start, end, key); err != nil {
		t.Fatal(err)
	}
	closed := reply{410, "ResourceValidTimePassedException", "도어락 해제 가능 시간이 아닙니다."}
	for _, at := range []struct {
		now  time.Time
		want reply
	}{
		{start.Add(-24 * hour), closed}, {start.Add(-2*minute - time.Microsecond), closed},
		{start.Add(-2 * minute), success}, {start, success}, {end.Add(-10 * minute), success}, {end.Add(-2*minute - time.Microsecond), success},
		{end.Add(-2 * minute), closed}, {end, closed}, {end.Add(24 * hour), closed},
	} {
		s.Clock.Stop(at.now)
		for _, kind := range []string{"front", "room"} {
			says(t, kind+" at "+at.now.String(), s.Client(t).Post("/door/v2/unlock", unlockBody(kind, key)), at.want)
		}
	}
}

// A customer can cancel until exactly 30 minutes before the start.
func TestTimeOfCancellation(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	noon := someday()
	s.Clock.Stop(noon)
	for room, price := range map[int]int{1: 30000, 2: 25000} {
		c := s.Client(t)
		c.Post("/payment/confirm", order(t, s, c, room, noon.Add(2*hour), hour, price, "카드")).OK(t)
	}
	c := login(t, s, "01012345678")
	var records []struct {
		ID     int
		RoomNo string
	}
	c.Get("/my-reservations").OK(t).Into(t, &records)
	cancel := func(room string) servicetest.Answer {
		i := slices.IndexFunc(records, func(r struct {
			ID     int
			RoomNo string
		}) bool {
			return r.RoomNo == room
		})
		return c.Post("/payment/cancel", map[string]any{"id": records[i].ID, "cancelReason": "일정 변경"})
	}
	s.Clock.Stop(noon.Add(90*minute + time.Microsecond))
	says(t, "a moment too late", cancel("1"), reply{400, "IllegalArguemntError", "예약 시작 30분 전까지만 취소할 수 있습니다."})
	s.Clock.Stop(noon.Add(90 * minute))
	cancel("1").OK(t)
	s.Clock.Stop(noon.Add(3 * hour))
	says(t, "after it", cancel("2"), reply{400, "IllegalArguemntError", "예약 시작 30분 전까지만 취소할 수 있습니다."})
	cancel("1").OK(t) // a repeated cancellation changes nothing
	if refunded := s.Sandbox.Ledger().Refunded; refunded != 30000 {
		t.Errorf("refunded %d won", refunded)
	}
}

// A login code is valid for three minutes. The sessions of administrators and customers are valid for 24 hours.
func TestTimeOfLogins(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	noon := someday()
	s.Clock.Stop(noon)
	guest(t, s)
	body := map[string]string{"type": "mobile", "id": "01012345678"}
	s.Client(t).Post("/account/code", body).OK(t)
	body["code"] = awaitCode(t, s, "01012345678", 1)
	s.Clock.Stop(noon.Add(3 * minute))
	says(t, "after three minutes", s.Client(t).Post("/account/login", body), reply{401, "AuthenticationError", "인증번호가 올바르지 않거나 만료되었습니다."})
	// Another code: the expired one may have been deleted.
	s.Client(t).Post("/account/code", map[string]string{"type": "mobile", "id": "01012345678"}).OK(t)
	body["code"] = awaitCode(t, s, "01012345678", 2)
	s.Clock.Stop(noon.Add(6*minute - 1))
	customer := s.Client(t)
	customer.Post("/account/login", body).OK(t)
	admin := s.Admin(t, "hq", "hq-demo")
	since := s.Clock.Now()

	s.Clock.Stop(since.Add(24*hour - second))
	customer.Get("/my-reservations").OK(t)
	admin.Patch("/admin/machines/gangnam/1", map[string]bool{"enabled": true}).OK(t) // activity does not extend the session
	admin.Get("/admin/reservations?" + hourOf("gangnam", noon)).OK(t)
	s.Clock.Stop(since.Add(24 * hour))
	says(t, "the customer's session", customer.Get("/my-reservations"), noSuchSession)
	says(t, "the administrator's session", admin.Get("/admin/reservations?"+hourOf("gangnam", noon)), noSuchSession)
}

// A branch has its own time zone: its date and hour can differ, and daylight saving time skips one hour.
func TestTimeOfABranch(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	if _, err := s.DB.Pool.Exec(t.Context(), `
		with b as (insert into branch (code, time_zone) values ('manhattan', $1) returning id)
		insert into room (branch_id, no, min30, min60) select id, 1, 5, 9 from b`, "America/New_York"); err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	year := time.Now().Year() + 1
	spring := time.Date(year, 3, 8, 0, 0, 0, 0, zone) // the second Sunday of March
	for spring.Weekday() != time.Sunday {
		spring = spring.AddDate(0, 0, 1)
	}
	day := spring.Format("20060102")
	s.Clock.Stop(spring.Add(-24 * hour))
	c := s.Client(t)
	body := func(start, end string) map[string]any {
		return map[string]any{"branch": "manhattan", "room": 1, "startDateTime": day + start, "endDateTime": day + end}
	}
	refuses(t, "an hour that does not exist", c.Post("/reservation", body("0230", "0330")), "startDateTime")
	c.Post("/reservation", body("0130", "0330")).OK(t) // one hour, but two hours by the local clock
	var got v1
	c.Get("/reservations?branch=manhattan&base_date="+day+"&base_hour=1").OK(t).Into(t, &got)
	equal(t, "slots", got.Booking, []string{
		"1-" + day + "0130", "1-" + day + "0140", "1-" + day + "0150", "1-" + day + "0300", "1-" + day + "0310", "1-" + day + "0320",
	})
	c.Post("/payment", map[string]any{"amount": 9, "name": "Kim", "mobileNum": "010-1234-5678"}).OK(t)
	var v v2
	c.Get("/v2/branches/manhattan/reservations?date="+spring.Format("2006-01-02")+"&baseHour=1&hours=1").OK(t).Into(t, &v)
	equal(t, "an hour", v.UnavailableSlots.Booking, []string{"1-" + day + "0130", "1-" + day + "0140", "1-" + day + "0150"})
}
