package httpapi_test

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
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
	equal(t, "a turnover of null", margins(), around(30))
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

// TestRoomIsAdded: a request that adds a room does not change the room that has the number already.
func TestRoomIsAdded(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	body := map[string]any{"create": true, "machine": "새 침대", "min60": 1000}
	says(t, "a room on sale", hq.Put("/v2/admin/branches/gangnam/rooms/1", body), reply{409, "SettingConflictException", "이미 있는 룸 번호입니다."})
	if n := count(t, s, `select count(*) from room where machine = '새 침대'`); n != 0 {
		t.Error("the room was changed")
	}
	hq.Put("/v2/admin/branches/gangnam/rooms/77", body).OK(t)
	says(t, "again", hq.Put("/v2/admin/branches/gangnam/rooms/77", body), reply{409, "SettingConflictException", "이미 있는 룸 번호입니다."})
}

// TestRoomKeepsAbsentFields: a change of one field of a room leaves the others as they are, also those that another request
// changes at the same moment; null removes a price.
func TestRoomKeepsAbsentFields(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const room = "/v2/admin/branches/gangnam/rooms/77"
	type facts struct {
		RoomNo, Machine, Grade string
		Pricing                struct{ Min10, Min30, Min60 *int }
		TurnoverMinutes        int
		Lock                   string
	}
	stored := func() (found facts) {
		var settings struct{ Rooms []facts }
		hq.Get("/v2/admin/branches/gangnam/settings").OK(t).Into(t, &settings)
		for _, r := range settings.Rooms {
			if r.RoomNo == "77" {
				found = r
			}
		}
		return found
	}
	hq.Put(room, map[string]any{"machine": "A", "grade": "Gold", "min10": 1000, "min30": 2500, "min60": 4000, "turnoverMinutes": 30, "noLock": true}).OK(t)
	want := stored()
	for field, change := range map[string]func(){
		"turnoverMinutes": func() { want.TurnoverMinutes = 20 },
		"min60":           func() { want.Pricing.Min60 = new(5000) },
		"machine":         func() { want.Machine = "B" },
		"grade":           func() { want.Grade = "Stella" },
	} {
		change()
		value := map[string]any{"turnoverMinutes": 20, "min60": 5000, "machine": "B", "grade": "Stella"}[field]
		hq.Put(room, map[string]any{field: value}).OK(t)
		equal(t, "after a change of "+field, stored(), want)
	}
	hq.Put(room, map[string]any{"min30": nil}).OK(t)
	want.Pricing.Min30 = nil
	equal(t, "without a price", stored(), want)

	for n := range 10 {
		bodies := []map[string]any{{"machine": strconv.Itoa(n)}, {"min10": 1000 * (n + 2)}}
		answers := make([]servicetest.Answer, len(bodies))
		var changes sync.WaitGroup
		for i, body := range bodies {
			changes.Go(func() { answers[i] = hq.Put(room, body) })
		}
		changes.Wait()
		for i, set := range []func(){func() { want.Machine = strconv.Itoa(n) }, func() { want.Pricing.Min10 = new(1000 * (n + 2)) }} {
			if answers[i].HTTP == http.StatusConflict {
				continue // the other one was first
			}
			answers[i].OK(t)
			set()
		}
		equal(t, "after two changes at once", stored(), want)
	}
}
