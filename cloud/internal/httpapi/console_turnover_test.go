package httpapi_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestTurnover: the turnover of a room keeps holds apart and is shown as margins; a longer one applies to the reservations
// that exist, or is rejected with those that lie closer together.
func TestTurnover(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const room = "/v2/admin/branches/gangnam/rooms/2"
	day := someday()
	hold := func(from, length time.Duration) servicetest.Answer {
		return s.Client(t).Post("/reservation", holdBody(2, day.Add(from), length))
	}
	turnover := func(minutes any) servicetest.Answer {
		return hq.Put(room, map[string]any{"min10": 5000, "min30": 14000, "min60": 26000, "turnoverMinutes": minutes})
	}
	margins := func() []string {
		var found v2
		s.Client(t).Get("/v2/branches/gangnam/reservations?"+dayOf(day.Add(-2*time.Hour), 8)).OK(t).Into(t, &found)
		return slices.DeleteFunc(found.UnavailableSlots.BookingMargin, func(slot string) bool { return slot[:2] != "2-" })
	}
	around := func(minutes time.Duration) []string {
		return append(slots(2, day.Add(-minutes*time.Minute), day), slots(2, day.Add(time.Hour), day.Add(time.Hour+minutes*time.Minute))...)
	}

	for _, minutes := range []any{0, 9, 61, -10, 30.5, "30"} {
		refuses(t, "turnover", turnover(minutes), "turnoverMinutes")
	}
	hold(0, time.Hour).OK(t)
	equal(t, "margins of ten minutes", margins(), around(10))
	turnover(30).OK(t)
	equal(t, "margins of the turnover", margins(), around(30))
	turnover(nil).OK(t)
	equal(t, "an omitted turnover", margins(), around(30))
	var settings struct {
		Rooms []struct {
			RoomNo          string `json:"roomNo"`
			TurnoverMinutes int    `json:"turnoverMinutes"`
		}
	}
	hq.Get("/v2/admin/branches/gangnam/settings").OK(t).Into(t, &settings)
	for _, r := range settings.Rooms {
		if want := map[bool]int{true: 30, false: 10}[r.RoomNo == "2"]; r.TurnoverMinutes != want {
			t.Errorf("room %s: got %d, want %d", r.RoomNo, r.TurnoverMinutes, want)
		}
	}

	const taken = "이미 예약 진행 중인 시간대입니다."
	for _, start := range []time.Duration{-80, 70, 80} { // an hour each
		hold(start*time.Minute, time.Hour).Fails(t, http.StatusConflict, "ResourceAlreadyExistException", taken)
	}
	hold(90*time.Minute, time.Hour).OK(t)

	var found struct {
		Conflicts []struct{ Room, StartTime string }
	}
	answer := turnover(40)
	answer.Fails(t, http.StatusConflict, "SettingConflictException", "예약 사이의 간격이 새 정리 시간보다 짧습니다.")
	answer.Into(t, &found)
	if len(found.Conflicts) != 1 || found.Conflicts[0].Room != "2" {
		t.Errorf("conflicts: %+v, want the later hold", found.Conflicts)
	}
	turnover(10).OK(t)
	hold(-70*time.Minute, time.Hour).OK(t)
}
