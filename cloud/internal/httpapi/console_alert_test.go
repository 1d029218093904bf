package httpapi_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type alertAnswer struct {
	ID             string
	Kind           string
	Branch         string
	Subject        string
	AcknowledgedBy *string
	EndedAt        *string
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	for i, branch := range []string{"", "gangnam", "hongdae", "gangnam"} {
		if _, err := s.DB.Pool.Exec(t.Context(), `insert into alert (kind, branch, subject, since, notified_at, ended_at) values ('refund-failed', $1, $2, now(), now(), $3)`,
			branch, "room_"+strconv.Itoa(i), map[bool]any{true: s.Clock.Now()}[i == 3]); err != nil {
			t.Fatal(err)
		}
	}
	list := func(client *servicetest.Client, query string) (rooms []string, next *string) {
		t.Helper()
		var answer struct {
			Alerts []alertAnswer
			Next   *string
		}
		client.Get("/v2/admin/alerts"+query).OK(t).Into(t, &answer)
		for _, a := range answer.Alerts {
			rooms = append(rooms, a.Subject)
		}
		return rooms, answer.Next
	}
	for _, tc := range []struct {
		client *servicetest.Client
		query  string
		want   []string
	}{
		{c.HQ, "", []string{"room_2", "room_1", "room_0"}},
		{c.HQ, "?branch=gangnam&state=all", []string{"room_3", "room_1"}},
		{c.Manager, "?state=open", []string{"room_1"}},
		{c.Viewer, "?state=all", []string{"room_3", "room_1"}},
		{c.Other, "", []string{"room_2"}},
	} {
		if rooms, _ := list(tc.client, tc.query); !slices.Equal(rooms, tc.want) {
			t.Errorf("%s: %q, want %q", tc.query, rooms, tc.want)
		}
	}
	first, next := list(c.HQ, "?state=all&limit=3")
	if len(first) != 3 || next == nil {
		t.Fatalf("first page %q, next %v", first, next)
	}
	if second, end := list(c.HQ, "?state=all&limit=3&cursor="+*next); !slices.Equal(second, []string{"room_0"}) || end != nil {
		t.Errorf("second page %q, next %v", second, end)
	}
	c.Manager.Get("/v2/admin/alerts?branch=hongdae").Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")
	c.HQ.Get("/v2/admin/alerts?branch=nowhere").Fails(t, 404, "ResourceNotFoundException", "해당 지점을 찾을 수 없습니다.")
	c.HQ.Get("/v2/admin/alerts?state=closed").Fails(t, 400, "IllegalArguemntError", "상태(state) 값이 올바르지 않습니다.")
	c.HQ.Get("/v2/admin/alerts?cursor=x").Fails(t, 400, "IllegalArguemntError", "다음 위치(cursor) 값의 형식이 올바르지 않습니다.")

	of := func(room string) string {
		return "/v2/admin/alerts/" + only(t, s, `select id::text from alert where subject = $1`, room) + "/acknowledge"
	}
	c.Other.Post(of("room_1"), nil).Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")
	c.Manager.Post(of("room_0"), nil).Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")
	c.HQ.Post("/v2/admin/alerts/999/acknowledge", nil).Fails(t, 404, "ResourceNotFoundException", "해당 알림을 찾을 수 없습니다.")
	var acknowledged alertAnswer
	c.Manager.Post(of("room_1"), nil).OK(t)
	c.HQ.Post(of("room_1"), nil).OK(t).Into(t, &acknowledged)
	if acknowledged.AcknowledgedBy == nil || *acknowledged.AcknowledgedBy != "gangnam-manager" {
		t.Errorf("acknowledged by %v, want gangnam-manager", acknowledged.AcknowledgedBy)
	}
	if n := only(t, s, `select count(*)::text from audit where action = 'alert.acknowledge'`); n != "1" {
		t.Errorf("%s audit entries, want 1", n)
	}
}

// Contacts are part of the settings: validated, stored sealed, and shown without addresses to administrators who may not change settings.
func TestAlertContactsInSettings(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	settings := "/v2/admin/branches/gangnam/settings"
	read := func(client *servicetest.Client) map[string]any {
		t.Helper()
		var found map[string]any
		client.Get(settings).OK(t).Into(t, &found)
		return found
	}
	before := read(c.Manager)
	if contacts, ok := before["alertContacts"].([]any); !ok || len(contacts) != 0 {
		t.Fatalf("contacts at first: %v", before["alertContacts"])
	}
	contact := map[string]any{"name": "김반장", "channel": "sms", "to": "010-1234-5678", "kinds": []string{"branch-offline"}, "hours": map[string]string{"from": "22:00", "to": "06:00"}, "escalateAfterMinutes": 15}
	before["alertContacts"] = []any{contact}
	c.Manager.Put(settings, before).OK(t)
	after := read(c.Manager)["alertContacts"].([]any)[0].(map[string]any)
	if after["to"] != "010-1234-5678" || after["escalateAfterMinutes"] != 15.0 || after["hours"].(map[string]any)["to"] != "06:00" {
		t.Errorf("stored contact: %v", after)
	}
	if seen := read(c.Viewer)["alertContacts"].([]any)[0].(map[string]any); seen["to"] != "" {
		t.Errorf("a viewer sees the address %v", seen["to"])
	}
	again := read(c.Manager)
	delete(again, "alertContacts") // an older console
	c.Manager.Put(settings, again).OK(t)
	again = read(c.Manager)
	if len(again["alertContacts"].([]any)) != 1 {
		t.Error("settings without contacts removed them")
	}
	contact["channel"] = "pigeon"
	again["alertContacts"] = []any{contact}
	c.Manager.Put(settings, again).Fails(t, 400, "IllegalArguemntError", "알림 받는 사람(alertContacts) 값이 올바르지 않습니다.")
	inside := []any{map[string]any{"name": "내부", "channel": "webhook", "to": "http://10.0.0.1/alerts"}}
	again["alertContacts"] = inside
	c.Manager.Put(settings, again).Fails(t, 400, "IllegalArguemntError", "알림 받는 사람(alertContacts) 값이 올바르지 않습니다.")
	c.HQ.Put("/v2/admin/alert-contacts", map[string]any{"alertContacts": inside}).
		Fails(t, 400, "IllegalArguemntError", "알림 받는 사람(alertContacts) 값이 올바르지 않습니다.")

	c.HQ.Put("/v2/admin/alert-contacts", map[string]any{"alertContacts": []any{map[string]any{"name": "본사", "channel": "mail", "to": "a@example.com"}}}).OK(t)
	var own map[string]any
	c.HQ.Get("/v2/admin/alert-contacts").OK(t).Into(t, &own)
	if len(own["alertContacts"].([]any)) != 1 {
		t.Errorf("contacts of the headquarters: %v", own)
	}
	if n := only(t, s, `select count(*)::text from alert_contact where position('1234'::bytea in contacts) > 0`); n != "0" {
		t.Error("contacts are stored in the clear")
	}
}
