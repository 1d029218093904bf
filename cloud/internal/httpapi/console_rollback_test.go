package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestFailedAuditEntryRollsBackTheChange makes the database reject audit entries and sends every kind of change that an
// administrator can make. Each must answer 500 and change nothing.
func TestFailedAuditEntryRollsBackTheChange(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	paid := live(t, c.s, 1)
	register(t, c.Manager, 2, slot(c.s, 5*time.Hour))
	registered := live(t, c.s, 2)
	message := only(t, c.s, `select max(id)::text from message where reservation_id = $1::bigint`, paid)
	var settings map[string]any
	c.HQ.Get("/v2/admin/branches/gangnam/settings").OK(t).Into(t, &settings)
	settings["phone"] = "02-999-9999"
	c.HQ.Post("/v2/admin/branches/gangnam/channels", map[string]any{"partner": "달력", "roomNo": "3"}).OK(t)
	listing := only(t, c.s, `select max(id)::text from channel_listing`)
	c.Manager.Post("/admin/reservation", holdBody(4, slot(c.s, 5*time.Hour), time.Hour)).OK(t)
	move := holdBody(3, slot(c.s, 8*time.Hour), time.Hour)
	move["room"] = "3"

	booking := map[string]any{ // the first booking of a partner also adds its rooms
		"partner": "전화", "externalId": "1", "roomNo": "5", "startDateTime": move["startDateTime"], "endDateTime": move["endDateTime"],
	}
	c.Manager.Post("/v2/admin/branches/gangnam/partner-bookings", booking).OK(t)
	booking["roomNo"] = "6"

	for _, statement := range []string{
		`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no space left'; end $$`,
		`create trigger refuse before insert on audit for each row execute function refuse()`,
	} {
		if _, err := c.s.DB.Pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	const branch = "/v2/admin/branches/gangnam"
	// Changes of background work, such as the state of a message, alerts and reminders of stays, are excluded.
	const state = `
		select concat_ws(E'\n',
			(select string_agg(b::text, '|' order by id) from branch b), (select string_agg(m::text, '|' order by id) from room m),
			(select string_agg(l::text, '|' order by id) from channel_listing l), (select string_agg(a::text, '|' order by id) from administrator a),
			(select string_agg(concat(id, state, room_id, start_at, end_at, name), '|' order by id) from reservation),
			(select string_agg(template, '|' order by id) from message where reservation_id is not null and template not like 'stay-%'), (select count(*) from agent_enrollment), (select count(*) from refund),
			(select string_agg(username || coalesce(revoked_at::text, ''), '|' order by username) from agent_credential),
			(select count(*) from administrator_branch), (select count(*) from partner_booking))`
	for _, change := range []struct {
		by           *servicetest.Client
		method, path string
		body         any
	}{
		{c.HQ, http.MethodPut, branch + "/settings", settings},
		{c.HQ, http.MethodPut, branch + "/rooms/1", map[string]any{"min60": 99000}},
		{c.HQ, http.MethodPut, branch + "/rooms/77", map[string]any{"min60": 99000}},
		{c.HQ, http.MethodPost, branch + "/channels", map[string]any{"partner": "달력", "roomNo": "5"}},
		{c.HQ, http.MethodPatch, branch + "/channels/" + listing, map[string]any{"enabled": false}},
		{c.HQ, http.MethodPost, branch + "/channels/" + listing + "/export", nil},
		{c.HQ, http.MethodPost, branch + "/agents", nil},
		{c.HQ, http.MethodDelete, "/v2/admin/agents/agent-gangnam", nil},
		{c.HQ, http.MethodPost, "/v2/admin/administrators", map[string]any{"id": "new", "password": "a good long password", "role": "hq"}},
		{c.HQ, http.MethodPut, "/v2/admin/administrators/gangnam-viewer", map[string]any{"role": "manager", "branches": []string{"gangnam"}}},
		{c.HQ, http.MethodPatch, "/v2/admin/administrators/gangnam-viewer", map[string]any{"disabled": true}},
		{c.HQ, http.MethodPost, "/v2/admin/administrators/gangnam-viewer/password", map[string]any{"password": "a good long password"}},
		{c.HQ, http.MethodPost, "/v2/admin/personal-data/erase", map[string]any{"contact": "010-8765-4321"}},
		{c.Manager, http.MethodPatch, "/admin/machines/gangnam/6", map[string]any{"enabled": false}},
		{c.Manager, http.MethodPut, "/admin/reservation/" + registered, move},
		{c.Manager, http.MethodDelete, "/admin/reservation/" + paid + "?bookingStatus=DONE", nil},
		{c.Manager, http.MethodPost, "/admin/payment", map[string]any{"name": "홍길동"}},
		{c.Manager, http.MethodPost, "/v2/admin/messages/" + message + "/resend", nil},
		{c.Manager, http.MethodPost, "/v2/admin/reservations/" + registered + "/key-message", nil},
		{c.Manager, http.MethodPost, branch + "/partner-bookings", booking},
	} {
		before := only(t, c.s, state)
		if answer := change.by.Do(change.method, change.path, change.body); answer.HTTP != http.StatusInternalServerError {
			t.Errorf("%s %s: got status %d, want 500: %s", change.method, change.path, answer.HTTP, answer.Raw)
		}
		if after := only(t, c.s, state); after != before {
			t.Errorf("%s %s: the change was kept without its audit entry (-before +after):\n%s", change.method, change.path, cmp.Diff(before, after))
		}
	}
}

// TestOvernightHoursCanBeSaved saves settings of a branch that is open past midnight, unchanged and changed.
func TestOvernightHoursCanBeSaved(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const path = "/v2/admin/branches/hongdae/settings"
	var settings map[string]any
	hq.Get(path).OK(t).Into(t, &settings)
	nights := []any{map[string]any{"from": "18:00", "to": "02:00"}}
	for i := range 7 {
		settings["week"].([]any)[i] = map[string]any{"closed": false, "open": nights, "breaks": []any{map[string]any{"from": "23:50", "to": "00:10"}}}
	}
	hq.Put(path, settings).OK(t)
	hq.Get(path).OK(t).Into(t, &settings)
	if day := settings["week"].([]any)[5].(map[string]any); day["open"].([]any)[0].(map[string]any)["to"] != "02:00" {
		t.Errorf("got %v, want 18:00 to 02:00", day)
	}
	settings["phone"] = "02-1234-5678"
	hq.Put(path, settings).OK(t)
	hq.Get(path).OK(t).Into(t, &settings)

	settings["week"].([]any)[6] = map[string]any{"closed": false, "open": []any{map[string]any{"from": "01:00", "to": "10:00"}}, "breaks": []any{}}
	says(t, "Friday night runs into Saturday", hq.Put(path, settings),
		reply{400, "IllegalArguemntError", "금요일 운영 시간(open) 값이 올바르지 않습니다."})
}

// TestFeedAddressesWithPasswordsAreRefused checks that the console applies channel.CheckFeedURL.
func TestFeedAddressesWithPasswordsAreRefused(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	for _, feed := range []string{"https://me:secret@partner.example/2.ics", "http://partner.example/2.ics", "https:///2.ics", "ftp://partner.example/2.ics"} {
		refuses(t, feed, s.Admin(t, "hq", "hq-demo").Post("/v2/admin/branches/hongdae/channels", map[string]any{"partner": "달력", "roomNo": "2", "feedUrl": feed}), "feedUrl")
	}
}
