package e2e

import (
	"testing"
	"time"
)

// TestConsoleConflict: a booking that a partner has sold although a part of its time was taken is on the day's screen, with the rest of its
// time, which is not sold. Calendars are read over public addresses only, so the test stores what the import of one does
// (TestConflictIsNotSold).
func TestConsoleConflict(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, day := dayAfter()
	at := func(hour, minute int) time.Time {
		return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	hq := staff(t, s)
	hq.must("POST", "/admin/reservation", map[string]any{"branch": "gangnam", "room": 2, "startDateTime": at(10, 0).Format("200601021504"), "endDateTime": at(11, 0).Format("200601021504")}, nil)
	hq.must("POST", "/admin/payment", map[string]any{"name": "김서연"}, nil)
	if _, err := database(t, s).Exec(t.Context(), `
		with room as (select id, branch_id from room where no = 2 and branch_id = (select id from branch where code = 'gangnam')),
		conflict as (
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, amount, paid_at, created_by)
			select branch_id, id, 'CONFLICT', 'PARTNER', $1, $2, tstzrange($1, $2), '이손님', 0, now(), 'spacecloud' from room returning id
		)
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at, created_by, extends)
		select branch_id, room.id, 'HOLD', 'PARTNER', $3, $2, tstzrange($3, $2), $2, 'spacecloud', conflict.id from room, conflict`,
		at(10, 30), at(13, 0), at(11, 0)); err != nil {
		t.Fatal(err)
	}
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/gangnam/day/" + date)
	p.on(desktop).see("이손님", "겹친 예약 몫 보류")
	p.survey("console-conflict")
	p.on(desktop).press("겹친 예약 몫 보류")
	p.see("겹친 외부 예약", "이손님")
}
