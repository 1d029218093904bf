package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type conflict struct{ Type, Status, StatusDescription, Room, Name, MobileNum, StartTime, EndTime, OrderID string }

// A room can be disabled only if it has no current or upcoming reservations.
func TestSwitchRoom(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	admin := s.Admin(t, "gangnam-manager", "gangnam-demo")
	start := slot(s, 3*time.Hour)
	after := func(i int) time.Time { return start.Add(time.Duration(i) * 2 * time.Hour) }
	turn := func(room int, on bool) servicetest.Answer {
		return admin.Patch(fmt.Sprintf("/admin/machines/gangnam/%d", room), map[string]bool{"enabled": on})
	}
	// Room 1 has reservations of all five types, ordered by time.
	partner := func(state string, from time.Time, name string) {
		t.Helper()
		if _, err := s.DB.Pool.Exec(t.Context(), `
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, created_by, amount)
			select b.id, r.id, $1, 'PARTNER', $2, $3, tstzrange($2, $3::timestamptz + interval '10 minutes'), $4, '010-7777-8888', 'sandbox', 0
			from branch b join room r on r.branch_id = b.id where b.code = 'gangnam' and r.no = 1`, state, from, from.Add(time.Hour), name); err != nil {
			t.Fatal(err)
		}
	}
	partner("DONE", start.Add(-24*time.Hour), "어제") // over
	partner("CANCELED", after(0), "취소")
	c := s.Client(t)
	c.Post("/payment/confirm", order(t, s, c, 1, after(0), time.Hour, 30000, "카드")).OK(t)
	c.Post("/payment/confirm", order(t, s, c, 1, after(1), time.Hour, 30000, "가상계좌")).OK(t)
	hold(t, s, 1, after(2), time.Hour).OK(t)
	order(t, s, s.Client(t), 1, after(3), time.Hour, 30000, "카드")
	register(t, admin, 1, after(4))
	admin.Post("/admin/reservation", holdBody(1, after(5), time.Hour)).OK(t)
	partner("DONE", after(6), "네이버 손님")

	answer := turn(1, false)
	says(t, "off", answer, reply{409, "SettingConflictException", "해당 룸에 예약이 존재하여 비활성화할 수 없습니다."})
	var data struct{ Conflicts []conflict }
	answer.Into(t, &data)
	period := func(i int) (string, string) {
		const layout = "2006/01/02 15:04"
		return after(i).In(seoul).Format(layout), after(i).Add(time.Hour).In(seoul).Format(layout)
	}
	orderID := func(i int) string {
		return only(t, s, `select coalesce(order_id, '') from reservation where start_at = $1 and state <> 'CANCELED'`, after(i))
	}
	var want []conflict
	for i, w := range []conflict{
		{Type: "PAID", Status: "DONE", StatusDescription: "결제 완료", Name: "홍길동", MobileNum: "010-1234-5678"},
		{Type: "WAITING_DEPOSIT", Status: "WAITING_FOR_DEPOSIT", StatusDescription: "입금 대기", Name: "홍길동", MobileNum: "010-1234-5678"},
		{Type: "BOOKING", Status: "beforePaymentTab", StatusDescription: "예약 진행 중"},
		{Type: "BOOKING", Status: "paymentTab", StatusDescription: "결제 진행 중", Name: "홍길동", MobileNum: "010-1234-5678"},
		{Type: "ADMIN_BOOKING", Status: "DONE", StatusDescription: "관리자 예약", Name: "홍길동", MobileNum: "010-8765-4321"},
		{Type: "ADMIN_BOOKING", Status: "beforePaymentTab", StatusDescription: "관리자 예약 진행 중"},
		{Type: "PARTNER_BOOKING", Status: "CONFIRMED", StatusDescription: "외부 채널 예약", Name: "네이버 손님", MobileNum: "010-7777-8888"},
	} {
		w.Room, w.OrderID = "1", orderID(i)
		w.StartTime, w.EndTime = period(i)
		want = append(want, w)
	}
	equal(t, "conflicts", data.Conflicts, want)
	var slots v1
	c.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &slots)
	equal(t, "it stays on", slots.DisabledRooms, []string{})

	if answer := turn(6, false).OK(t); string(answer.Data) != "null" {
		t.Errorf("data %s", answer.Data)
	}
	turn(6, false).OK(t) // the room is already disabled
	c.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &slots)
	equal(t, "off", slots.DisabledRooms, []string{"6"})
	says(t, "a disabled room", hold(t, s, 6, start, time.Hour), roomDisabled)
	turn(6, true).OK(t)
	c.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &slots)
	equal(t, "on again", slots.DisabledRooms, []string{})
	hold(t, s, 6, start, time.Hour).OK(t)
}
