package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

func TestMove(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t)) // with a paid hour in room 1, from start
	s, admin := c.s, c.Manager
	const minute = time.Minute
	start := c.start
	id := live(t, s, 1)
	move := func(room int, from, length time.Duration) servicetest.Answer {
		t.Helper()
		return admin.Put("/admin/reservation/"+id, map[string]any{
			"room": fmt.Sprint(room), "startDateTime": wire(start.Add(from)), "endDateTime": wire(start.Add(from + length)), "reason": "고객 요청",
		})
	}
	// Obstacles: room 2 has a paid reservation, room 3 has a hold, and room 5 is disabled.
	register(t, admin, 2, start)
	hold(t, s, 3, start, time.Hour).OK(t)
	admin.Patch("/admin/machines/gangnam/5", map[string]bool{"enabled": false}).OK(t)
	says(t, "taken", move(2, 0, time.Hour), taken)
	says(t, "into a margin", move(2, 60*minute, time.Hour), taken)
	says(t, "held", move(3, 30*minute, time.Hour), held)
	says(t, "disabled", move(5, 0, time.Hour), roomDisabled)
	says(t, "unknown room", move(7, 0, time.Hour), reply{404, "ResourceNotFoundException", "해당 룸을 찾을 수 없습니다."})
	says(t, "over 5 hours", move(4, 0, 5*time.Hour+10*minute), tooLong)
	refuses(t, "the past", move(4, -4*time.Hour, time.Hour), "startDateTime")
	refuses(t, "backwards", move(4, 0, -time.Hour), "endDateTime")
	says(t, "unknown", admin.Put("/admin/reservation/999999", map[string]any{"room": "4", "startDateTime": wire(start), "endDateTime": wire(start.Add(time.Hour))}), noReservation)
	if moves := only(t, s, `select count(*)::text from reservation_move`); moves != "0" {
		t.Errorf("%s refused moves were made", moves)
	}

	if answer := move(4, 0, 5*time.Hour).OK(t); string(answer.Data) != "null" {
		t.Errorf("data %s", answer.Data)
	}
	hold(t, s, 1, start, time.Hour).OK(t) // the old slot is free
	says(t, "its new place", hold(t, s, 4, start.Add(4*time.Hour), time.Hour), taken)
	move(4, 10*minute, 20*minute).OK(t) // overlaps its own old time
	move(2, 70*minute, time.Hour).OK(t) // adjacent to the margin of another reservation
	var paid map[string]any
	admin.Get("/admin/reservation/"+id).OK(t).Into(t, &paid)
	if paid["paidTotalAmount"] != "30000" || paid["paidRoom"] != "2" || paid["paidStartDateTime"] != wire(start.Add(70*minute)) || paid["paidEndDateTime"] != wire(start.Add(120*minute)) {
		t.Errorf("moved: %v", paid)
	}
	move(1, 90*minute, 10*minute).OK(t)

	// A move that names an outdated version is rejected. The version is optional.
	version := 0
	if err := s.DB.Pool.QueryRow(t.Context(), `select version from reservation where id = $1::bigint`, id).Scan(&version); err != nil {
		t.Fatal(err)
	}
	body := map[string]any{"room": "4", "startDateTime": wire(start), "endDateTime": wire(start.Add(time.Hour)), "version": version - 1}
	says(t, "stale", admin.Put("/admin/reservation/"+id, body), reply{409, "SettingConflictException", "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요."})
	// Each message names the room and time after its move.
	for room, from := range map[string]time.Duration{"2": 70 * minute, "1": 90 * minute} {
		eventually(t, "the guest is notified of room "+room, func() bool {
			return slices.ContainsFunc(s.Sandbox.Messages("01012345678"), func(m sandbox.Message) bool {
				return m.Template == "reservation-moved" && m.Variables["room"] == room && strings.HasPrefix(m.Variables["time"], start.Add(from).In(seoul).Format("15:04"))
			})
		})
	}
	body["version"], body["notify"] = version, false
	told := func() string {
		return only(t, s, `select count(*)::text from message where template = 'reservation-moved' and reservation_id = $1::bigint`, id)
	}
	before := told()
	admin.Put("/admin/reservation/"+id, body).OK(t)
	if after := told(); before != "4" || after != before {
		t.Errorf("messages about a move: %s, then %s after one without a message; want 4 both times", before, after)
	}

	holdID := live(t, s, 3)
	answer := admin.Put("/admin/reservation/"+holdID, map[string]any{"room": "6", "startDateTime": wire(start), "endDateTime": wire(start.Add(time.Hour))})
	says(t, "a hold", answer, reply{400, "IllegalArguemntError", "변경할 수 없는 예약입니다."})
	if moves := only(t, s, `select count(*)::text from audit where action = 'reservation.move' and target = $1`, id); moves != "5" {
		t.Errorf("%s of 5 moves are in the audit log", moves)
	}
}
