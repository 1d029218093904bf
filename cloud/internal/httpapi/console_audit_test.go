package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// Every access to a guest's data is audited with its origin: the detail in the interface, the record in the console, a
// search, the conflicts of a room, a message, a file.
func TestViewsAreAudited(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	id := live(t, c.s, 1)
	register(t, c.Manager, 2, slot(c.s, 5*time.Hour))
	second := live(t, c.s, 2)
	message := only(t, c.s, `select max(id)::text from message where reservation_id = $1::bigint`, id)

	c.Viewer.Get("/admin/reservation/" + id).OK(t)
	c.HQ.Get("/v2/admin/reservations/" + id).OK(t)
	for range 3 { // reloading a page does not add entries
		c.Manager.Get("/v2/admin/reservations?" + url.Values{"query": {"홍길동"}}.Encode()).OK(t)
	}
	c.Manager.Get("/v2/admin/reservations?query=nobody").OK(t)
	c.Other.Get("/v2/admin/reservations?" + url.Values{"query": {"홍길동"}}.Encode()).OK(t) // finds no reservation in the branch of this manager
	c.Manager.Patch("/admin/machines/gangnam/1", map[string]bool{"enabled": false}).Fails(t, http.StatusConflict, "SettingConflictException", "")
	key := ownerKey(t, c.s, id)
	if answer := c.Viewer.Get("/v2/admin/messages/" + message).OK(t); strings.Contains(string(answer.Raw), key) {
		t.Error("a viewer reads a key in a message")
	}
	if answer := c.HQ.Get("/v2/admin/messages/" + message).OK(t); !strings.Contains(string(answer.Raw), key) {
		t.Errorf("the headquarters does not: %s", answer.Raw)
	}
	c.Manager.Post("/v2/admin/branches/gangnam/exports", map[string]string{"what": "payments", "yearMonth": "2026-11"}).OK(t)
	c.HQ.Post("/v2/admin/personal-data/export", map[string]string{"contact": "010-1234-5678"}).OK(t)
	c.HQ.Post("/v2/admin/administrators", map[string]any{"id": "new", "password": "a good long password", "role": "viewer", "branches": []string{"jamsil"}}).OK(t)

	for name, want := range map[string][3]string{
		"the interface's detail": {"admin:gangnam-viewer", "reservation.view", id},
		"the record":             {"admin:hq", "reservation.view", id},
		"a search":               {"admin:gangnam-manager", "reservation.search", second + " " + id},
		"conflicts":              {"admin:gangnam-manager", "room.conflicts", "gangnam/1"},
		"a message":              {"admin:gangnam-viewer", "message.view", message},
	} {
		n := only(t, c.s, `
			select count(*)::text from audit a join branch b on b.id = a.branch_id
			where actor = $1 and action = $2 and target = $3 and b.code = 'gangnam'`, want[0], want[1], want[2])
		if n != "1" {
			t.Errorf("%s: %s entries, want 1", name, n)
		}
	}
	if n := only(t, c.s, `select count(*)::text from audit where action = $1`, "reservation.search"); n != "1" {
		t.Errorf("%s searches are in the audit log, want the one with a result", n)
	}
	for _, action := range []string{"export.payments", "personal.export", "administrator.add"} {
		if n := only(t, c.s, `select count(*)::text from audit where action = $1 and actor <> 'test'`, action); n != "1" {
			t.Errorf("%s: %s entries, want 1", action, n)
		}
	}
	if n := only(t, c.s, `select count(*)::text from audit where actor like $1 and (address = '' or request_id = '')`, "admin:%"); n != "0" {
		t.Errorf("%s entries do not say from where", n)
	}
	if n := only(t, c.s, `select count(*)::text from audit where concat(target, detail::text) ~ $1`, `홍길동|12345678|1234-5678`); n != "0" {
		t.Errorf("%s entries name a guest, for good", n)
	}
}
