package httpapi_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// A room that is added in the console starts disabled. It can be enabled once the agent has reported its door and its PIN is
// known, or if it is declared to have no lock.
func TestNewRoomNeedsAProvenLock(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const rooms = "/v2/admin/branches/gangnam/rooms/"
	enable := func(room string, enabled bool) servicetest.Answer {
		return hq.Patch("/admin/machines/gangnam/"+room, map[string]bool{"enabled": enabled})
	}
	unproven := func(what, room string, noDoor, noPIN bool) {
		t.Helper()
		var missing struct{ NoDoor, NoPIN bool }
		answer := enable(room, true)
		answer.Fails(t, http.StatusConflict, "SettingConflictException", "")
		if answer.Into(t, &missing); missing.NoDoor != noDoor || missing.NoPIN != noPIN {
			t.Errorf("%s: got %+v, want noDoor %v, noPin %v", what, missing, noDoor, noPIN)
		}
	}
	hold := func(room int) servicetest.Answer {
		return s.Client(t).Post("/reservation", holdBody(room, slot(s, 3*time.Hour), time.Hour))
	}

	hq.Put(rooms+"13", map[string]any{"min60": 20000}).OK(t)
	hold(13).Fails(t, http.StatusConflict, "SettingConflictException", "")
	unproven("new", "13", true, true)
	hq.Put("/v2/admin/branches/gangnam/doors/room_13/pin", map[string]any{"pin": "471100"}).OK(t)
	refuses(t, "no PIN", hq.Put("/v2/admin/branches/gangnam/doors/room_13/pin", map[string]any{"pin": "letmein"}), "pin")
	says(t, "no such door", hq.Put("/v2/admin/branches/gangnam/doors/room_99/pin", map[string]any{"pin": "4711"}), noRoom)
	unproven("with a PIN", "13", true, false)
	a := connectAgent(t, s, "gangnam", protocol.Inventory{Doors: []protocol.Door{{Device: "room_13", Kind: protocol.DoorRoom}}})
	waitOnline(t, a)
	for seen := false; !seen; time.Sleep(10 * time.Millisecond) { // the inventory is stored asynchronously
		seen = only(t, s, `select exists (select from agent_inventory where inventory::text like '%room_13%')::text`) == "true"
	}
	enable("13", true).OK(t)
	hold(13).OK(t)
	enable("1", false).OK(t)
	enable("1", true).OK(t) // rooms from a branch file need no proof of their locks

	hq.Put(rooms+"14", map[string]any{"min60": 20000, "noLock": true}).OK(t)
	enable("14", true).OK(t)
	refuses(t, "a lock on a room that is on sale", hq.Put(rooms+"14", map[string]any{"noLock": false}), "noLock")

	hq.Put(rooms+"15", map[string]any{"min60": 20000}).OK(t)
	hq.Post("/v2/admin/branches/gangnam/channels", map[string]any{"partner": "달력", "roomNo": "15"}).OK(t) // as the gateway does by itself
	listed := only(t, s, `select id::text from channel_listing where partner = '달력'`)
	if _, err := s.DB.Pool.Exec(t.Context(), `select alert_open('discrepancy', 'gangnam', 'calendar:' || $1::text, now())`, listed); err != nil {
		t.Fatal(err)
	}
	hq.Delete(rooms+"15", nil).OK(t)
	if left := only(t, s, `select count(*)::text from alert where subject = 'calendar:' || $1::text and ended_at is null`, listed); left != "0" {
		t.Errorf("%s alerts about a calendar of the deleted room, want none", left)
	}
	says(t, "deleted", hq.Delete(rooms+"15", nil), noRoom)

	hq.Put(rooms+"16", map[string]any{"min60": 20000}).OK(t)
	hq.Post("/v2/admin/branches/gangnam/channels", map[string]any{"partner": "제휴", "roomNo": "16"}).OK(t)
	if _, err := s.DB.Pool.Exec(t.Context(), `
		insert into partner_booking (partner, external_id, listing_id, status, start_at, end_at)
		select partner, 'sold', id, 'CONFLICT', now(), now() + interval '1 hour' from channel_listing where partner = '제휴'`); err != nil {
		t.Fatal(err)
	}
	hq.Delete(rooms+"16", nil).Fails(t, http.StatusConflict, "SettingConflictException", "사용 중이거나 예약된 적이 있는 룸은 삭제할 수 없습니다.")
	hq.Delete(rooms+"13", nil).Fails(t, http.StatusConflict, "SettingConflictException", "사용 중이거나 예약된 적이 있는 룸은 삭제할 수 없습니다.")
}

