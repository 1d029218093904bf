package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

var (
	noSuchPath  = reply{404, "ResourceNotFoundException", "요청하신 경로를 찾을 수 없습니다."}
	wrongMethod = reply{405, "MethodNotAllowedError", "허용되지 않은 요청 방식입니다."}
	noSuchPlace = reply{404, "ResourceNotFoundException", "해당 지점을 찾을 수 없습니다."}
)

// Every role requests paths without a route. Layer 1 applies before the existence of a path is checked, layer 2 applies to
// all of /admin, and no encoding of a path bypasses them.
func TestLayersWithoutARoute(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	for _, place := range []struct {
		method, path               string
		nobody, customer, inCharge reply
	}{
		// unknown paths
		{"GET", "/nowhere", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "/", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "/v2", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "/v2/branches/gangnam", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "/admin", noSuchSession, notAuthorized, noSuchPath},
		{"GET", "/admin/", noSuchSession, notAuthorized, noSuchPath},
		{"GET", "/admin/nowhere", noSuchSession, notAuthorized, noSuchPath},
		{"POST", "/admin/login/nowhere", noSuchSession, notAuthorized, noSuchPath},
		{"GET", "/v2/admin/nowhere", noSuchSession, notAuthorized, noSuchPath},
		{"GET", "/administrator", noSuchSession, noSuchPath, noSuchPath},
		{"POST", "/payment/nowhere", noSuchSession, noSuchPath, noSuchPath},
		// known paths with another method; the exempt list names methods
		{"POST", "/reservations", noSuchSession, wrongMethod, wrongMethod},
		{"GET", "/reservation", noSuchSession, wrongMethod, wrongMethod},
		{"GET", "/payment", noSuchSession, wrongMethod, wrongMethod},
		{"GET", "/account/code", noSuchSession, wrongMethod, wrongMethod},
		{"GET", "/account/login", noSuchSession, wrongMethod, wrongMethod},
		{"GET", "/virtualaccount/webhook", noSuchSession, wrongMethod, wrongMethod},
		{"POST", "/v2/branches/gangnam/calendar", noSuchSession, wrongMethod, wrongMethod},
		{"DELETE", "/v2/branches/gangnam/reservations", noSuchSession, wrongMethod, wrongMethod},
		{"GET", "/door/unlock", noSuchSession, wrongMethod, wrongMethod},
		{"GET", "/admin/login", noSuchSession, notAuthorized, wrongMethod},
		{"GET", "/admin/payment", noSuchSession, notAuthorized, wrongMethod},
		{"GET", "/admin/door/unlock/gangnam/front", noSuchSession, notAuthorized, wrongMethod},
		{"BREW", "/reservations", noSuchSession, wrongMethod, wrongMethod},
		{"BREW", "/admin/payment", noSuchSession, notAuthorized, wrongMethod},
		// exempt for every method
		{"GET", "/door/v2/unlock", wrongMethod, wrongMethod, wrongMethod},
		{"POST", "/door/v2/unlock/subscribe", wrongMethod, wrongMethod, wrongMethod},
		{"GET", "/door/v2/unlock/nowhere", noSuchPath, noSuchPath, noSuchPath},
		{"GET", "/discord/interactions", wrongMethod, wrongMethod, wrongMethod},
		{"POST", "/franchise/nowhere", noSuchPath, noSuchPath, noSuchPath},
		{"POST", "/franchise/nowhere/at/all", noSuchPath, noSuchPath, noSuchPath},
		{"GET", "/franchise/inquiries", noSuchSession, wrongMethod, wrongMethod},
		{"GET", "/door/v2/unlock/a/b", noSuchSession, noSuchPath, noSuchPath},
		// spellings
		{"GET", "/reservations/", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "//reservations", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "/Reservations", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "/ADMIN/reservations", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "//admin/reservations", noSuchSession, notAuthorized, noSuchPath},
		{"GET", "/door/v2/unlock/../../../admin/reservations", noSuchSession, notAuthorized, noSuchPath},
		{"GET", "/door/v2/unlock/%2e%2e/%2e%2e/%2e%2e/admin/reservations", noSuchSession, notAuthorized, noSuchPath},
		{"POST", "/franchise/../admin/payment", noSuchSession, notAuthorized, noSuchPath},
		{"GET", "/v2/branches/../admin/calendar", noSuchSession, notAuthorized, noSuchPath},
		{"POST", "/franchise/%2e%2e/payment/cancel", noSuchSession, noSuchPath, noSuchPath},
		{"GET", "/admin/reservation/", noSuchSession, notAuthorized, noSuchPath},
		{"GET", "/admin/%00", noSuchSession, notAuthorized, noSuchPath},
		{"GET", "/%FF", noSuchSession, noSuchPath, noSuchPath},
	} {
		for who, want := range map[*servicetest.Client]reply{c.Nobody: place.nobody, c.Customer: place.customer, c.Manager: place.inCharge} {
			check(t, place.method+" "+place.path, who, place.method, probe{path: place.path}, want)
		}
	}

	// The answer 405 names the methods of the path, and 401 does not.
	for _, wrong := range []struct {
		who                 *servicetest.Client
		method, path, allow string
	}{
		{c.Manager, "PATCH", "/admin/reservation/1", "DELETE, GET, HEAD, PUT"}, {c.Manager, "BREW", "/reservation", "DELETE, POST"},
		{c.Manager, "GET", "/%61dmin/payment", "POST"}, {c.Nobody, "GET", "/door/v2/unlock", "POST"}, {c.Nobody, "GET", "/payment", ""},
		{c.Manager, "OPTIONS", "/reservations", "GET, HEAD"}, {c.Nobody, "OPTIONS", "/door/v2/unlock", "POST"}, {c.Nobody, "OPTIONS", "/reservations", ""},
	} {
		if got := wrong.who.Send(wrong.method, wrong.path, nil, nil); got.Header.Get("Allow") != wrong.allow {
			t.Errorf("%s %s: %d, Allow %q, want %q", wrong.method, wrong.path, got.HTTP, got.Header.Get("Allow"), wrong.allow)
		}
	}

	// A percent-encoded path is the same route with the same layers.
	lookUp := "?branch=gangnam&base_date=20261125&base_hour=10"
	for _, path := range []string{"/%61dmin/reservations", "/admin%2Freservations", "/admin/reservation%73"} {
		check(t, path, c.Nobody, "GET", probe{path: path + lookUp}, noSuchSession)
		check(t, path, c.Customer, "GET", probe{path: path + lookUp}, notAuthorized)
		check(t, path, c.Other, "GET", probe{path: path + lookUp}, outOfScope)
		check(t, path, c.Manager, "GET", probe{path: path + lookUp}, success)
	}

	// Claims of the client about itself are ignored.
	for _, header := range []http.Header{
		{"Cookie": {"JSESSIONID="}},
		{"Cookie": {"JSESSIONID=" + "A3xWJvPGqkTgqQZsYzEwV0mXf4m1sY0Tq3lLwZyB9xk"}},
		{"Cookie": {"JSESSIONID=a; JSESSIONID=b"}},
		{"X-Http-Method-Override": {"POST"}, "X-Original-Url": {"/api/reservations"}},
		{"Authorization": {"Basic aHE6aHEtZGVtbw=="}},
	} {
		c.Nobody.Send("GET", "/my-reservations", nil, header).Envelope(t).
			Fails(t, 401, "AuthenticationError", "인증되지 않은 사용자입니다.")
	}
	// HEAD is GET without the body.
	for _, place := range []string{"/reservations" + lookUp, "/admin/reservations" + lookUp, "/v2/admin/tokens", "/nowhere", "/reservation"} {
		for _, who := range []*servicetest.Client{c.Nobody, c.Customer, c.Manager} {
			get, head := who.Send("GET", place, nil, nil), who.Send("HEAD", place, nil, nil)
			if head.HTTP != get.HTTP || len(head.Raw) > 0 || head.Header.Get("ETag") != get.Header.Get("ETag") || head.Header.Get("Allow") != get.Header.Get("Allow") {
				t.Errorf("HEAD %s: %d %v %s, want %d %v without a body", place, head.HTTP, head.Header, head.Raw, get.HTTP, get.Header)
			}
		}
	}
	if answer := c.Nobody.Get("/nowhere"); answer.Header.Get("X-Request-Id") == "" || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", answer.Header)
	}
}

