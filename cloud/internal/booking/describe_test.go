package booking_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestBranchFacts describes a branch without settings, and one with every setting.
func TestBranchFacts(t *testing.T) {
	t.Parallel()
	plain := booking.DefaultBranch()
	equal(t, "without settings", booking.Sentence(plain.Facts()), `name "", English name "", address "", location unknown, phone "", `+
		`time zone Asia/Seoul, horizon 60 days, front doors front_1, keypads standalone, hours mon-sun 00:00-24:00, breaks none, `+
		`closures none, holidays open, refund policy 100% until 30 minutes before, compensation none`)

	full := plain
	full.NameKo, full.NameEn, full.Address, full.Phone = "강남점", "Gangnam", "서울", "02-1"
	full.Location = &booking.Location{Latitude: 37.5, Longitude: 127}
	full.FrontDoors = []string{"front_1", "front_2"}
	full.Keypads = map[string]booking.Keypad{"room_2": booking.KeypadNone, "front_1": booking.KeypadAgent}
	full.Schedule = hongdae()
	full.Schedule.Week[time.Saturday].Open = []booking.ClockSpan{{From: 600, To: 720}, {From: 1080, To: 1560}}
	full.Schedule.Week[time.Sunday] = booking.Day{Closed: true}
	full.Schedule.Closures = []booking.Closure{{From: date("2027-01-01"), To: date("2027-01-02"), Reason: "점검"}, {From: date("2027-02-01"), To: date("2027-02-01")}}
	full.Schedule.OpenHolidays, full.Schedule.RemovedHolidays = []booking.Date{date("2027-05-05")}, []booking.Date{date("2027-05-01")}
	full.Schedule.ExtraHolidays = map[booking.Date]string{date("2027-06-02"): "선거", date("2027-06-01"): "개점"}
	full.RefundPolicy = policy
	full.Compensation = booking.Compensation{AfterMinutes: 3, ExtendFirst: true, WonPerMinute: 100, FullAfterMinutes: 20, PerPhonePerMonth: 2}
	equal(t, "what is different", booking.Differences(plain.Facts(), full.Facts()), []string{
		`name "" → "강남점"`, `English name "" → "Gangnam"`, `address "" → "서울"`, `location unknown → 37.5, 127`, `phone "" → "02-1"`,
		`front doors front_1 → front_1 front_2`,
		`keypads standalone → front_1 agent, room_2 none`,
		`hours mon-sun 00:00-24:00 → mon closed, tue-fri 10:00-22:00, sat 10:00-12:00 and 18:00-02:00, sun closed`,
		`breaks none → mon-sat 15:00-16:00`,
		`closures none → 2027-01-01 to 2027-01-02 "점검"; 2027-02-01 to 2027-02-01 ""`,
		`holidays open → closed; open on 2027-05-05; also 2027-06-01 "개점"; also 2027-06-02 "선거"; not 2027-05-01`,
		`refund policy 100% until 30 minutes before → 100% until 1440 minutes before, 33% until 90 minutes before, 0% until 60 minutes before`,
		`compensation none → after 3 minutes, extend first true, 100 won per minute, all after 20 minutes, 2 per phone and month`,
	})
	equal(t, "without a difference", booking.Differences(full.Facts(), full.Facts()), []string(nil))
}

func TestRoomFacts(t *testing.T) {
	t.Parallel()
	equal(t, "without settings", booking.Sentence(booking.Room{}.Facts()), `machine "", grade none, price -/-/-, state disabled`)
	room := booking.Room{
		Machine: "베드", Grade: booking.Gold, Enabled: true, Price: booking.Price{Min10: won(1000), Min60: won(5000)},
		PriceRules: []booking.PriceRule{
			{From: date("2027-01-01"), Days: []time.Weekday{time.Sunday, time.Wednesday, time.Monday, time.Saturday}, Holidays: true, Price: booking.Price{Min30: won(4000)}},
			{From: date("2027-02-01"), Hours: &booking.ClockSpan{From: 1080, To: 1560}, Price: booking.Price{Min60: won(9000)}},
		},
	}
	equal(t, "with all settings", booking.Sentence(room.Facts()), `machine "베드", grade Gold, price 1000/-/5000`+
		`; from 2027-01-01 mon wed sat sun holidays -/4000/-; from 2027-02-01 every day 18:00-02:00 -/-/9000, state enabled`)
}