// Hours and closures that exclude live reservations are stored only if the administrator accepts the conflicts.
func TestClosureOverReservationsIsAConflict(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	const path = "/v2/admin/branches/gangnam/settings"
	read := func() (settings map[string]any) {
		t.Helper()
		c.HQ.Get(path).OK(t).Into(t, &settings)
		return settings
	}
	day := c.start.In(seoul).Format(time.DateOnly)
	settings := read()
	settings["closures"] = []any{map[string]any{"from": day, "to": day, "reason": "공사"}}
	answer := c.HQ.Put(path, settings)
	answer.Fails(t, http.StatusConflict, "SettingConflictException", "변경할 운영 시간 밖에 예약이 있습니다.")
	var found struct {
		Conflicts []struct{ Type, Room, Name string }
	}
	if answer.Into(t, &found); len(found.Conflicts) != 1 || found.Conflicts[0].Type != "PAID" || found.Conflicts[0].Room != "1" {
		t.Errorf("got %+v, want the paid reservation of room 1", found)
	}
	if len(read()["closures"].([]any)) != 0 {
		t.Error("the closure was stored in spite of the conflict")
	}
	settings["acceptConflicts"] = true
	c.HQ.Put(path, settings).OK(t)
	settings = read()
	settings["phone"] = "02-1234-5678"
	c.HQ.Put(path, settings).OK(t) // a conflict that was accepted is not reported again
}

// Many customers try to hold slots of a day while an administrator stores a closure of that day. Afterwards the closure
// must contain no hold that was not reported to the administrator.
func TestNoHoldSlipsIntoAClosure(t *testing.T) {
	t.Parallel()
	s := unlimited(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const path = "/v2/admin/branches/gangnam/settings"
	var settings map[string]any
	hq.Get(path).OK(t).Into(t, &settings)
	start := someday()
	day := start.In(seoul).Format(time.DateOnly)
	settings["closures"] = []any{map[string]any{"from": day, "to": day, "reason": "공사"}}
	clients := make([]*servicetest.Client, 12)
	for i := range clients {
		clients[i] = s.Client(t)
	}
	begin := make(chan struct{})
	var wait sync.WaitGroup
	for i, client := range clients {
		wait.Go(func() {
			<-begin
			for n := range 6 {
				client.Post("/reservation", holdBody(1+i%6, start.Add(time.Duration(n)*80*time.Minute-time.Duration(i/6)*5*time.Hour), time.Hour))
			}
		})
	}
	var stored servicetest.Answer
	wait.Go(func() {
		<-begin
		stored = hq.Put(path, settings)
	})
	close(begin)
	wait.Wait()
	inside := only(t, s, `
		select count(*)::text from reservation r join branch b on b.id = r.branch_id
		where b.code = 'gangnam' and state = 'HOLD' and (start_at at time zone 'Asia/Seoul')::date = $1::text::date`, day)
	if stored.HTTP == http.StatusOK && inside != "0" {
		t.Errorf("got %s holds inside the closure, want 0", inside)
	}
}

var noRoom = reply{http.StatusNotFound, "ResourceNotFoundException", "해당 룸을 찾을 수 없습니다."}