// A page of another site cannot use the session of the user who visits it.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	start := slot(s, 3*time.Hour)
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://elsewhere.example"}},
	} {
		answer := c.Send("POST", "/reservation", holdBody(1, start, time.Hour), header).Envelope(t)
		answer.Fails(t, 403, "AuthorizationError", "다른 사이트에서 보낸 요청은 처리할 수 없습니다.")
	}
	c.Send("POST", "/reservation", holdBody(1, start, time.Hour), http.Header{"Sec-Fetch-Site": {"same-origin"}}).Envelope(t).OK(t)
}

// An unknown branch is out of scope for administrators with branches, and not found for the headquarters and for guests.
func TestUnknownBranch(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	start := c.start
	hold := holdBody(1, start, time.Hour)
	hold["branch"] = "busan"
	for _, p := range []struct {
		method, path string
		body         any
		public       bool
	}{
		{"GET", "/reservations?branch=busan&base_date=20261125&base_hour=10", nil, true},
		{"GET", "/v2/branches/busan/calendar?yearMonth=2026-12", nil, true},
		{"GET", "/v2/branches/busan/reservations?date=2026-11-25&baseHour=10", nil, true},
		{"POST", "/reservation", hold, true},
		{"GET", "/admin/reservations?branch=busan&base_date=20261125&base_hour=10", nil, false},
		{"POST", "/admin/reservation", hold, false},
		{"PATCH", "/admin/machines/busan/1", map[string]bool{"enabled": true}, false},
		{"POST", "/admin/door/v2/unlock/busan/front", nil, false},
		{"POST", "/admin/door/v2/unlock/busan/room/1", nil, false},
		{"GET", "/admin/airconditioner/busan", nil, false},
		{"POST", "/admin/thermo-hygrometer/busan", nil, false},
		{"GET", "/v2/admin/branches/busan/timeline?date=2026-11-25", nil, false},
	} {
		if p.public {
			check(t, p.path, c.Nobody, p.method, probe{path: p.path, body: p.body}, noSuchPlace)
			continue
		}
		check(t, p.path, c.Manager, p.method, probe{path: p.path, body: p.body}, outOfScope)
		check(t, p.path, c.HQ, p.method, probe{path: p.path, body: p.body}, noSuchPlace)
	}
	// The same applies to every path of the console that names a branch.
	table := probes(t, c)
	for _, o := range contract.Operations() {
		p := table[o.OperationID]
		if p.path = strings.Replace(p.path, "gangnam", "busan", 1); p.scoped && strings.HasPrefix(o.Path, "/v2/admin/") && strings.Contains(p.path, "busan") && o.Responses.Value("404") != nil && !strings.Contains(o.Path, "/agents/{") {
			check(t, p.path, c.HQ, o.Method, p, noSuchPlace)
			check(t, p.path, c.Manager, o.Method, p, outOfScope)
		}
	}
}

// Without a branch in the path, the scope is that of the hold, the reservation, the request or the option.
func TestScopeOfAHold(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	c.Manager.Post("/admin/reservation", holdBody(2, c.start, time.Hour)).OK(t)
	token := cookie(t, c.s, c.Manager, "ADMIN_PAY_SESSIONID")
	give(t, c.s, c.Other, "ADMIN_PAY_SESSIONID", token)
	give(t, c.s, c.Viewer, "ADMIN_PAY_SESSIONID", token)
	account := map[string]any{"amount": 1, "orderName": "a", "name": "a", "mobileNum": "01012345678", "bankCode": "20"}
	for path, body := range map[string]any{"/admin/payment": map[string]any{}, "/admin/v2/virtual-accounts": account} {
		check(t, path, c.Other, "POST", probe{path: path, body: body}, outOfScope)
		check(t, path, c.Viewer, "POST", probe{path: path, body: body}, notAuthorized)
	}
	c.Manager.Post("/admin/payment", map[string]any{}).OK(t)
}
